"""Contiguous copies of f32 arrays whose neighbours in memory are not neighbours in the copy, as between NCHW and NHWC.

NumPy moves one number at a time. Here squares of `LANES` vectors are transposed in registers, in blocks that stay in the
L1 cache.
"""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from itertools import accumulate
from typing import Annotated

import numpy as np

from ....ir.tensor import Array
from ...common.kept_memory import empty
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.memory import load_i64
from ..codegen.vectors import LANES, Emit
from ..threading.parallel import parallel_for, threads
from ..threading.recording import RECORD
from ..threading.task import UNUSED, Task, each_unit, load_args
from ._row_copy import ROW_COPY, row_copy_job
from ._rows import emit_transpose, transpose_square
from ._strided_copy import strided_copy

__all__ = ["contiguous", "contiguous_rows", "merged_axes"]

# Arrays with fewer elements are left to NumPy; from how many on several threads are faster.
MIN_SIZE = 1 << 11
MIN_PARALLEL_WORK = 1 << 15
# Numbers of a block, and rows and columns of one where there are enough.
BLOCK = 1 << 12
SIDE = 64
# Axes beside the two that change places.
OUTER = 3


class TransposeJob(Descriptor):
    """The job of `TRANSPOSE`: ``rows`` are contiguous in the data, ``columns`` in the result; strides in bytes.

    Of the other axes, the innermost is first.
    """

    rows: i64
    columns: i64
    column_stride: i64
    row_stride: i64
    block_rows: i64
    block_columns: i64
    units: i64
    lengths: Annotated[int, (np.int64, (OUTER,))]
    strides: Annotated[int, (np.int64, (OUTER,))]
    result_strides: Annotated[int, (np.int64, (OUTER,))]


@instruction(*[types.int64] * 6)
def _transpose_part(
    emit: Emit, x: ir.Value, stride: ir.Value, columns: ir.Value, rows: ir.Value, out: ir.Value, width: ir.Value
) -> None:  # fmt: skip
    """Transpose at most `LANES` columns, ``stride`` bytes apart, into as many rows, ``width`` bytes apart."""
    emit_transpose(emit, x, stride, columns, rows, out, width, emit.masked_access(columns)[1])


def _transpose(call: int) -> None:
    """Transpose blocks; the last squares of a row or column reach back over those before them."""
    address, out, x, _, _, _ = load_args(call)
    job = TransposeJob.at(address)
    rows, columns = job.rows, job.columns
    apart, width = job.column_stride, job.row_stride
    tall, wide = job.block_rows, job.block_columns
    down, across = (rows + tall - 1) // tall, (columns + wide - 1) // wide
    units = job.units
    for unit in each_unit(call, units):
        rest = unit // across
        left = (unit - rest * across) * wide
        plane = rest // down
        top = (rest - plane * down) * tall
        source, target = x, out
        for axis in range(OUTER):
            length = load_i64(job, TransposeJob.lengths + axis)
            place = plane % length
            source += place * load_i64(job, TransposeJob.strides + axis)
            target += place * load_i64(job, TransposeJob.result_strides + axis)
            plane = plane // length
        for row in range(top, min(top + tall, rows), LANES):
            r = max(min(row, rows - LANES), 0)
            for column in range(left, min(left + wide, columns), LANES):
                c = max(min(column, columns - LANES), 0)
                start, at = source + 4 * r + c * apart, target + 4 * c + r * width
                if rows >= LANES and columns >= LANES:
                    transpose_square(start, apart, at, width)
                else:
                    _transpose_part(start, apart, min(columns, LANES), min(rows, LANES), at, width)


TRANSPOSE = Task(_transpose)
"""Write A to the result with two axes exchanged; a unit is a block of rows and columns."""


def contiguous(x: Array) -> Array:
    """Return an array in C order, without a copy if it is; where a run is recorded, a copy of few elements is a task, too."""
    if x.flags.c_contiguous:
        return x
    found = _job(x.shape, x.strides) if x.itemsize == 4 and x.size >= MIN_SIZE else None
    y = empty(x.shape, x.dtype)
    if found is None:
        if RECORD.get() is None or not strided_copy(x, y):
            y[...] = x
        return y
    count = threads() if x.size >= MIN_PARALLEL_WORK else 1
    task, job = found
    parallel_for(task.address, job, y, x, UNUSED, UNUSED, count)
    return y


def reshaped(x: Array, shape: tuple[int, ...]) -> Array:
    """Return an array in another shape, as a view if memory allows."""
    return (x if is_view(x, shape) else contiguous(x)).reshape(shape)


def is_view(x: Array, shape: tuple[int, ...]) -> bool:
    """Return whether an array has another shape without a copy."""
    return not x.size or _is_view(x.shape, x.strides, shape)


@lru_cache(maxsize=256)
def _is_view(shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether no axis of a target shape is made of axes that are not one in memory."""
    lengths = [length for length, *_ in reversed(merged_axes(shape, strides))]
    return set(accumulate(lengths, operator.mul)).issubset(accumulate(reversed(target), operator.mul))


def contiguous_rows(x: Array) -> Array:
    """Return an array whose last axis is contiguous, without a copy if it is."""
    return x if x.strides[-1] == x.itemsize or x.shape[-1] == 1 else contiguous(x)


@lru_cache(maxsize=256)
def _job(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[Task, Array] | None:
    """Return the task and job of a copy; ``None`` where rows are not contiguous, where they are short, and for too many axes."""
    axes = merged_axes(shape, strides)
    if len(axes) > 1 and axes[-1][1] == 4 and axes[-1][0] >= LANES:
        job = row_copy_job(axes[-1][0], axes[-2::-1])
        return None if job is None else (ROW_COPY, job)
    columns, apart, _ = axes.pop()
    place = next((index for index, (_, stride, _) in enumerate(axes) if stride == 4), None)
    if apart == 4 or place is None or len(axes) > OUTER + 1:
        return None
    rows, _, width = axes.pop(place)
    outer = [*reversed(axes), *[(1, 0, 0)] * (OUTER - len(axes))]
    lengths, steps, result_steps = zip(*outer, strict=True)
    tall = min(max(SIDE, BLOCK // _whole(columns)), _whole(rows)) // LANES * LANES
    wide = min(max(SIDE, BLOCK // tall), _whole(columns)) // LANES * LANES
    job = TransposeJob.fill(
        rows=rows, columns=columns, column_stride=apart, row_stride=width, block_rows=tall, block_columns=wide,
        units=math.prod(lengths) * -(-rows // tall) * -(-columns // wide), lengths=lengths, strides=steps,
        result_strides=result_steps,
    )  # fmt: skip
    return TRANSPOSE, job


def merged_axes(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Return length, stride and stride in the copy of each axis; axes that are like one in both are merged."""
    axes: list[tuple[int, int, int]] = []
    width = 4
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length == 1:
            continue
        if axes and stride == axes[0][0] * axes[0][1]:
            inner = axes.pop(0)
            axes.insert(0, (length * inner[0], *inner[1:]))
        else:
            axes.insert(0, (length, stride, width))
        width *= length
    return axes


def _whole(count: int) -> int:
    """Return how many numbers the vectors for ``count`` have."""
    return -(-count // LANES) * LANES
