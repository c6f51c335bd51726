"""Rows at indices, as those of an embedding: where a run is recorded, so that the replay does not end there."""

from __future__ import annotations

import math
import operator
from itertools import accumulate
from typing import TypeAlias

from ....ir.element import ElementType
from ....ir.shape import PartialShape
from ....ir.tensor import Array, Value
from ....ops.movement.gather import Gather, Gather1, Gather7, GatherBase
from ... import Kernel
from ...common.kept_memory import empty
from ...core.lengths import any_lengths
from .._backend import backend
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.recording import is_recording, was_refused
from ..threading.task import UNUSED
from ._copy import COPY, SIZES
from ._index_grid import IndexGrid, index_grid
from .contiguous import contiguous
from .gather_elements import GATHER_ELEMENTS, GatherElementsJob, gather_job

__all__: list[str] = []

# Most axes of constant indices that are a grid.
MAX_AXES = 4

_Shape: TypeAlias = tuple[int, ...]


@backend.accelerates(Gather, Gather1, Gather7)
def gather_rows(op: GatherBase, data: Value, indices: Value, axis: Value) -> Kernel | None:
    """All types but strings, along a constant axis; a known scalar is left to the reference.

    Without a batch, NumPy copies as fast in runs that are not recorded. The reference gives zeros where an index is out
    of range.
    """
    along = _copied_axis(data, axis)
    if along is None or indices.element not in (ElementType.i32, ElementType.i64):
        return None
    places = indices.known()
    if places is not None and not places.ndim:
        return None
    for task in (GATHER_ELEMENTS, COPY):  # the second for indices that are not contiguous
        task.prepare()
    if op.batch:
        return _of_batch(op, indices, along)
    grid = None if places is None else index_grid(places, MAX_AXES)
    if places is not None and grid is not None and grid.bounds[0] >= 0:
        return _part(op, grid, places.shape, data.shape, along)
    return _along(op, along)


def _copied_axis(data: Value, axis: Value) -> int | None:
    """Return the axis, if it is known, and a kernel copies data of this type."""
    rank, known = data.shape.rank or 0, axis.ints()
    if data.element.dtype.itemsize not in SIZES or data.element.dtype.hasobject:
        return None
    return known[0] % rank if known and -rank <= known[0] < rank else None


def _along(op: GatherBase, along: int) -> Kernel:
    """Return the kernel for indices that are the same everywhere."""

    def kernel(x: Array, indices: Array, axis: Array) -> Array:
        if not (is_recording() and x.flags.c_contiguous and x.size and indices.size):
            return _taken(x, indices, axis)
        found = _gathered(x, indices, along, 0)
        return op.evaluate(x, indices, axis) if found is None else found

    def _taken(x: Array, indices: Array, axis: Array) -> Array:
        try:
            return x.take(indices, along)
        except IndexError:
            return op.evaluate(x, indices, axis)

    return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))


def _of_batch(op: GatherBase, indices: Value, along: int) -> Kernel | None:
    """Return the kernel for an axis that follows those of the batch, ``None`` for others."""
    batch = op.batch + (indices.shape.rank or 0 if op.batch < 0 else 0)
    if indices.shape.rank is None or batch != along:
        return None

    def suits(x: Array, indices: Array, axis: Array) -> bool:
        return x.shape[:batch] == indices.shape[:batch]

    def kernel(x: Array, indices: Array, axis: Array) -> Array:
        if not (suits(x, indices, axis) and x.size and indices.size):
            return op.evaluate(x, indices, axis)
        found = _gathered(contiguous(x), contiguous(indices), along, batch)
        return op.evaluate(x, indices, axis) if found is None else found

    return Kernel(kernel, accepts=suits, replay=replayed())


def _gathered(x: Array, indices: Array, axis: int, batch: int) -> Array | None:
    """Return what indices choose, which are the same everywhere or others in each entry of a batch; ``None`` if one is out of range."""
    out = empty((*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]), x.dtype)
    size, count = indices.itemsize, math.prod(indices.shape[batch:])
    job = gather_job(x, axis, count, size, (size * count if batch else 0, size, 0))
    is_single = x.shape[axis + 1 :] == ()
    shared = threads_for(moved=out.nbytes, steps=out.size // 2 if is_single else 0)
    parallel_for(GATHER_ELEMENTS.address, job, out, x, contiguous(indices), UNUSED, shared)
    return None if was_refused(job, GatherElementsJob.refused) else out


def _part(op: GatherBase, grid: IndexGrid, shape: _Shape, given: PartialShape, along: int) -> Kernel:
    """Return a kernel for indices of a shape that are a grid: a view, unless an axis of theirs has several of the grid."""
    ends = [set(accumulate(reversed(lengths), operator.mul)) for lengths in (grid.lengths, shape)]
    is_view, last = ends[0] <= ends[1], grid.bounds[1]

    def chosen(x: Array) -> Array:
        found = grid.view(x, along)
        return (found if is_view else contiguous(found)).reshape(
            *x.shape[:along], *shape, *x.shape[along + 1 :]
        )

    def kernel(x: Array, indices: Array, axis: Array) -> Array:
        return chosen(x) if last < x.shape[along] else op.evaluate(x, indices, axis)

    if is_view and last < given[along].min:
        return Kernel.unary(chosen, view=True)
    COPY.prepare()
    return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))
