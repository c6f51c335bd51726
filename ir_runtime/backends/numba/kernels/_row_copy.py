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
from ..threading.task import UNUSED, Task, load_args, next_unit
from ._rows import copy_row
from ._strided_copy import merged_copy_axes

__all__ = ["ROW_COPY", "copy_rows", "row_copy_job", "strided_row_job"]

# Axes of rows, and about how many numbers a unit copies.
AXES, UNIT_SIZE = 3, 1 << 12
# Numbers from which several threads are faster.
MIN_PARALLEL_SIZE = 1 << 15


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
    job, out, x, _, _, _ = load_args(call)
    rows, some = load_i64(job, RowCopyJob.rows), load_i64(job, RowCopyJob.unit_rows)
    length = load_i64(job, RowCopyJob.length)
    units = (rows + some - 1) // some
    first = next_unit(call, units) * some
    while first < rows:
        for row in range(first, min(first + some, rows)):
            source, target, place = x, out, row
            for axis in range(AXES):
                count = load_i64(job, RowCopyJob.lengths + axis)
                rest = place // count
                at = place - rest * count
                source += at * load_i64(job, RowCopyJob.strides + axis)
                target += at * load_i64(job, RowCopyJob.result_strides + axis)
                place = rest
            copy_row(source, length, target)
        first = next_unit(call, units) * some


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
    shape: tuple[int, ...], strides: tuple[int, ...], widths: tuple[int, ...]
) -> Array | None:
    """Return the job that copies 4-byte numbers between these strides; ``None`` where rows are short, and for many axes."""
    (length, *steps), *outer = merged_copy_axes(shape, strides, widths) or [(0, 0, 0)]
    return row_copy_job(length, outer) if length >= LANES and steps == [4, 4] else None


def copy_rows(x: Array, out: Array) -> bool:
    """Copy 4-byte numbers to an array of the same shape by rows; return whether they have rows that are long enough."""
    job = strided_row_job(x.shape, x.strides, out.strides) if x.itemsize == out.itemsize == 4 else None
    if job is None or x.dtype.hasobject:
        return False
    if x.size:
        count = threads() if x.size >= MIN_PARALLEL_SIZE else 1
        parallel_for(ROW_COPY.address, job, out, x, UNUSED, UNUSED, count)
    return True
