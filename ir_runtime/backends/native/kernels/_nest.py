"""Loop nests: the schedule of copy and map kernels over an iteration space of planes, rows and columns.

A nest is divided into blocks of rows and columns of a plane; a unit is one block, or several small ones. Each
operand, including the result, has its own strides along all axes, 0 where it is broadcast. A kernel supplies
the body, which processes a block: ``body(job, (out, a, b, c), (plane, row, column), rows, columns, room)``,
with the address of the block in each operand, its position, its size, and scratch memory of the thread.
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
    "aligned_strides",
    "collapse_axes",
    "contiguous_strides",
    "in_memory_order",
    "operand_axes",
    "stored",
]

# Elements of a block, which stays in the L1 cache; axes of planes, besides rows and columns; the result and the inputs.
BLOCK, OUTER, OPERANDS = 1 << 12, 6, 4
# The fewest units of a nest whose blocks are small.
MIN_UNITS = 8

Addresses: TypeAlias = tuple[int, int, int, int]
Place: TypeAlias = tuple[int, int, int]
Axes: TypeAlias = Sequence[tuple[int, ...]]
"""For each axis, innermost first: its length, and the byte stride of each operand, the result first."""


class NestJob(Descriptor):
    """The job of a `nest_task`; kernels extend it.

    ``lengths`` are those of the plane axes, innermost first; each operand's ``strides`` are those of columns,
    rows and these axes. ``room`` is the scratch memory of a thread in bytes.
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
    """Return the bytes between rows of an operand."""
    stride: int = load_i64(job.strides, (OUTER + 2) * operand + 1)
    return stride


@device
def _offset(job: NestJob, operand: int, axis: int, index: int) -> int:
    """Return the offset of an index along columns, rows, or a plane axis."""
    offset: int = index * load_i64(job.strides, (OUTER + 2) * operand + axis)
    return offset


@device
def _locate(job: NestJob, operands: Addresses, place: Place) -> Addresses:
    """Return the address of an element in all operands."""
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
    """Return the task that calls the body for each block of a nest."""

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
    """Return the fields of a job except ``room``; ``None`` for too many axes.

    Args:
        axes: the axes, at least one: columns, rows, then those of planes.
        most_columns: the most columns of a block.
        block: the approximate number of elements of a block and of a unit, reduced if that gives too few
            units.
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


# Axes of a program.
AXES = 3


def stored(x: Array) -> tuple[int, ...]:
    """Return the axes in memory order; channels-last for maps whose rows are not contiguous."""
    axes = tuple(range(x.ndim))
    if x.flags.c_contiguous:
        return axes
    by_stride = tuple(sorted(axes, key=lambda axis: (-abs(x.strides[axis]), axis)))
    if x.transpose(by_stride).flags.c_contiguous or x.strides[by_stride[-1]] == x.itemsize:
        return by_stride
    return axes if x.ndim < 4 else (0, *axes[2:], 1)


def aligned_strides(
    shape: tuple[int, ...], strides: Sequence[int], ours: tuple[int, ...], order: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the strides of an operand broadcast to ``ours``, with reordered axes; ``None`` if it does not broadcast."""
    if len(shape) > len(ours):
        return None
    lengths = (1,) * (len(ours) - len(shape)) + shape
    if any(n not in (1, m) for n, m in zip(lengths, ours, strict=True)):
        return None
    steps = (0,) * (len(ours) - len(shape)) + tuple(strides)
    return tuple(steps[axis] if lengths[axis] != 1 else 0 for axis in order)


def operand_axes(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axis order for an operand that may have fewer axes."""
    missing = len(order) - len(shape)
    return tuple(axis - missing for axis in order if axis >= missing)


def in_memory_order(constant: Array, order: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(constant.transpose(operand_axes(constant.shape, order)))


def contiguous_strides(shape: tuple[int, ...], order: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """Return the strides of contiguous f32 with its axes in a given memory order."""
    axes, step = tuple(range(len(shape))) if order is None else order, 4
    found = [0] * len(shape)
    for axis in reversed(axes):
        found[axis] = step
        step *= shape[axis]
    return tuple(found)


def collapse_axes(
    shape: tuple[int, ...], operands: Sequence[tuple[int, ...]], most: int = AXES
) -> tuple[tuple[int, ...], list[tuple[int, ...]]] | None:
    """Return the lengths of at least three axes, and each operand's strides along them, in bytes.

    Neighbouring axes are merged if the result and all operands allow it. Returns ``None`` for too many axes,
    and if elements along the innermost axis are neither adjacent in an operand nor the same.

    Args:
        shape: the shape of the contiguous result.
        operands: the strides of each operand; 0 for broadcast axes.
        most: the most axes.
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
