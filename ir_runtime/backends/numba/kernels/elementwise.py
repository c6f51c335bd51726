"""Chains of element-wise operations, fused into one pass over the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from ....cached import cached_property
from ....ir.operation import Operation
from ....ir.shape import PartialShape
from ....ir.tensor import Array, Value
from ....ops.quantization import FakeQuantize
from ... import Kernel, KernelObject
from ...core.lengths import any_lengths
from .._backend import backend
from ..codegen.descriptor import Job, concatenate
from ..threading.capture import REPLAYER
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task
from ._activation_code import ActivationKind
from ._bf16_program import RUN_BF16_PROGRAM
from ._elementwise_ops import ELEMENTWISE_TYPES, ElementwiseOp, elementwise_op
from ._elementwise_program import BLOCK, RUN_PROGRAM, Instruction, Opcode, ProgramJob
from ._epilogue import BF16, F32
from ._products import asked_products
from .contiguous import contiguous

__all__ = ["ElementwiseChain"]

# Results with fewer elements are left to NumPy, whose calls are cheaper; FakeQuantize takes some twenty of them.
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


_Layout: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ElementwiseChain(KernelObject):
    """A kernel of element-wise layers, the first of which takes ``arity`` inputs.

    Shapes that it does not support are left to the operations themselves. With ``bf16``, the result may be stored in bf16; if
    it ``rounds``, it is, and the data may be.
    """

    ops: tuple[ElementwiseOp, ...]
    arity: int
    bf16: bool = False
    rounds: bool = False
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

    def __call__(self, *arrays: Array) -> Array:
        x = arrays[self.ops[0].place]
        others = [arrays[place] for place in self._others]
        key = (x.shape, x.strides, *(other.shape for other in others))
        try:
            plan = self._plans[key]
        except KeyError:
            plan = self._remember(key, x, others)
        if plan is None:
            return self._op_by_op(arrays)
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

    def _op_by_op(self, arrays: Sequence[Array]) -> Array:
        """Evaluate the operations one by one: for operands that broadcast the result or need too many axes."""
        first = self.ops[0]
        found: Array = first.op.evaluate(
            *(array.astype(F32) if array.dtype == BF16 else array for array in arrays[: self.arity])
        )
        start = self.arity
        for op_ in self.ops[1:]:
            inputs = list(arrays[start : start + op_.inputs])
            inputs.insert(op_.place, found)
            found, start = op_.op.evaluate(*inputs), start + op_.inputs
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
    seen = [_aligned_shape(operand, x.shape, order) for operand in operands]
    if any(lengths is None for lengths in seen):
        return None
    found = [lengths for lengths in seen if lengths is not None]
    grouped = _collapse_axes(shape, found)
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
            kept.append(np.stack([_in_memory_order(each, order) for each in op_.planes]))
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
    orders = [_operand_axes(shape, order) for shape in shapes]
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


def stored(x: Array) -> tuple[int, ...]:
    """Return the axes in memory order; for maps that are not in rows, with channels last."""
    axes = tuple(range(x.ndim))
    if x.flags.c_contiguous:
        return axes
    by_stride = tuple(sorted(axes, key=lambda axis: (-abs(x.strides[axis]), axis)))
    if x.transpose(by_stride).flags.c_contiguous or (x.ndim < 4 and x.strides[by_stride[-1]] == x.itemsize):
        return by_stride
    return axes if x.ndim < 4 else (0, *axes[2:], 1)


def _aligned_shape(
    operand: tuple[int, ...], ours: tuple[int, ...], order: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the lengths of an operand that broadcasts to ``ours``, with reordered axes; ``None`` if it does not."""
    if len(operand) > len(ours):
        return None
    lengths = (1,) * (len(ours) - len(operand)) + operand
    if any(n not in (1, m) for n, m in zip(lengths, ours, strict=True)):
        return None
    return tuple(lengths[axis] for axis in order)


def _operand_axes(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of the axes of an operand that may have fewer."""
    missing = len(order) - len(shape)
    return tuple(axis - missing for axis in order if axis >= missing)


def _in_memory_order(constant: Array, order: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(constant.transpose(_operand_axes(constant.shape, order)))


def _collapse_axes(
    shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]] | None:
    """Return the lengths of at most three axes, and the strides of each operand in bytes; ``None`` if there are more.

    Neighbouring axes that all operands either have or broadcast are merged.
    """
    groups: list[tuple[int, tuple[bool, ...]]] = []
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        same = tuple(lengths[axis] == length for lengths in operands)
        if groups and groups[-1][1] == same:
            length *= groups.pop()[0]
        groups.append((length, same))
    if len(groups) > 3:
        return None
    groups = [(1, (False,) * len(operands))] * (3 - len(groups)) + groups
    strides = []
    for index in range(len(operands)):
        lengths = [length if same[index] else 1 for length, same in groups]
        inner = [4 * math.prod(lengths[axis + 1 :]) for axis in range(3)]
        strides.append(tuple(n if same[index] else 0 for n, (_, same) in zip(inner, groups, strict=True)))
    return tuple(length for length, _ in groups), strides


@backend.accelerates(*ELEMENTWISE_TYPES)
def elementwise(op: Operation, *inputs: Value) -> Kernel | None:
    """f32, if the result has the shape of one input."""
    least = MIN_QUANTIZED_SIZE if isinstance(op, FakeQuantize) else MIN_SIZE
    for place in range(min(len(inputs), 2)):
        known = inputs[place].known() is not None
        op_ = None if known or _is_small(inputs[place].shape, least) else elementwise_op(op, inputs, place)
        if op_ is not None:
            is_map = inputs[place].shape.rank == MAP_RANK
            return ElementwiseChain((op_,), len(inputs), is_map and asked_products().is_faster)
    return None


def _is_small(shape: PartialShape, least: int) -> bool:
    return shape.rank == 0 or (shape.is_static and math.prod(shape.static) < least)
