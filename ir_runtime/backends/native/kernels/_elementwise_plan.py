"""Plans of element-wise programs: how arrays of some shapes and strides are read, and the job of the kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....ir.pages import held
from ....ir.tensor import Array
from ..codegen.descriptor import Job, concatenate
from ..threading.parallel import pays_to_share
from ..threading.task import Task
from ._activation_code import ActivationKind
from ._bf16_program import RUN_BF16_PROGRAM
from ._elementwise_axes import (
    aligned_strides,
    collapse_axes,
    contiguous_strides,
    in_memory_order,
    operand_axes,
    stored,
)
from ._elementwise_code import Opcode
from ._elementwise_ops import ElementwiseOp
from ._elementwise_program import RUN_PROGRAM, SHORT, Instruction, ProgramJob
from ._epilogue import BF16, F32
from ._nest import BLOCK, nest_fields
from .contiguous import contiguous

__all__ = ["OPERAND_SLOTS", "Plan", "make_plan"]

# Cost of an activation, in operations.
ACTIVATION_COST = 4
AFFINE = [Opcode.MULTIPLY, Opcode.ADD]
# Indices of operands that are not constant.
OPERAND_SLOTS = (1, 2)


class Plan(NamedTuple):
    """The program for arrays of one layout."""

    job: Array
    shape: tuple[int, ...]
    """The shape of the result, its axes in memory order."""
    back: tuple[int, ...]
    copied: list[tuple[int, ...] | None]
    """For the data and each operand, the order of the axes of a contiguous copy; ``None`` for the array as it is."""
    large: bool
    task: Task

    def read(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the arrays that the task reads: the data and the operands."""
        return [
            array if order is None else contiguous(array.transpose(order))
            for array, order in zip(arrays, self.copied, strict=True)
        ]


class _Layout(NamedTuple):
    """Lengths of three axes; the strides of the data and of each operand, constants included; which arrays are copied."""

    lengths: tuple[int, ...]
    strides: list[tuple[int, ...]]
    copied: list[tuple[int, ...] | None]


def make_plan(ops: Sequence[ElementwiseOp], arrays: Sequence[Array], rounds: bool) -> Plan | None:
    """Return the plan for data and operands; ``None`` if one does not broadcast, or there are too many axes."""
    x, others = arrays[0], list(arrays[1:])
    is_bf16 = rounds or x.dtype == BF16
    shape = x.shape if is_bf16 or not ops[0].paired else _broadcast(x.shape, others[0].shape)
    if shape is None:
        return None
    order = next((stored(array) for array in arrays[:2] if array.shape == shape), tuple(range(len(shape))))
    waiting = iter(others)
    operands = [next(waiting) if op.paired else op.planes[0] for op in ops if op.paired or op.planes]
    is_given = [op.paired for op in ops if op.paired or op.planes]
    found = _layout([x, *operands], [True, *is_given], shape, order, is_bf16)
    if found is None:
        return None
    job = _job(ops, found, order, (x.dtype == BF16, rounds))
    size, cost = math.prod(shape), sum(ACTIVATION_COST if op.is_costly else 1 for op in ops)
    copied = [each for each, given in zip(found.copied, [True, *is_given], strict=True) if given]
    return Plan(
        job, tuple(shape[axis] for axis in order), tuple(np.argsort(order).tolist()), copied,
        pays_to_share(moved=2 * F32.itemsize * size, computed=cost * size),
        RUN_BF16_PROGRAM if rounds or x.dtype == BF16 else RUN_PROGRAM,
    )  # fmt: skip


def _broadcast(shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(shape, other)
    except ValueError:
        return None  # which the operation says better


def _layout(
    arrays: Sequence[Array],
    given: Sequence[bool],
    shape: tuple[int, ...],
    order: tuple[int, ...],
    is_bf16: bool,
) -> _Layout | None:
    """Return how arrays are read: as they are, if that is possible, else those that are not contiguous are copied.

    Args:
        arrays: the data and all operands.
        given: which of them are not constant.
        shape: of the result.
        order: of its axes in memory.
        is_bf16: whether the data or the result are bf16: then the data is contiguous, its strides those of f32.
    """
    lengths = tuple(shape[axis] for axis in order)
    orders = [operand_axes(array.shape, order) for array in arrays]
    if any(array.ndim > len(shape) for array in arrays):
        return None
    is_ready = [array.transpose(each).flags.c_contiguous for array, each in zip(arrays, orders, strict=True)]
    for copies in (False, True):
        strides, copied = [], list[tuple[int, ...] | None]()
        for index, (array, own, ready, is_given) in enumerate(
            zip(arrays, orders, is_ready, given, strict=True)
        ):
            moved = copies or not is_given or (is_bf16 and index == 0)  # constants are stored in this order
            steps = contiguous_strides(array.shape, own) if moved else array.strides
            strides.append(aligned_strides(array.shape, steps, shape, order))
            copied.append(own if moved and is_given and not ready else None)
        if any(each is None for each in strides):
            return None
        collapsed = collapse_axes(lengths, [each for each in strides if each is not None])
        if collapsed is not None:
            return _Layout(*collapsed, copied)
    return None


def _job(
    ops: Sequence[ElementwiseOp],
    layout: _Layout,
    order: tuple[int, ...],
    rounded: tuple[bool, bool],
) -> Array:
    """Return the job of a program for data and a result that are in bf16, or not, as ``rounded`` says."""
    own, *strides = layout.strides
    records, kept = _instructions(ops, strides, order)
    flat = contiguous_strides(layout.lengths)
    is_flat = all(step == n for step, n, length in zip(own, flat, layout.lengths, strict=True) if length != 1)
    data, result = (BF16.itemsize if is_bf16 else F32.itemsize for is_bf16 in rounded)
    axes = [
        (length, there * result // F32.itemsize, here * data // F32.itemsize)
        for length, there, here in zip(layout.lengths, flat, own, strict=True)
    ]
    fields = nest_fields(axes[::-1])
    assert fields is not None
    width = layout.lengths[-1]
    job = ProgramJob.fill(
        **fields, room=F32.itemsize * BLOCK if width < SHORT else 0, operations=len(ops), rounded_data=rounded[0],
        rounded_result=rounded[1], is_affine=all(rounded) and _is_affine(ops, strides), is_expanded=not is_flat,
        is_single=own[-1] == 0,
    )  # fmt: skip
    return Job.of(concatenate(job, *records), kept)


def _instructions(
    ops: Sequence[ElementwiseOp], strides: Sequence[tuple[int, ...]], order: tuple[int, ...]
) -> tuple[list[Array], list[Array]]:
    """Return an `Instruction` for each layer, and the constants that they point to."""
    records, kept = list[Array](), list[Array]()
    places, slots = iter(strides), iter(OPERAND_SLOTS)
    for op in ops:
        slot = address = plane = 0
        apart: tuple[int, ...] = (0, 0, 0)
        if op.planes:
            kept.append(np.stack([in_memory_order(held(each), order) for each in op.planes]))
            address, plane, apart = kept[-1].ctypes.data, kept[-1][0].nbytes, next(places)
        elif op.paired:
            slot, apart = next(slots), next(places)
        by_image, by_row, by_column = apart
        a, b = op.parameters
        records.append(
            Instruction.fill(
                opcode=op.code, operand=slot, address=address, image_stride=by_image, row_stride=by_row,
                column_stride=by_column, plane=plane, a=a, b=b,
            )
        )  # fmt: skip
    return records, kept


def _is_affine(ops: Sequence[ElementwiseOp], strides: Sequence[tuple[int, ...]]) -> bool:
    """Return whether operations are a product with a constant row, a sum with one, and bounds at most."""
    codes = [op.code for op in ops]
    rows = all(apart == (0, 0, 4) for apart in strides) and all(len(op.planes) == 1 for op in ops[:2])
    return rows and codes in (AFFINE, [*AFFINE, Opcode.ACTIVATION + ActivationKind.CLAMP])
