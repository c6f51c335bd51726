"""Rows at indices, as those of an embedding: where a run is recorded, so that the replay does not end there."""

from __future__ import annotations

import math

import numpy as np

from ....ir.element import ElementType
from ....ir.tensor import Array, Value
from ....ops.movement.gather import Gather, Gather1, Gather7, GatherBase
from ... import Kernel
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads
from ..threading.recording import is_recording, was_refused
from ..threading.task import UNUSED
from ._strided_copy import SIZES
from .contiguous import contiguous
from .gather_elements import GATHER_ELEMENTS, GatherElementsJob, gather_job

__all__: list[str] = []

# Bytes from which on several threads are faster; elements, where each is chosen by itself.
MIN_PARALLEL_SIZE, MIN_PARALLEL_WORK = 1 << 18, 1 << 13


@backend.accelerates(Gather, Gather1, Gather7)
def gather_rows(op: GatherBase, data: Value, indices: Value, axis: Value) -> Kernel | None:
    """All types but strings, along a constant axis; one known index is a view.

    Without a batch, NumPy copies as fast in runs that are not recorded. The reference gives zeros where an index is out
    of range.
    """
    rank, known = data.shape.rank or 0, axis.ints()
    if (
        data.element.dtype.itemsize not in SIZES
        or data.element.dtype.hasobject
        or not known
        or not -rank <= known[0] < rank
    ):
        return None
    if indices.element not in (ElementType.i32, ElementType.i64):
        return None
    if indices.known() is not None and indices.shape.rank == 0:
        return None
    GATHER_ELEMENTS.prepare()
    along = known[0] % rank
    if op.batch:
        return _of_batch(op, indices, along)

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

    return accepting(replayed(kernel, alone=False), any_lengths)


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

    return accepting(replayed(kernel), suits)


def _gathered(x: Array, indices: Array, axis: int, batch: int) -> Array | None:
    """Return what indices choose, which are the same everywhere or others in each entry of a batch; ``None`` if one is out of range."""
    out = np.empty((*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]), x.dtype)
    size, count = indices.itemsize, math.prod(indices.shape[batch:])
    job = gather_job(x, axis, count, size, (size * count if batch else 0, size, 0))
    is_long = out.nbytes >= MIN_PARALLEL_SIZE or (x.shape[axis + 1 :] == () and out.size >= MIN_PARALLEL_WORK)
    shared = threads() if is_long else 1
    parallel_for(GATHER_ELEMENTS.address, job, out, x, np.ascontiguousarray(indices), UNUSED, shared)
    return None if was_refused(job, GatherElementsJob.refused) else out
