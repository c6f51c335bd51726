"""Multithreaded comparisons, logical operations on booleans, and Select, as used for attention masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ...._util.arrays import DType
from ....ir.element import ElementType
from ....ir.operation import Operation
from ....ir.tensor import Array, Value
from ....ops.bitwise import BitwiseAnd, BitwiseNot, BitwiseOr, BitwiseXor
from ....ops.comparison import Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual
from ....ops.condition import Select
from ....ops.logical import LogicalAnd, LogicalNot, LogicalOr, LogicalXor
from ... import Kernel
from .._backend import backend
from ..codegen import ir
from ..codegen.language import device, instruction, types
from ..codegen.vectors import I8S, I64S, INTS, LANES, VECTOR, Emit, load_lanes, load_typed, store_typed
from ..threading.parallel import uses_constant
from ..threading.task import Task
from ._broadcast_rows import BroadcastJob, broadcast_kernel, broadcast_task
from ._copy import SIZES

__all__: list[str] = []

_KINDS = {ElementType.i32: INTS, ElementType.i64: I64S, ElementType.f32: VECTOR}
_PREDICATES = "==", "!=", "<", "<="
# The predicate of a comparison, and whether operands are swapped.
_QUESTIONS: dict[type[Operation], tuple[str, bool]] = {
    Equal: ("==", False), NotEqual: ("!=", False), Less: ("<", False),
    LessEqual: ("<=", False), Greater: ("<", True), GreaterEqual: ("<=", True),
}  # fmt: skip
_CONNECTIVES = "and_", "or_", "xor"
_LOGICAL: dict[type[Operation], str] = {
    BitwiseAnd: "and_", LogicalAnd: "and_", BitwiseOr: "or_", LogicalOr: "or_", BitwiseXor: "xor", LogicalXor: "xor",
}  # fmt: skip
_CODES = {
    function: code
    for code, function in enumerate([*((kind, p) for kind in _KINDS for p in _PREDICATES), *_CONNECTIVES])
}
_BOOLEAN, _TRUE = np.dtype(np.bool_), np.ones((), np.bool_)


# Smaller results are left to NumPy, unless a run is recorded.
MIN_SIZE = 1 << 11


@instruction(*[types.int64] * 6)
def _decide_elements(
    emit: Emit, code: ir.Value, singles: ir.Value, a: ir.Value, b: ir.Value, count: ir.Value, out: ir.Value
) -> None:
    """Compare or combine ``count`` pairs of elements, as ``code`` selects, and store booleans.

    ``singles`` has a bit for each operand that is one element for the whole row, A's the lowest.
    """
    copies = [emit.stack_words(LANES) for _ in range(2)]

    def go(kind: ir.VectorType, function: Callable[[ir.Value, ir.Value], ir.Value]) -> None:
        operands = [
            _operand(emit, kind, address, emit.builder.and_(singles, emit.i64(bit)), place)
            for address, bit, place in zip((a, b), (1, 2), copies, strict=True)
        ]

        for index, _, mask in emit.masked_strips(count):
            x, y = (
                load_typed(emit, kind, address, emit.builder.mul(index, step), mask)
                for address, step in operands
            )
            store_typed(emit, function(x, y), out, index, mask)

    branches = {
        _CODES[element, predicate]: partial(go, kind, partial(_compare_lanes, emit, predicate))
        for element, kind in _KINDS.items() for predicate in _PREDICATES
    }  # fmt: skip
    branches |= {_CODES[name]: partial(go, I8S, getattr(emit.builder, name)) for name in _CONNECTIVES}
    emit.switch(code, branches)


def _operand(
    emit: Emit, kind: ir.VectorType, address: ir.Value, single: ir.Value, copies: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """Return the address of an operand, and how many elements it advances per element of the result: 1, or 0 if ``single``.

    A single element is first broadcast to a vector at ``copies``, whose address is then returned.
    """
    builder, one = emit.builder, emit.i64(1)
    is_single = builder.icmp_signed("!=", single, emit.i64(0))
    with builder.if_then(is_single):
        store_typed(emit, load_lanes(emit, kind, address, emit.i64(0), None, True), copies, emit.i64(0), None)
    return builder.select(is_single, copies, address), builder.select(is_single, emit.i64(0), one)


def _compare_lanes(emit: Emit, predicate: str, x: ir.Value, y: ir.Value) -> ir.Value:
    builder = emit.builder
    if x.type != VECTOR:
        return builder.zext(builder.icmp_signed(predicate, x, y), I8S)
    compare = builder.fcmp_unordered if predicate == "!=" else builder.fcmp_ordered
    return builder.zext(compare(predicate, x, y), I8S)


@device
def _decide_row(job: BroadcastJob, out: int, a: int, b: int, c: int, count: int) -> None:
    code, singles = job.code, job.singles
    _decide_elements(code, singles, a, b, count, out)


@instruction(*[types.int64] * 7)
def _select_elements(
    emit: Emit, size: ir.Value, singles: ir.Value, a: ir.Value, b: ir.Value, c: ir.Value, count: ir.Value, out: ir.Value
) -> None:  # fmt: skip
    """Store elements of ``size`` bytes from B where A is true, else from C.

    ``singles`` has a bit for each operand that is one element for the whole row, A's the lowest.
    """

    def go(width: int, single: tuple[bool, ...]) -> None:
        kind = ir.VectorType(ir.IntType(8 * width), LANES)

        for index, _, mask in emit.masked_strips(count):
            condition = load_lanes(emit, I8S, a, index, mask, single[0])
            then, otherwise = (
                load_lanes(emit, kind, address, index, mask, one)
                for address, one in zip((b, c), single[1:], strict=True)
            )
            holds = emit.builder.icmp_unsigned("!=", condition, ir.Constant(I8S, None))
            store_typed(emit, emit.builder.select(holds, then, otherwise), out, index, mask)

    variant = emit.builder.add(emit.builder.mul(size, emit.i64(8)), singles)
    branches = {
        8 * width + bits: partial(go, width, tuple(bool(bits >> place & 1) for place in range(3)))
        for width in SIZES for bits in range(8)
    }  # fmt: skip
    emit.switch(variant, branches)


@device
def _select_row(job: BroadcastJob, out: int, a: int, b: int, c: int, count: int) -> None:
    size, singles = job.size, job.singles
    _select_elements(size, singles, a, b, c, count, out)


DECIDE, SELECT = broadcast_task("_decide", _decide_row), broadcast_task("_select", _select_row)
"""`DECIDE` compares or combines A and B; `SELECT` takes B where A is true, else C."""


@backend.accelerates(*_QUESTIONS)
def compare(op: Operation, a: Value, b: Value) -> Kernel | None:
    """Return a comparison kernel for f32, i32 and i64 that broadcast as in NumPy."""
    if a.element is not b.element or a.element not in _KINDS or not _is_numpy(op):
        return None
    predicate, is_swapped = _QUESTIONS[type(op)]
    order = (1, 0) if is_swapped else (0, 1)
    return _row_kernel(op, DECIDE, _BOOLEAN, lambda *x: [x[i] for i in order], _CODES[a.element, predicate])


@backend.accelerates(*_LOGICAL)
def combine(op: Operation, a: Value, b: Value) -> Kernel | None:
    """Return a kernel for the conjunction, disjunction or XOR of booleans that broadcast as in NumPy."""
    if {a.element, b.element} != {ElementType.boolean} or not _is_numpy(op):
        return None
    return _row_kernel(op, DECIDE, _BOOLEAN, code=_CODES[_LOGICAL[type(op)]])


@backend.accelerates(BitwiseNot, LogicalNot)
def negate(op: Operation, data: Value) -> Kernel | None:
    """Return a kernel for the negation of booleans."""
    if data.element is not ElementType.boolean:
        return None

    def operands(x: Array) -> Sequence[Array]:
        uses_constant(_TRUE)
        return x, _TRUE

    return _row_kernel(op, DECIDE, _BOOLEAN, operands, _CODES["xor"])


@backend.accelerates(Select)
def select(op: Select, condition: Value, then: Value, otherwise: Value) -> Kernel | None:
    """Return a Select kernel for elements of whole bytes that broadcast as in NumPy."""
    dtype = then.element.dtype
    if then.element is not otherwise.element or dtype.itemsize not in SIZES or dtype.hasobject:
        return None
    return _row_kernel(op, SELECT, dtype) if _is_numpy(op) else None


def _is_numpy(op: Operation) -> bool:
    return getattr(op, "auto_broadcast", "") == "numpy"


def _row_kernel(
    op: Operation,
    task: Task,
    dtype: DType,
    operands: Callable[..., Sequence[Array]] | None = None,
    code: int = 0,
) -> Kernel:
    """Return a kernel that computes results of ``dtype`` with a task on rows.

    ``operands`` maps the inputs of the layer to those of the task.
    """
    evaluate: Callable[..., Array] = op.evaluate
    return broadcast_kernel(task, dtype, evaluate, code, MIN_SIZE, operands=operands)
