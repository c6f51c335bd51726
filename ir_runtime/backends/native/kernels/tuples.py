"""GatherND and ScatterNDUpdate: tuples of indices become places, of which elements or slices are chosen or replaced."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated

import numpy as np

from ....ir.element import ElementType
from ....ir.tensor import Array, Value
from ....ops.movement.gather_many import GatherND5, GatherND8, GatherNDBase
from ....ops.movement.scatter import ScatterNDUpdate4, ScatterNDUpdate15, ScatterNDUpdateBase
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import is_f32
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device
from ..codegen.memory import fetch_add, load_i64, store_i64
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.recording import was_refused
from ..threading.task import UNUSED, Task, each_chunk, load_args
from ._copy import COPY, SIZES
from ._indices import load_index
from .contiguous import contiguous
from .gather_elements import GATHER_ELEMENTS, GatherElementsJob, gather_job
from .scatter import SCATTER, ScatterJob, copied

__all__: list[str] = []

# Numbers of a tuple at most; tuples of a unit.
RANK, UNIT_SIZE = 6, 1 << 10
# Bytes of the numbers that `SCATTER` copies.
WORD = 4


class PlacesJob(Descriptor):
    """The job of `PLACES`: how many tuples there are, numbers of one, bytes of a number, and the lengths of the axes they name.

    ``refused`` counts numbers that are out of range.
    """

    tuples: i64
    width: i64
    index_size: i64
    lengths: Annotated[int, (np.int64, (RANK,))]
    refused: i64


@device
def _place(job: int, tuples: int, first: int, width: int, size: int) -> int:
    """Return the place that a tuple names in flattened data."""
    place = 0
    for axis in range(width):
        index, length = load_index(tuples, first + axis, size), load_i64(job, PlacesJob.lengths + axis)
        if index < 0:
            index += length
        if index < 0 or index >= length:
            fetch_add(job + 8 * PlacesJob.refused)
        place = place * length + index
    return place


def _places(call: int) -> None:
    """Find places; a unit is `UNIT_SIZE` tuples."""
    address, out, tuples, _, _, _ = load_args(call)
    job = PlacesJob.at(address)
    count, width = job.tuples, job.width
    size = job.index_size
    for start, end in each_chunk(call, count, UNIT_SIZE):
        for at in range(start, end):
            store_i64(out, at, _place(job, tuples, at * width, width, size))


PLACES = Task(_places)
"""Writes the places that the tuples A name."""


@backend.accelerates(GatherND5, GatherND8)
def gather_nd(op: GatherNDBase, data: Value, indices: Value) -> Kernel | None:
    """All types but strings, where data and indices have the same batch."""
    batch, width = op.batch_dims, _width(indices)
    named = batch + width
    if not width or not _is_copied(data) or not named <= (data.shape.rank or 0):
        return None
    for task in (PLACES, GATHER_ELEMENTS, COPY):
        task.prepare()

    def suits(x: Array, indices: Array) -> bool:
        return bool(x.shape[:batch] == indices.shape[:batch] and indices.shape[-1] == width)

    def kernel(x: Array, indices: Array) -> Array:
        if not (suits(x, indices) and x.size and indices.size):
            return op.evaluate(x, indices)
        lead, asked, lengths = x.shape[:batch], indices.shape[batch:-1], x.shape[batch:named]
        if (places := _found(indices, lengths)) is None:
            return op.evaluate(x, indices)
        first = (math.prod(lead),) if isinstance(op, GatherND5) and batch else lead
        out = empty((*first, *asked, *x.shape[named:]), x.dtype)
        slices = contiguous(x).reshape(math.prod(lead), math.prod(lengths), -1)
        count = math.prod(asked)
        job = gather_job(slices, 1, count, 8, (8 * count, 8, 0))
        shared = threads_for(moved=2 * out.nbytes, steps=places.size)
        parallel_for(GATHER_ELEMENTS.address, job, out, slices, places, UNUSED, shared)
        return op.evaluate(x, indices) if was_refused(job, GatherElementsJob.refused) else out

    return Kernel(kernel, accepts=suits, replay=replayed())


@backend.accelerates(ScatterNDUpdate4, ScatterNDUpdate15)
def scatter_nd(op: ScatterNDUpdateBase, data: Value, indices: Value, updates: Value) -> Kernel | None:
    """Numbers of 4 or 8 bytes that are replaced, and sums of f32."""
    width = _width(indices)
    reduction = op.reduction if isinstance(op, ScatterNDUpdate15) else "none"
    replaces = reduction == "none"
    if not width or not _is_copied(data) or not width <= (data.shape.rank or 0):
        return None
    if data.element.dtype.itemsize % WORD or not (replaces or (reduction == "sum" and is_f32(data))):
        return None
    for task in (PLACES, SCATTER, COPY):
        task.prepare()
    evaluate: Callable[..., Array] = op.evaluate

    def suits(data: Array, indices: Array, updates: Array) -> bool:
        return bool(indices.shape[-1] == width and updates.shape == indices.shape[:-1] + data.shape[width:])

    def kernel(data: Array, indices: Array, updates: Array) -> Array:
        if not (suits(data, indices, updates) and updates.size):
            return evaluate(data, indices, updates)
        places, out = _found(indices, data.shape[:width]), copied(data)
        if places is None or out is None:
            return evaluate(data, indices, updates)
        columns = math.prod(data.shape[width:]) * data.itemsize // WORD
        job = ScatterJob.fill(
            blocks=1, length=math.prod(data.shape[:width]), columns=columns, count=places.size, block_stride=0,
            row_stride=1, column_stride=columns == 1, replaces=replaces, refused=0,
        )  # fmt: skip
        shared = threads_for(moved=2 * out.nbytes)
        parallel_for(SCATTER.address, job, out, places, contiguous(updates), UNUSED, shared)
        return evaluate(data, indices, updates) if was_refused(job, ScatterJob.refused) else out

    return Kernel(kernel, accepts=suits, replay=replayed())


def _width(indices: Value) -> int:
    """Return how many numbers a tuple has; 0 where that is unknown, and for too many."""
    if indices.element not in (ElementType.i32, ElementType.i64) or not indices.shape.rank:
        return 0
    width = indices.shape[-1]
    return int(width) if width.is_static and width.min <= RANK else 0


def _is_copied(data: Value) -> bool:
    return data.element.dtype.itemsize in SIZES and not data.element.dtype.hasobject


def _found(indices: Array, lengths: tuple[int, ...]) -> Array | None:
    """Return the places that tuples name along axes of some lengths; ``None`` if a number is out of range."""
    places = empty(indices.shape[:-1], np.int64)
    job = PlacesJob.fill(
        tuples=places.size, width=len(lengths), index_size=indices.itemsize,
        lengths=(*lengths, *[1] * (RANK - len(lengths))), refused=0,
    )  # fmt: skip
    count = threads_for(steps=places.size)
    parallel_for(PLACES.address, job, places, contiguous(indices), UNUSED, UNUSED, count)
    return None if was_refused(job, PlacesJob.refused) else places
