"""Loop nests: the tiled iteration over planes, rows and columns that copy and element-wise kernels share.

Each plane is divided into blocks of rows and columns; a unit of work is one block, or several small ones. Each operand,
including the result, has a stride along each axis, 0 where it is broadcast. A kernel supplies the loop body:
``body(job, (out, a, b, c), (plane, row, column), rows, columns, room)``, with the block's address in each operand, its
position, its size, and the thread's scratch memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np

from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Device, device
from ..codegen.memory import load_i64, scratch_memory
from ..threading.task import Task, each_chunk

__all__ = [
    "BLOCK",
    "OUTER",
    "Addresses",
    "NestJob",
    "Place",
    "nest_fields",
    "nest_task",
    "row_stride",
    "align_strides",
    "collapse_axes",
    "contiguous_strides",
    "permute_constant",
    "operand_axes",
    "memory_order",
]

# Elements of a block, which fits the L1 cache; the most plane axes, besides rows and columns; the operands with the result.
BLOCK, OUTER, OPERANDS = 1 << 12, 6, 4
# The fewest units of a nest whose blocks are small.
MIN_UNITS = 8

Addresses: TypeAlias = tuple[int, int, int, int]
Place: TypeAlias = tuple[int, int, int]
Axes: TypeAlias = Sequence[tuple[int, ...]]
"""For each axis, innermost first: its length, and the byte stride of each operand, the result first."""


class NestJob(Descriptor):
    """Parameters of a `nest_task`; kernels derive jobs with more fields.

    ``lengths`` has the lengths of the plane axes, innermost first. ``strides`` has, for each operand, the strides of
    columns, rows and the plane axes. ``room`` is the size of each thread's scratch memory in bytes.
    """

    blocks: i64
    unit_blocks: i64
    rows: i64
    columns: i64
    block_rows: i64
    block_columns: i64
    room: i64
    axes: i64
    lengths: Annotated[int, (np.int64, (OUTER,))]
    strides: Annotated[int, (np.int64, (OPERANDS * (OUTER + 2),))]


@device
def row_stride(job: NestJob, operand: int) -> int:
    """Return the bytes between rows of an operand; ``operand`` is 0 for the result, and 1 to 3 for A to C."""
    stride: int = load_i64(job.strides, (OUTER + 2) * operand + 1)
    return stride


@device
def _offset(job: NestJob, operand: int, axis: int, index: int) -> int:
    """Return the byte offset of ``index`` along ``axis`` of an operand: 0 for columns, 1 for rows, then plane axes."""
    offset: int = index * load_i64(job.strides, (OUTER + 2) * operand + axis)
    return offset


@device
def _locate(job: NestJob, operands: Addresses, place: Place) -> Addresses:
    """Return the address of the element at ``place`` in each operand."""
    (out, a, b, c), (plane, row, column) = operands, place
    out += _offset(job, 0, 0, column) + _offset(job, 0, 1, row)
    a += _offset(job, 1, 0, column) + _offset(job, 1, 1, row)
    b += _offset(job, 2, 0, column) + _offset(job, 2, 1, row)
    c += _offset(job, 3, 0, column) + _offset(job, 3, 1, row)
    for axis in range(job.axes):
        length = load_i64(job.lengths, axis)
        rest = plane // length
        index = plane - rest * length
        out += _offset(job, 0, axis + 2, index)
        a += _offset(job, 1, axis + 2, index)
        b += _offset(job, 2, axis + 2, index)
        c += _offset(job, 3, axis + 2, index)
        plane = rest
    return out, a, b, c


def nest_task(name: str, body: Device[..., None]) -> Task:
    """Return a task that calls ``body`` for each block of a loop nest."""

    def run_nest(call: int, job: NestJob, out: int, a: int, b: int, c: int) -> None:
        rows, columns, tall, wide = job.rows, job.columns, job.block_rows, job.block_columns
        across = (columns + wide - 1) // wide
        per_plane = (rows + tall - 1) // tall * across
        room = scratch_memory(job.room) if job.room != 0 else 0
        for start, end in each_chunk(call, job.blocks, job.unit_blocks):
            for block in range(start, end):
                plane = block // per_plane
                rest = block - plane * per_plane
                strip = rest // across
                row, column = strip * tall, (rest - strip * across) * wide
                place = plane, row, column
                body(
                    job, _locate(job, (out, a, b, c), place), place, min(tall, rows - row), min(wide, columns - column),
                    room,
                )  # fmt: skip

    return Task(run_nest, name)


def nest_fields(axes: Axes, most_columns: int = BLOCK, block: int = BLOCK) -> dict[str, object] | None:
    """Return the fields of a `NestJob` except ``room``, or ``None`` if there are too many axes.

    Args:
        axes: at least one axis: columns, then rows, then the plane axes.
        most_columns: the most columns of a block.
        block: the target number of elements of a block and of a unit; units are smaller if there would be too few.
    """
    if len(axes) > OUTER + 2:
        return None
    operands = len(axes[0]) - 1
    none = (1, *[0] * operands)
    columns, rows, *outer = [*axes, *[none] * max(0, 2 - len(axes))]
    outer = [axis for axis in outer if axis[0] != 1]
    wide = max(min(columns[0], most_columns), 1)
    tall = max(min(block // wide, rows[0]), 1)
    planes = math.prod(length for length, *_ in outer)
    blocks = planes * -(-rows[0] // tall) * -(-columns[0] // wide)
    whole = [columns, rows, *outer, *[none] * (OUTER - len(outer))]
    unused = (0,) * (OUTER + 2)
    strides = [
        tuple(axis[1 + index] for axis in whole) if index < operands else unused for index in range(OPERANDS)
    ]
    return {
        "blocks": blocks, "unit_blocks": max(min(block // (tall * wide), blocks // MIN_UNITS), 1), "rows": rows[0],
        "columns": columns[0], "block_rows": tall, "block_columns": wide, "axes": len(outer),
        "lengths": tuple(length for length, *_ in whole[2:]), "strides": tuple(n for row in strides for n in row),
    }  # fmt: skip


# The default number of axes after `collapse_axes`.
AXES = 3


def memory_order(x: Array) -> tuple[int, ...]:
    """Return the axes ordered by decreasing stride.

    If no axis is contiguous, return the order for a copy: C order, or channels-last for four or more axes.
    """
    axes = tuple(range(x.ndim))
    if x.flags.c_contiguous:
        return axes
    by_stride = tuple(sorted(axes, key=lambda axis: (-abs(x.strides[axis]), axis)))
    if x.transpose(by_stride).flags.c_contiguous or x.strides[by_stride[-1]] == x.itemsize:
        return by_stride
    return axes if x.ndim < 4 else (0, *axes[2:], 1)


def align_strides(
    shape: tuple[int, ...], strides: Sequence[int], ours: tuple[int, ...], order: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the strides of an operand broadcast to shape ``ours``, permuted by ``order``; ``None`` if it cannot broadcast."""
    if len(shape) > len(ours):
        return None
    lengths = (1,) * (len(ours) - len(shape)) + shape
    if any(n not in (1, m) for n, m in zip(lengths, ours, strict=True)):
        return None
    steps = (0,) * (len(ours) - len(shape)) + tuple(strides)
    return tuple(steps[axis] if lengths[axis] != 1 else 0 for axis in order)


def operand_axes(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axis order of an operand of a shape, which may lack leading axes, given the ``order`` of the result."""
    missing = len(order) - len(shape)
    return tuple(axis - missing for axis in order if axis >= missing)


def permute_constant(constant: Array, order: tuple[int, ...]) -> Array:
    """Return a contiguous copy of a constant with its axes permuted by the ``order`` of the result."""
    return np.ascontiguousarray(constant.transpose(operand_axes(constant.shape, order)))


def contiguous_strides(shape: tuple[int, ...], order: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """Return the byte strides of a contiguous f32 array whose axes are stored in ``order``; by default C order."""
    axes, step = tuple(range(len(shape))) if order is None else order, 4
    strides = [0] * len(shape)
    for axis in reversed(axes):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def collapse_axes(
    shape: tuple[int, ...], operands: Sequence[tuple[int, ...]], most: int = AXES
) -> tuple[tuple[int, ...], list[tuple[int, ...]]] | None:
    """Merge adjacent axes where the strides of the result and all operands allow it.

    Returns the lengths of the merged axes, padded to at least three, and the byte strides of each operand along them;
    ``None`` if more than ``most`` axes remain, or if an operand's innermost stride is neither 4 nor 0 bytes.

    Args:
        shape: the shape of the contiguous f32 result.
        operands: the byte strides of each operand; 0 for broadcast axes.
        most: the most axes to return.
    """
    groups: list[tuple[int, tuple[int, ...]]] = []
    for length, *steps in zip(shape, contiguous_strides(shape), *operands, strict=True):
        if length == 1:
            continue
        before = groups[-1] if groups else None
        if before is not None and all(
            far == length * near for far, near in zip(before[1], steps, strict=True)
        ):
            length *= groups.pop()[0]
        groups.append((length, tuple(steps)))
    if len(groups) > most or (groups and any(step not in (0, 4) for step in groups[-1][1])):
        return None
    groups = [(1, (0,) * (1 + len(operands)))] * (AXES - len(groups)) + groups
    strides = [tuple(steps[1 + index] for _, steps in groups) for index in range(len(operands))]
    return tuple(length for length, _ in groups), strides
