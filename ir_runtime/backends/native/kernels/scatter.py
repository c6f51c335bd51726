"""Scatter along an axis and at index tuples, and GatherND.

Along an axis, updates are added, as for messages in graph networks, or replace elements in order. Index tuples
are first converted to flat positions. Constant tuples that form a grid, as from an assignment to part of a
tensor, become copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np

from ....errors import InferenceError
from ....ir.element import ElementType
from ....ir.tensor import Array, Value
from ....ops.movement.gather import GatherND5, GatherND8, GatherNDBase
from ....ops.movement.scatter import (
    ScatterElementsUpdate3,
    ScatterElementsUpdate12,
    ScatterElementsUpdateBase,
    ScatterNDUpdate4,
    ScatterNDUpdate15,
    ScatterNDUpdateBase,
)
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import is_f32
from ...common.scatter import replacement_axis, scattered_lengths, sum_axis
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device
from ..codegen.memory import fetch_add, load_f32, load_i64, store_f32, store_i64
from ..threading.capture import replayed
from ..threading.parallel import is_recording, parallel_for, threads_for, was_refused
from ..threading.task import UNUSED, Task, each_chunk, each_counted, shared_counters
from ._copy import COPY, SIZES, contiguous, copy_if_recording
from ._epilogue import add_rows
from ._indices import index_grid, load_index
from ._rows import copy_row
from .gather import GatherElementsJob, gather_elements_task, gather_job

__all__: list[str] = []

# Columns of a unit.
COLUMNS_PER_UNIT = 64


class ScatterJob(Descriptor):
    """Parameters of `_scatter`: data ``[blocks, length, columns]``, and ``count`` indices along ``length``.

    Strides are those of the indices, in elements. Updates are added unless the job ``replaces`` elements.
    ``refused`` counts indices out of range.
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
def _load_place(indices: int, at: int, length: int) -> int:
    """Load the index with number ``at``, counted from the start of the axis; return -1 if it is out of range."""
    index = load_i64(indices, at)
    if index < 0:
        index += length
    return index if 0 <= index < length else -1


@device
def _scatter_columns(job: ScatterJob, out: int, indices: int, updates: int, first: int, count: int) -> None:
    """Write or add the updates of ``count`` columns of a block; addresses are those of the block."""
    length, columns = job.length, job.columns
    along, across = job.row_stride, job.column_stride
    replaces = job.replaces
    for row in range(job.count):
        if across == 0:
            place = _load_place(indices, row * along, length)
            if place < 0:
                fetch_add(job + 8 * ScatterJob.refused)
            elif replaces != 0:
                copy_row(updates + 4 * (row * columns + first), count, out + 4 * (place * columns + first))
            else:
                add_rows(out + 4 * (place * columns + first), updates + 4 * (row * columns + first), count)
            continue
        for column in range(first, first + count):
            place = _load_place(indices, row * along + column * across, length)
            if place < 0:
                fetch_add(job + 8 * ScatterJob.refused)
            else:
                at, update = place * columns + column, load_f32(updates, row * columns + column)
                store_f32(out, at, update if replaces != 0 else load_f32(out, at) + update)


@Task
def _scatter(call: int, job: ScatterJob, out: int, indices: int, updates: int) -> None:
    """Write or add the updates B to the result at the indices A; a work unit is a block of columns."""
    counter = shared_counters(call)
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


@backend.accelerates(ScatterElementsUpdate12)
def scatter_sum(
    op: ScatterElementsUpdate12, data: Value, indices: Value, updates: Value, axis: Value
) -> Kernel | None:
    """Return a ScatterElementsUpdate kernel that adds f32 along a constant axis."""
    along = sum_axis(op, data, indices, updates, axis)
    return None if along is None else _kernel(op, along, replaces=False)


@backend.accelerates(ScatterElementsUpdate3, ScatterElementsUpdate12)
def scatter(
    op: ScatterElementsUpdateBase, data: Value, indices: Value, updates: Value, axis: Value
) -> Kernel | None:
    """Return a ScatterElementsUpdate kernel that replaces f32 along a constant axis."""
    along = replacement_axis(op, data, indices, updates, axis)
    return None if along is None else _kernel(op, along, replaces=True)


def _kernel(op: ScatterElementsUpdateBase, along: int, replaces: bool) -> Kernel:
    """Return a kernel that replaces or adds elements along an axis; the reference reports indices out of range."""
    _scatter.prepare()
    COPY.prepare()  # called in recorded runs

    def kernel(data: Array, indices: Array, updates: Array, axis: Array) -> Array:
        lead, tail = data.shape[:along], data.shape[along + 1 :]
        count, columns = indices.shape[along], math.prod(tail)
        if not indices.shape == updates.shape == (*lead, count, *tail):
            return op.evaluate(data, indices, updates, axis)
        if (out := copy_data(data)) is None:
            return op.evaluate(data, indices, updates, axis)
        is_repeated = _is_repeated(indices, along)
        places = indices.reshape(*lead, count, -1)[..., 0] if is_repeated else indices
        across = 1 if is_repeated else columns
        job = ScatterJob.fill(
            blocks=math.prod(lead), length=data.shape[along], columns=columns, count=count,
            block_stride=count * across, row_stride=across, column_stride=not is_repeated, replaces=replaces,
            refused=0,
        )  # fmt: skip
        shared = threads_for(steps=updates.size // 8)
        words = np.ascontiguousarray(places, np.int64)
        parallel_for(_scatter.address, job, out, words, contiguous(updates), UNUSED, shared)
        return op.evaluate(data, indices, updates, axis) if was_refused(job, ScatterJob.refused) else out

    return Kernel(kernel, accepts=scattered_lengths(along), replay=replayed())


def copy_data(data: Array) -> Array | None:
    """Return a copy in C order; ``None`` in a recorded run if no task can copy the data."""
    if not is_recording():
        return np.array(data, order="C")
    out = empty(data.shape, data.dtype)
    return out if copy_if_recording(data, out) else None


def _is_repeated(indices: Array, axis: int) -> bool:
    """Return whether there are indices and axes after ``axis``, and the indices are broadcast along all of these."""
    after = zip(indices.shape[axis + 1 :], indices.strides[axis + 1 :], strict=True)
    several = indices.ndim > axis + 1 and indices.size > 0
    return several and all(length == 1 or not stride for length, stride in after)


# Maximum number of axes of a grid of constant indices.
MAX_AXES = 6


@backend.accelerates(ScatterNDUpdate4, ScatterNDUpdate15)
def scatter_part(op: ScatterNDUpdateBase, data: Value, indices: Value, updates: Value) -> Kernel | None:
    """Return a ScatterNDUpdate kernel for data of static shape and constant indices that form a grid.

    Indices must be unique. All element types but strings are supported.
    """
    constant, dtype = indices.known(), data.element.dtype
    if isinstance(op, ScatterNDUpdate15) and op.reduction != "none":
        return None
    if constant is None or not data.shape.is_static or dtype.hasobject or dtype.itemsize not in SIZES:
        return None
    shape = data.shape.static
    size, places = math.prod(shape[constant.shape[-1] :]), _places(op, constant, shape)
    grid = None if places is None else index_grid(places, MAX_AXES)
    if places is None or grid is None or not size or len(np.unique(places)) < places.size:
        return None
    part, count = grid, places.size * size
    COPY.prepare()

    def suits(data: Array, indices: Array, updates: Array) -> bool:
        return data.shape == shape and updates.size == count

    def kernel(data: Array, indices: Array, updates: Array) -> Array:
        if not suits(data, indices, updates):
            return np.asarray(op.evaluate(data, indices, updates))
        out = empty(shape, dtype)
        target = part.view(out.reshape(-1, size), 0)
        if not (copy_if_recording(data, out) and copy_if_recording(updates.reshape(target.shape), target)):
            out[...] = data
            target[...] = updates.reshape(target.shape)
        return out

    return Kernel(kernel, accepts=suits, replay=replayed(alone=False))


def _places(op: ScatterNDUpdateBase, indices: Array, shape: Sequence[int]) -> Array | None:
    """Convert constant index tuples to flat positions; return ``None`` if an index is out of range."""
    try:
        return op.places(indices, shape)
    except InferenceError:
        return None  # the operation raises it when it runs


# Maximum length of an index tuple; tuples per unit.
RANK, UNIT_SIZE = 6, 1 << 10
# Size of the elements that `_scatter` copies, in bytes.
WORD = 4


class PlacesJob(Descriptor):
    """Parameters of `_store_places`: number and length of the tuples, and size of an index in bytes.

    ``lengths`` are those of the indexed axes; ``refused`` counts indices out of range.
    """

    tuples: i64
    width: i64
    index_size: i64
    lengths: Annotated[int, (np.int64, (RANK,))]
    refused: i64


@device
def _tuple_place(job: PlacesJob, tuples: int, first: int, width: int, size: int) -> int:
    """Return the flat position of the element or slice that a tuple indexes."""
    place = 0
    for axis in range(width):
        index, length = load_index(tuples, first + axis, size), load_i64(job.lengths, axis)
        if index < 0:
            index += length
        if index < 0 or index >= length:
            fetch_add(job + 8 * PlacesJob.refused)
        place = place * length + index
    return place


@Task
def _store_places(call: int, job: PlacesJob, out: int, tuples: int) -> None:
    """Store the flat positions that the tuples A index; a work unit is `UNIT_SIZE` tuples."""
    count, width = job.tuples, job.width
    size = job.index_size
    for start, end in each_chunk(call, count, UNIT_SIZE):
        for at in range(start, end):
            store_i64(out, at, _tuple_place(job, tuples, at * width, width, size))


@backend.accelerates(GatherND5, GatherND8)
def gather_nd(op: GatherNDBase, data: Value, indices: Value) -> Kernel | None:
    """Return a GatherND kernel for all element types but strings; batch lengths of data and indices must match."""
    batch, width = op.batch_dims, _width(indices)
    indexed = batch + width
    if not width or not _is_copyable(data) or not indexed <= (data.shape.rank or 0):
        return None
    for task in (_store_places, gather_elements_task, COPY):
        task.prepare()

    def suits(x: Array, indices: Array) -> bool:
        return bool(x.shape[:batch] == indices.shape[:batch] and indices.shape[-1] == width)

    def kernel(x: Array, indices: Array) -> Array:
        if not (suits(x, indices) and x.size and indices.size):
            return op.evaluate(x, indices)
        lead, tuples, lengths = x.shape[:batch], indices.shape[batch:-1], x.shape[batch:indexed]
        if (places := _find_places(indices, lengths)) is None:
            return op.evaluate(x, indices)
        first = (math.prod(lead),) if isinstance(op, GatherND5) and batch else lead
        out = empty((*first, *tuples, *x.shape[indexed:]), x.dtype)
        slices = contiguous(x).reshape(math.prod(lead), math.prod(lengths), -1)
        count = math.prod(tuples)
        job = gather_job(slices, 1, count, 8, (8 * count, 8, 0))
        shared = threads_for(moved=2 * out.nbytes, steps=places.size)
        parallel_for(gather_elements_task.address, job, out, slices, places, UNUSED, shared)
        return op.evaluate(x, indices) if was_refused(job, GatherElementsJob.refused) else out

    return Kernel(kernel, accepts=suits, replay=replayed())


@backend.accelerates(ScatterNDUpdate4, ScatterNDUpdate15)
def scatter_nd(op: ScatterNDUpdateBase, data: Value, indices: Value, updates: Value) -> Kernel | None:
    """Return a ScatterNDUpdate kernel that replaces elements of 4 or 8 bytes, or adds f32."""
    width = _width(indices)
    reduction = op.reduction if isinstance(op, ScatterNDUpdate15) else "none"
    replaces = reduction == "none"
    if not width or not _is_copyable(data) or not width <= (data.shape.rank or 0):
        return None
    if data.element.dtype.itemsize % WORD or not (replaces or (reduction == "sum" and is_f32(data))):
        return None
    for task in (_store_places, _scatter, COPY):
        task.prepare()
    evaluate: Callable[..., Array] = op.evaluate

    def suits(data: Array, indices: Array, updates: Array) -> bool:
        return bool(indices.shape[-1] == width and updates.shape == indices.shape[:-1] + data.shape[width:])

    def kernel(data: Array, indices: Array, updates: Array) -> Array:
        if not (suits(data, indices, updates) and updates.size):
            return evaluate(data, indices, updates)
        places, out = _find_places(indices, data.shape[:width]), copy_data(data)
        if places is None or out is None:
            return evaluate(data, indices, updates)
        columns = math.prod(data.shape[width:]) * data.itemsize // WORD
        job = ScatterJob.fill(
            blocks=1, length=math.prod(data.shape[:width]), columns=columns, count=places.size, block_stride=0,
            row_stride=1, column_stride=columns == 1, replaces=replaces, refused=0,
        )  # fmt: skip
        shared = threads_for(moved=2 * out.nbytes)
        parallel_for(_scatter.address, job, out, places, contiguous(updates), UNUSED, shared)
        return evaluate(data, indices, updates) if was_refused(job, ScatterJob.refused) else out

    return Kernel(kernel, accepts=suits, replay=replayed())


def _width(indices: Value) -> int:
    """Return the length of index tuples; 0 if it is unknown or too large."""
    if indices.element not in (ElementType.i32, ElementType.i64) or not indices.shape.rank:
        return 0
    width = indices.shape[-1]
    return int(width) if width.is_static and width.min <= RANK else 0


def _is_copyable(data: Value) -> bool:
    return data.element.dtype.itemsize in SIZES and not data.element.dtype.hasobject


def _find_places(indices: Array, lengths: tuple[int, ...]) -> Array | None:
    """Return the flat positions that tuples index in axes of these lengths; ``None`` if an index is out of range."""
    places = empty(indices.shape[:-1], np.int64)
    job = PlacesJob.fill(
        tuples=places.size, width=len(lengths), index_size=indices.itemsize,
        lengths=(*lengths, *[1] * (RANK - len(lengths))), refused=0,
    )  # fmt: skip
    count = threads_for(steps=places.size)
    parallel_for(_store_places.address, job, places, contiguous(indices), UNUSED, UNUSED, count)
    return None if was_refused(job, PlacesJob.refused) else places
