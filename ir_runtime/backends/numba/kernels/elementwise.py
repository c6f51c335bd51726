"""Chains of element-wise operations, fused into one pass over the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from ....cached import cached_property
from ....ir.operation import Operation
from ....ir.tensor import Array, Value
from ....ops.quantization import FakeQuantize
from ... import Kernel, KernelObject
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..codegen.descriptor import Job, concatenate
from ..threading.capture import REPLAYER, replayed
from ..threading.parallel import parallel_for, threads
from ..threading.recording import RECORD, is_recording
from ..threading.task import UNUSED, Task
from ._activation_code import ActivationKind
from ._bf16_program import RUN_BF16_PROGRAM
from ._elementwise_axes import aligned_shape, collapse_axes, in_memory_order, operand_axes, stored
from ._elementwise_ops import ELEMENTWISE_TYPES, ElementwiseOp, elementwise_op, numpy_function, outer_op
from ._elementwise_program import BLOCK, RUN_PROGRAM, Instruction, Opcode, ProgramJob
from ._epilogue import BF16, F32
from ._products import asked_products
from ._strided_copy import MAX_SIZE, expanded
from .contiguous import contiguous

__all__ = ["ElementwiseChain"]

# Results with fewer elements are computed by NumPy, whose calls are cheaper, unless a run is recorded or NumPy rounds
# otherwise; FakeQuantize takes some twenty calls.
MIN_SIZE = 1 << 11
MIN_QUANTIZED_SIZE = MIN_SIZE // 16
# Elements times operations from which on several threads are faster.
MIN_PARALLEL_WORK = 1 << 16
# Cost of an activation, in operations.
ACTIVATION_COST = 4
# Plans that a chain caches, one for each layout of inputs.
MAX_PLANS = 16
AFFINE = [Opcode.MULTIPLY, Opcode.ADD]
# Feature maps may be stored in bf16.
MAP_RANK = 4
# Indices of operands that are not constant.
OPERAND_SLOTS = (1, 2)


# Kernels of one unary layer that are shared by layers with the same parameters.
MAX_SHARED = 256

_SHARED: dict[tuple[object, ...], Kernel] = {}
_Layout: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ElementwiseChain(KernelObject):
    """A kernel of element-wise layers, the first of which takes ``arity`` inputs; of a ``small`` tensor, if its shape is static.

    Shapes that it does not support are left to the operations themselves. With ``bf16``, the result may be stored in bf16; if
    it ``rounds``, it is, and the data may be.
    """

    ops: tuple[ElementwiseOp, ...]
    arity: int
    bf16: bool = False
    rounds: bool = False
    small: bool = False
    _plans: dict[_Layout, _Plan | None] = field(default_factory=dict, compare=False)
    accepts = staticmethod(any_lengths)
    replayer = REPLAYER

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> Kernel | None:
        """Return a kernel that also computes ``op``, or ``None``."""
        op_ = elementwise_op(op, inputs, place)
        if op_ is None or op_.paired + sum(known.paired for known in self.ops) > len(OPERAND_SLOTS):
            return None
        return replace(self, ops=(*self.ops, op_), _plans={})

    def reads_bf16(self, place: int) -> bool:
        """Return whether an input may be stored in bf16."""
        return self.rounds and place == self.ops[0].place

    def storing_bf16(self) -> Kernel | None:
        """Return a kernel that stores its result in bf16, or ``None``."""
        return replace(self, rounds=True, _plans={}) if self.bf16 else None

    @cached_property
    def _others(self) -> list[int]:
        """Return the indices of the inputs that are operands and not constant."""
        places, start = [], 0
        for index, op_ in enumerate(self.ops):
            if op_.paired:
                places.append(1 - op_.place if index == 0 else start)
            start += self.arity if index == 0 else op_.inputs
        return places

    @cached_property
    def _left_to_numpy(self) -> bool:
        """Whether NumPy computes the same as fast: a few numbers, unless a run is recorded."""
        exact = (*range(Opcode.QUANTIZE), Opcode.ACTIVATION + ActivationKind.CLAMP)
        return self.small and all(op_.code in exact for op_ in self.ops)

    def prepare(self) -> Kernel:
        """Return a function that is called faster, for few numbers."""
        if not self._left_to_numpy:
            return self
        if len(self.ops) > 1 or self.ops[0].paired or self.ops[0].planes:
            return self._for_few(self._op_by_op)
        (only,) = self.ops
        key = (type(only.op), only.code, only.parameters, self.arity)
        if key not in _SHARED:
            if len(_SHARED) >= MAX_SHARED:
                _SHARED.clear()
            _SHARED[key] = self._for_few(numpy_function(only.op))
        return _SHARED[key]

    def _for_few(self, run: Callable[..., Array]) -> Kernel:
        """Return a function that computes by ``run``, unless a run is recorded."""

        def kernel(*arrays: Array) -> Array:
            return self(*arrays) if is_recording() else run(*arrays)

        return accepting(replayed(kernel, alone=False), any_lengths)

    def __call__(self, *arrays: Array) -> Array:
        x = arrays[self.ops[0].place]
        others = [arrays[place] for place in self._others]
        key = (x.shape, x.strides, *(other.shape for other in others))
        try:
            plan = self._plans[key]
        except KeyError:
            plan = self._remember(key, x, others)
        if plan is None:
            whole = None if RECORD.get() is None else self._expanded(*arrays)
            return self._op_by_op(*arrays) if whole is None else self(*whole)
        out = np.empty(plan.shape, BF16 if self.rounds else F32)
        source = contiguous(x.transpose(plan.order))
        operands = [
            contiguous(other.transpose(order)) for other, order in zip(others, plan.orders, strict=True)
        ]
        first, second = (*operands, UNUSED, UNUSED)[:2]
        parallel_for(plan.task.address, plan.job, out, source, first, second, threads() if plan.large else 1)
        return out.transpose(plan.back)

    def _remember(self, key: _Layout, x: Array, others: Sequence[Array]) -> _Plan | None:
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        plan = self._plans[key] = _plan(self.ops, x, [other.shape for other in others], self.rounds)
        return plan

    def _expanded(self, *arrays: Array) -> list[Array] | None:
        """Return the inputs, the first operands as large as their result, if few and recorded: NumPy would end the replay."""
        first, place = arrays[: self.arity], self.ops[0].place
        shapes = [array.shape for array in first]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            return None  # which the operation says better
        if shape == shapes[place] or not 0 < math.prod(shape) <= MAX_SIZE or not is_recording():
            return None
        whole = expanded(first[place], shape) if first[place].dtype == F32 else None
        return None if whole is None else [*arrays[:place], whole, *arrays[place + 1 :]]

    def _op_by_op(self, *arrays: Array) -> Array:
        """Evaluate the operations one by one: for operands that broadcast the result or need too many axes."""
        first = self.ops[0]
        found: Array = numpy_function(first.op)(
            *(array.astype(F32) if array.dtype == BF16 else array for array in arrays[: self.arity])
        )
        start = self.arity
        for op_ in self.ops[1:]:
            inputs = list(arrays[start : start + op_.inputs])
            inputs.insert(op_.place, found)
            found, start = numpy_function(op_.op)(*inputs), start + op_.inputs
        return np.asarray(found, BF16 if self.rounds else None)


class _Plan(NamedTuple):
    """The program for data of one shape and layout."""

    job: Array
    shape: tuple[int, ...]
    """The shape of the result, its axes in memory order."""
    order: tuple[int, ...]
    orders: list[tuple[int, ...]]
    """Orders of the axes of the operands."""
    back: tuple[int, ...]
    large: bool
    task: Task


def _plan(
    ops: Sequence[ElementwiseOp], x: Array, shapes: Sequence[tuple[int, ...]], rounds: bool
) -> _Plan | None:
    order = stored(x)
    shape = tuple(x.shape[axis] for axis in order)
    waiting = iter(shapes)
    operands = [
        next(waiting) if op_.paired else op_.planes[0].shape for op_ in ops if op_.paired or op_.planes
    ]
    seen = [aligned_shape(operand, x.shape, order) for operand in operands]
    if any(lengths is None for lengths in seen):
        return None
    found = [lengths for lengths in seen if lengths is not None]
    grouped = collapse_axes(shape, found)
    if grouped is None:
        return None
    (images, height, width), strides = grouped
    tall = min(max(BLOCK // max(width, 1), 1), max(height, 1))
    wide = min(width, BLOCK) or 1
    blocks = images * -(-height // tall) * -(-width // wide) if x.size else 0
    records, kept = list[Array](), list[Array]()
    places, slots = iter(strides), iter(OPERAND_SLOTS)
    for op_ in ops:
        slot = address = plane = 0
        apart: tuple[int, ...] = (0, 0, 0)
        if op_.planes:
            kept.append(np.stack([in_memory_order(each, order) for each in op_.planes]))
            address, plane, apart = kept[-1].ctypes.data, kept[-1][0].nbytes, next(places)
        elif op_.paired:
            slot, apart = next(slots), next(places)
        by_image, by_row, by_column = apart
        a, b = op_.parameters
        records.append(
            Instruction.fill(
                opcode=op_.code, operand=slot, address=address, image_stride=by_image, row_stride=by_row,
                column_stride=by_column, plane=plane, a=a, b=b,
            )
        )  # fmt: skip
    is_rounded = x.dtype == BF16
    job = ProgramJob.fill(
        blocks=blocks, height=height, width=width, block_height=tall, block_width=wide, operations=len(ops),
        rounded_data=is_rounded, rounded_result=rounds, is_affine=is_rounded and rounds and _is_affine(ops, strides),
    )  # fmt: skip
    orders = [operand_axes(shape, order) for shape in shapes]
    cost = sum(ACTIVATION_COST if op_.code >= Opcode.ACTIVATION or len(op_.planes) > 1 else 1 for op_ in ops)
    back = tuple(np.argsort(order).tolist())
    task = RUN_BF16_PROGRAM if rounds or is_rounded else RUN_PROGRAM
    job = Job.of(concatenate(job, *records), kept)
    return _Plan(job, shape, order, orders, back, x.size * cost >= MIN_PARALLEL_WORK, task)


def _is_affine(ops: Sequence[ElementwiseOp], strides: Sequence[tuple[int, ...]]) -> bool:
    """Return whether operations are a product with a constant row, a sum with one, and bounds at most."""
    codes = [op_.code for op_ in ops]
    rows = all(apart == (0, 0, 4) for apart in strides) and all(len(op_.planes) == 1 for op_ in ops[:2])
    return rows and codes in (AFFINE, [*AFFINE, Opcode.ACTIVATION + ActivationKind.CLAMP])


@backend.accelerates(*ELEMENTWISE_TYPES)
def elementwise(op: Operation, *inputs: Value) -> Kernel | None:
    """f32, if the result has the shape of one input."""
    for place in range(min(len(inputs), 2)):
        shape = inputs[place].shape
        if inputs[place].known() is not None or shape.rank == 0:
            continue
        small = shape.is_static and math.prod(shape.static) < MIN_SIZE
        if small and isinstance(op, FakeQuantize) and math.prod(shape.static) < MIN_QUANTIZED_SIZE:
            continue
        if (op_ := elementwise_op(op, inputs, place)) is not None:
            is_map = shape.rank == MAP_RANK and not small
            return ElementwiseChain((op_,), len(inputs), is_map and asked_products().is_faster, small=small)
    return _outer(op, inputs)


def _outer(op: Operation, inputs: Sequence[Value]) -> Kernel | None:
    """Return a kernel for two operands that may both broadcast, as positions and frequencies do, if the lengths are open."""
    if (
        len(inputs) != 2
        or all(x.shape.is_static for x in inputs)
        or any(x.shape.rank is None for x in inputs)
    ):
        return None
    op_ = outer_op(op, inputs)
    return None if op_ is None else ElementwiseChain((op_,), 2)
