"""Rows at indices, as those of an embedding: where a run is recorded, so that the replay does not end there."""

from __future__ import annotations

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
from .gather_elements import GATHER_ELEMENTS, GatherElementsJob, gather_job

__all__: list[str] = []

# Bytes from which on several threads are faster.
MIN_PARALLEL_SIZE = 1 << 18


@backend.accelerates(Gather, Gather1, Gather7)
def gather_rows(op: GatherBase, data: Value, indices: Value, axis: Value) -> Kernel | None:
    """All types but strings, along a constant axis; in other runs, NumPy copies as fast. One known index is a view.

    The reference gives zeros where an index is out of range.
    """
    rank, known = data.shape.rank or 0, axis.ints()
    if (
        data.element.dtype.itemsize not in SIZES
        or data.element.dtype.hasobject
        or op.batch
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

    def kernel(x: Array, indices: Array, axis: Array) -> Array:
        if not (is_recording() and x.flags.c_contiguous and x.size and indices.size):
            return _taken(x, indices, axis)
        out = np.empty((*x.shape[:along], *indices.shape, *x.shape[along + 1 :]), x.dtype)
        size = indices.itemsize
        job = gather_job(x, along, indices.size, size, (0, size, 0))  # the same indices everywhere
        count = threads() if out.nbytes >= MIN_PARALLEL_SIZE else 1
        parallel_for(GATHER_ELEMENTS.address, job, out, x, np.ascontiguousarray(indices), UNUSED, count)
        return op.evaluate(x, indices, axis) if was_refused(job, GatherElementsJob.refused) else out

    def _taken(x: Array, indices: Array, axis: Array) -> Array:
        try:
            return x.take(indices, along)
        except IndexError:
            return op.evaluate(x, indices, axis)

    return accepting(replayed(kernel, alone=False), any_lengths)
