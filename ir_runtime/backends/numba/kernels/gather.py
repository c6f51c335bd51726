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
from ..codegen.descriptor import Descriptor, i64
from ..codegen.memory import fetch_add, load_i64
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads
from ..threading.recording import is_recording, was_refused
from ..threading.task import UNUSED, Task, load_args, next_unit
from ._indices import load_index
from ._rows import copy_bytes

__all__: list[str] = []

# Bytes from which on several threads are faster.
MIN_PARALLEL_SIZE = 1 << 18


class GatherJob(Descriptor):
    """The job of `GATHER`: of each of the ``blocks``, which have ``rows``, ``count`` rows of ``row_size`` bytes.

    ``refused`` counts indices that are out of their range.
    """

    blocks: i64
    count: i64
    rows: i64
    row_size: i64
    index_size: i64
    refused: i64


def _gather(call: int) -> None:
    """Copy rows; a unit is one of them."""
    job, out, x, indices, _, _ = load_args(call)
    count, rows = load_i64(job, GatherJob.count), load_i64(job, GatherJob.rows)
    width, size = load_i64(job, GatherJob.row_size), load_i64(job, GatherJob.index_size)
    units = load_i64(job, GatherJob.blocks) * count
    place = next_unit(call, units)
    while place < units:
        block = place // count
        row = load_index(indices, place - block * count, size)
        if row < 0:
            row += rows
        if 0 <= row < rows:
            copy_bytes(x + width * (block * rows + row), width, out + width * place)
        else:
            fetch_add(job + 8 * GatherJob.refused)
        place = next_unit(call, units)


GATHER = Task(_gather)
"""Copies the rows of A at the indices B."""


@backend.accelerates(Gather, Gather1, Gather7)
def gather_rows(op: GatherBase, data: Value, indices: Value, axis: Value) -> Kernel | None:
    """All types but strings, along a constant axis; in other runs, NumPy copies as fast. One known index is a view.

    The reference gives zeros where an index is out of range.
    """
    rank, known = data.shape.rank or 0, axis.ints()
    if data.element.dtype.hasobject or op.batch or not known or not -rank <= known[0] < rank:
        return None
    if indices.element not in (ElementType.i32, ElementType.i64):
        return None
    if indices.known() is not None and indices.shape.rank == 0:
        return None
    GATHER.prepare()
    along = known[0] % rank

    def kernel(x: Array, indices: Array, axis: Array) -> Array:
        if not (is_recording() and x.flags.c_contiguous and x.size and indices.size):
            return _taken(x, indices, axis)
        behind = x.shape[along + 1 :]
        out = np.empty((*x.shape[:along], *indices.shape, *behind), x.dtype)
        job = GatherJob.fill(
            blocks=math.prod(x.shape[:along]), count=indices.size, rows=x.shape[along],
            row_size=x.itemsize * math.prod(behind), index_size=indices.itemsize, refused=0,
        )  # fmt: skip
        count = threads() if out.nbytes >= MIN_PARALLEL_SIZE else 1
        parallel_for(GATHER.address, job, out, x, np.ascontiguousarray(indices), UNUSED, count)
        return op.evaluate(x, indices, axis) if was_refused(job, GatherJob.refused) else out

    def _taken(x: Array, indices: Array, axis: Array) -> Array:
        try:
            return x.take(indices, along)
        except IndexError:
            return op.evaluate(x, indices, axis)

    return accepting(replayed(kernel, alone=False), any_lengths)
