"""Elements scattered along an axis, in order, without indices for other axes: added up, as messages in graph networks, or replaced."""

from __future__ import annotations

import math

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.movement.scatter import (
    ScatterElementsUpdate3,
    ScatterElementsUpdate12,
    ScatterElementsUpdateBase,
)
from ... import Kernel
from ...common.kept_memory import empty
from ...common.scatter import replacement_axis, scattered_lengths, sum_axis
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device
from ..codegen.memory import fetch_add, load_f32, load_i64, store_f32
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.recording import is_recording, was_refused
from ..threading.task import UNUSED, Task, each_counted, load_args
from ._copy import COPY, recorded_copy
from ._packed_epilogue import add_rows
from ._rows import copy_row
from .contiguous import contiguous

__all__ = ["SCATTER", "ScatterJob", "copied"]

# Columns of a unit.
COLUMNS_PER_UNIT = 64


class ScatterJob(Descriptor):
    """The job of `SCATTER`: data ``[blocks, length, columns]``, and ``count`` indices in place of ``length``.

    Strides of the indices are in elements; ``refused`` counts those that are out of range.
    """

    blocks: i64
    length: i64
    columns: i64
    count: i64
    block_stride: i64
    row_stride: i64
    column_stride: i64
    replaces: i64
    refused: i64


@device
def _place(indices: int, at: int, length: int) -> int:
    """Return an index counted from the front, or -1 if it is out of range."""
    index = load_i64(indices, at)
    if index < 0:
        index += length
    return index if 0 <= index < length else -1


@device
def _scatter_columns(job: ScatterJob, out: int, indices: int, updates: int, first: int, count: int) -> None:
    """Write the updates of some columns of a block, or add them; addresses are those of the block."""
    length, columns = job.length, job.columns
    along, across = job.row_stride, job.column_stride
    replaces = job.replaces
    for row in range(job.count):
        if across == 0:
            place = _place(indices, row * along, length)
            if place < 0:
                fetch_add(job + 8 * ScatterJob.refused)
            elif replaces != 0:
                copy_row(updates + 4 * (row * columns + first), count, out + 4 * (place * columns + first))
            else:
                add_rows(out + 4 * (place * columns + first), updates + 4 * (row * columns + first), count)
            continue
        for column in range(first, first + count):
            place = _place(indices, row * along + column * across, length)
            if place < 0:
                fetch_add(job + 8 * ScatterJob.refused)
            else:
                at, update = place * columns + column, load_f32(updates, row * columns + column)
                store_f32(out, at, update if replaces != 0 else load_f32(out, at) + update)


def _scatter(call: int) -> None:
    """Write or add updates; a unit is a block of neighbouring columns."""
    address, out, indices, updates, _, counter = load_args(call)
    job = ScatterJob.at(address)
    columns, count = job.columns, job.count
    parts = (columns + COLUMNS_PER_UNIT - 1) // COLUMNS_PER_UNIT
    for unit in each_counted(counter, job.blocks * parts):
        block = unit // parts
        first = (unit - block * parts) * COLUMNS_PER_UNIT
        _scatter_columns(
            job, out + 4 * block * job.length * columns,
            indices + 8 * block * job.block_stride, updates + 4 * block * count * columns,
            first, min(COLUMNS_PER_UNIT, columns - first),
        )  # fmt: skip


SCATTER = Task(_scatter)
"""Writes the updates B to the result at the indices A, or adds them."""


@backend.accelerates(ScatterElementsUpdate12)
def scatter_sum(
    op: ScatterElementsUpdate12, data: Value, indices: Value, updates: Value, axis: Value
) -> Kernel | None:
    """Return a kernel for f32 sums along a constant axis."""
    along = sum_axis(op, data, indices, updates, axis)
    return None if along is None else _kernel(op, along, replaces=False)


@backend.accelerates(ScatterElementsUpdate3, ScatterElementsUpdate12)
def scatter(
    op: ScatterElementsUpdateBase, data: Value, indices: Value, updates: Value, axis: Value
) -> Kernel | None:
    """Return a kernel for f32 that are replaced along a constant axis."""
    along = replacement_axis(op, data, indices, updates, axis)
    return None if along is None else _kernel(op, along, replaces=True)


def _kernel(op: ScatterElementsUpdateBase, along: int, replaces: bool) -> Kernel:
    """Return the kernel; where an index is out of range, the reference refuses it."""
    SCATTER.prepare()
    COPY.prepare()  # which a recording calls

    def kernel(data: Array, indices: Array, updates: Array, axis: Array) -> Array:
        lead, tail = data.shape[:along], data.shape[along + 1 :]
        count, columns = indices.shape[along], math.prod(tail)
        if not indices.shape == updates.shape == (*lead, count, *tail):
            return op.evaluate(data, indices, updates, axis)
        if (out := copied(data)) is None:
            return op.evaluate(data, indices, updates, axis)
        is_repeated = _is_repeated(indices, along)
        places = indices.reshape(*lead, count, -1)[..., 0] if is_repeated else indices
        across = 1 if is_repeated else columns
        job = ScatterJob.fill(
            blocks=math.prod(lead), length=data.shape[along], columns=columns, count=count, block_stride=count * across,
            row_stride=across, column_stride=not is_repeated, replaces=replaces, refused=0,
        )  # fmt: skip
        shared = threads_for(steps=updates.size // 8)
        words = np.ascontiguousarray(places, np.int64)
        parallel_for(SCATTER.address, job, out, words, contiguous(updates), UNUSED, shared)
        return op.evaluate(data, indices, updates, axis) if was_refused(job, ScatterJob.refused) else out

    return Kernel(kernel, accepts=scattered_lengths(along), replay=replayed())


def copied(data: Array) -> Array | None:
    """Return a copy of numbers in C order; ``None`` where a run is recorded, and no task can make it."""
    if not is_recording():
        return np.array(data, order="C")
    out = empty(data.shape, data.dtype)
    return out if recorded_copy(data, out) else None


def _is_repeated(indices: Array, axis: int) -> bool:
    """Return whether indices are broadcast along all axes behind one."""
    behind = zip(indices.shape[axis + 1 :], indices.strides[axis + 1 :], strict=True)
    several = indices.ndim > axis + 1 and indices.size > 0
    return several and all(length == 1 or not stride for length, stride in behind)
