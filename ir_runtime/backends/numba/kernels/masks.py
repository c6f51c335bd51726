"""Comparisons of few integers, as in masks, where a run is recorded, so that the replay does not end there; and Select."""

from __future__ import annotations

from functools import partial

import numpy as np
from llvmlite import ir

from ....ir.element import ElementType
from ....ir.operation import Operation
from ....ir.tensor import Array, Value
from ....ops.comparison import Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual
from ....ops.condition import Select
from ... import Kernel
from ...common.kept_memory import empty
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import load_i64
from ..codegen.typed import I8S, load_lanes, store_typed, typed_loop
from ..codegen.vectors import LANES, Emit
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads
from ..threading.recording import is_recording
from ..threading.task import UNUSED, Task, load_args
from ._broadcast_rows import BroadcastJob, broadcast_layout, broadcast_task
from ._indices import load_index, store_boolean
from ._strided_copy import SIZES, STRIDED_COPY, broadcast_together

__all__: list[str] = []

_INTEGERS = (ElementType.i32, ElementType.i64)
# Whether the question is "less", else "equal"; whether operands are swapped; whether the answer is negated.
_QUESTIONS: dict[type[Operation], tuple[bool, bool, bool]] = {
    Equal: (False, False, False), NotEqual: (False, False, True), Less: (True, False, False),
    GreaterEqual: (True, False, True), Greater: (True, True, False), LessEqual: (True, True, True),
}  # fmt: skip


# Selects of fewer elements are left to NumPy, unless a run is recorded; from how many on several threads are faster.
MIN_SELECTED, MIN_PARALLEL_SIZE = 1 << 11, 1 << 15


class MaskJob(Descriptor):
    """The job of `COMPARE`: the number of elements, their bytes, and the question."""

    count: i64
    size: i64
    is_less: i64
    is_negated: i64


def _compare(call: int) -> None:
    """Compare all; only one thread is called."""
    job, out, a, b, _, _ = load_args(call)
    size, is_less = load_i64(job, MaskJob.size), load_i64(job, MaskJob.is_less)
    answer = 1 - load_i64(job, MaskJob.is_negated)
    for place in range(load_i64(job, MaskJob.count)):
        x, y = load_index(a, place, size), load_index(b, place, size)
        holds = x < y if is_less != 0 else x == y
        store_boolean(out, place, answer if holds else 1 - answer)


@instruction(*[types.int64] * 7)
def _select_elements(
    emit: Emit, size: ir.Value, singles: ir.Value, a: ir.Value, b: ir.Value, c: ir.Value, count: ir.Value, out: ir.Value
) -> None:  # fmt: skip
    """Store elements of ``size`` bytes of B where A holds, and else of C; any of them may be one for all."""

    def go(width: int, single: tuple[bool, ...]) -> None:
        kind = ir.VectorType(ir.IntType(8 * width), LANES)

        def body(index: ir.Value, mask: ir.Value | None) -> None:
            condition = load_lanes(emit, I8S, a, index, mask, single[0])
            then, otherwise = (
                load_lanes(emit, kind, address, index, mask, one)
                for address, one in zip((b, c), single[1:], strict=True)
            )
            holds = emit.builder.icmp_unsigned("!=", condition, ir.Constant(I8S, None))
            store_typed(emit, emit.builder.select(holds, then, otherwise), out, index, mask)

        typed_loop(emit, count, body)

    number = emit.builder.add(emit.builder.mul(size, emit.i64(8)), singles)
    branches = {
        8 * width + bits: partial(go, width, tuple(bool(bits >> place & 1) for place in range(3)))
        for width in SIZES for bits in range(8)
    }  # fmt: skip
    emit.switch(number, branches)


@device
def _select_row(job: int, out: int, a: int, b: int, c: int, count: int) -> None:
    size, singles = load_i64(job, BroadcastJob.size), load_i64(job, BroadcastJob.singles)
    _select_elements(size, singles, a, b, c, count, out)


COMPARE, SELECT = Task(_compare), broadcast_task("_select", _select_row)
"""Compare A and B, which have the shape of the result; take B where A holds, and else C."""


@backend.accelerates(*_QUESTIONS)
def compare(op: Operation, a: Value, b: Value) -> Kernel | None:
    """i32 or i64 that broadcast as in NumPy; in other runs, NumPy compares as fast."""
    if a.element is not b.element or a.element not in _INTEGERS or not _is_numpy(op):
        return None
    is_less, is_swapped, is_negated = _QUESTIONS[type(op)]
    for task in (COMPARE, STRIDED_COPY):
        task.prepare()

    def kernel(a: Array, b: Array) -> Array:
        found = broadcast_together(b, a) if is_swapped else broadcast_together(a, b)
        if found is None:
            return np.asarray(op.evaluate(a, b))
        out = empty(found[0].shape, np.bool_)
        job = MaskJob.fill(count=out.size, size=a.itemsize, is_less=is_less, is_negated=is_negated)
        parallel_for(COMPARE.address, job, out, found[0], found[1], UNUSED, 1)
        return out

    return _for_few(kernel, op)


@backend.accelerates(Select)
def select(op: Select, condition: Value, then: Value, otherwise: Value) -> Kernel | None:
    """Elements of whole bytes that broadcast as in NumPy, one input having the shape of the result."""
    dtype = then.element.dtype
    if then.element is not otherwise.element or dtype.itemsize not in SIZES or dtype.hasobject:
        return None
    if not _is_numpy(op):
        return None
    for task in (SELECT, STRIDED_COPY):
        task.prepare()

    def kernel(*arrays: Array) -> Array:
        size = max(x.size for x in arrays)
        if size < MIN_SELECTED and not is_recording():
            return op.evaluate(*arrays)
        layout = broadcast_layout(arrays)
        if layout is None and is_recording():
            arrays = tuple(broadcast_together(*arrays) or arrays)
            layout = broadcast_layout(arrays)
        if layout is None:
            return op.evaluate(*arrays)
        out = empty(layout.shape, dtype)
        job = BroadcastJob.fill(**layout.fields, size=dtype.itemsize, code=0, refused=0)
        count = threads() if size >= MIN_PARALLEL_SIZE else 1
        a, b, c = layout.operands(arrays)
        parallel_for(SELECT.address, job, out, a, b, c, count)
        return out.transpose(layout.back)

    return accepting(replayed(kernel, alone=False), any_lengths)


def _is_numpy(op: Operation) -> bool:
    return getattr(op, "auto_broadcast", "") == "numpy"


def _for_few(recorded: Kernel, op: Operation) -> Kernel:
    """Return a kernel that computes by tasks where a run is recorded."""
    evaluate = op.evaluate

    def kernel(*arrays: Array) -> Array | tuple[Array, ...]:
        return recorded(*arrays) if is_recording() else evaluate(*arrays)

    return accepting(replayed(kernel, alone=False), any_lengths)
