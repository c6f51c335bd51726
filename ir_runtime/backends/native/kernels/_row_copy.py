"""Copies of the rows of a part of an array, as of a map whose border is cut off, by several threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

import numpy as np

from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.memory import load_i64
from ..codegen.vectors import LANES
from ..threading.parallel import parallel_for, threads
from ..threading.recording import is_recording
from ..threading.task import UNUSED, Task, each_chunk, load_args
from ._rows import copy_row
from ._strided_copy import merged_copy_axes, strided_copy

__all__ = ["ROW_COPY", "copy_rows", "recorded_copy", "row_copy_job", "strided_row_job"]

# Axes of rows, and about how many numbers a unit copies.
AXES, UNIT_SIZE = 3, 1 << 12
# Numbers from which several threads are faster, and the most equal rows that what has no gaps is divided into for them.
MIN_PARALLEL_SIZE, MAX_PARTS = 1 << 15, 64
WORD = 4


class RowCopyJob(Descriptor):
    """The job of `ROW_COPY`: how many rows there are, in all and in a unit, and numbers of one.

    ``lengths``, and ``strides`` and ``result_strides`` in bytes, are those of the axes of rows, innermost first.
    """

    rows: i64
    unit_rows: i64
    length: i64
    lengths: Annotated[int, (np.int64, (AXES,))]
    strides: Annotated[int, (np.int64, (AXES,))]
    result_strides: Annotated[int, (np.int64, (AXES,))]


def _copy_rows(call: int) -> None:
    address, out, x, _, _, _ = load_args(call)
    job = RowCopyJob.at(address)
    rows, some = job.rows, job.unit_rows
    length = job.length
    for first, end in each_chunk(call, rows, some):
        for row in range(first, end):
            source, target, place = x, out, row
            for axis in range(AXES):
                count = load_i64(job, RowCopyJob.lengths + axis)
                rest = place // count
                at = place - rest * count
                source += at * load_i64(job, RowCopyJob.strides + axis)
                target += at * load_i64(job, RowCopyJob.result_strides + axis)
                place = rest
            copy_row(source, length, target)


ROW_COPY = Task(_copy_rows)
"""Copy the rows of A to those of the result."""


def row_copy_job(length: int, axes: Sequence[tuple[int, int, int]]) -> Array | None:
    """Return the job that copies rows of 4-byte numbers; ``None`` for too many axes.

    Args:
        length: of a row.
        axes: length, stride and stride in the result, in bytes, of each axis of rows, innermost first.
    """
    if len(axes) > AXES:
        return None
    lengths, strides, result_strides = zip(*axes, *[(1, 0, 0)] * (AXES - len(axes)), strict=True)
    return RowCopyJob.fill(
        rows=math.prod(lengths),
        unit_rows=max(UNIT_SIZE // length, 1),
        length=length,
        lengths=lengths,
        strides=strides,
        result_strides=result_strides,
    )


@lru_cache(maxsize=256)
def strided_row_job(
    shape: tuple[int, ...], strides: tuple[int, ...], widths: tuple[int, ...], size: int = WORD
) -> Array | None:
    """Return the job that copies numbers of 4 or 8 bytes between these strides; ``None`` where rows are short, and for many axes."""
    (length, *steps), *outer = merged_copy_axes(shape, strides, widths) or [(0, 0, 0)]
    words = length * size // WORD
    if words < LANES or steps != [size, size]:
        return None
    if not outer and words >= MIN_PARALLEL_SIZE:
        parts = math.gcd(words, MAX_PARTS)
        words //= parts
        outer = [(parts, WORD * words, WORD * words)]
    return row_copy_job(words, outer)


def copy_rows(x: Array, out: Array) -> bool:
    """Copy numbers of 4 or 8 bytes to an array of the same shape and dtype by rows; return whether these are long enough."""
    if x.itemsize not in (WORD, 2 * WORD) or x.dtype.hasobject:
        return False
    if (job := strided_row_job(x.shape, x.strides, out.strides, x.itemsize)) is None:
        return False
    if x.size:
        count = threads() if x.size >= MIN_PARALLEL_SIZE else 1
        parallel_for(ROW_COPY.address, job, out, x, UNUSED, UNUSED, count)
    return True


def recorded_copy(x: Array, out: Array) -> bool:
    """Copy an array to one of the same shape and dtype by a task, where a run is recorded; return whether that was done."""
    return x.size > 0 and is_recording() and (copy_rows(x, out) or strided_copy(x, out))
