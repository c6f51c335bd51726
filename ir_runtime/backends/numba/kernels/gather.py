"""Rows at indices, as those of an embedding: where a run is recorded, so that the replay does not end there."""

from __future__ import annotations

import math

import numpy as np

from ....ir.element import ElementType
from ....ir.tensor import Array, Value
from ....ops.movement.gather import Gather, Gather1, Gather7, GatherBase
from ... import Kernel
from ...common.layout import is_f32
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.memory import fetch_add, load_i64
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads
from ..threading.recording import is_recording, was_refused
from ..threading.task import UNUSED, Task, load_args, next_unit
from ._indices import load_index
from ._rows import copy_row

__all__: list[str] = []

# Numbers from which on several threads are faster.
MIN_PARALLEL_WORK = 1 << 16


class GatherJob(Descriptor):
    """The job of `GATHER`: ``rows`` of ``width`` numbers; ``refused`` counts indices that are out of their range."""

    count: i64
    rows: i64
    width: i64
    index_size: i64
    refused: i64


def _gather(call: int) -> None:
    """Copy rows; a unit is one of them."""
    job, out, x, indices, _, _ = load_args(call)
    count, rows = load_i64(job, GatherJob.count), load_i64(job, GatherJob.rows)
    width, size = load_i64(job, GatherJob.width), load_i64(job, GatherJob.index_size)
    place = next_unit(call, count)
    while place < count:
        row = load_index(indices, place, size)
        if row < 0:
            row += rows
        if 0 <= row < rows:
            copy_row(x + 4 * width * row, width, out + 4 * width * place)
        else:
            fetch_add(job + 8 * GatherJob.refused)
        place = next_unit(call, count)


GATHER = Task(_gather)
"""Copies the rows of A at the indices B."""


@backend.accelerates(Gather, Gather1, Gather7)
def gather_rows(op: GatherBase, data: Value, indices: Value, axis: Value) -> Kernel | None:
    """f32 along the first axis; in other runs, NumPy copies as fast. The reference gives zeros where an index is out of range."""
    rank = data.shape.rank
    if not is_f32(data) or not rank or op.batch or axis.ints() not in ((0,), (-rank,)):
        return None
    if indices.known() is not None or indices.element not in (ElementType.i32, ElementType.i64):
        return None
    GATHER.prepare()

    def kernel(x: Array, indices: Array, axis: Array) -> Array:
        if not (is_recording() and x.flags.c_contiguous and x.size and indices.size):
            return _taken(x, indices, axis)
        out, width = np.empty((*indices.shape, *x.shape[1:]), np.float32), math.prod(x.shape[1:])
        job = GatherJob.fill(
            count=indices.size, rows=len(x), width=width, index_size=indices.itemsize, refused=0
        )
        count = threads() if out.size >= MIN_PARALLEL_WORK else 1
        parallel_for(GATHER.address, job, out, x, np.ascontiguousarray(indices), UNUSED, count)
        return op.evaluate(x, indices, axis) if was_refused(job, GatherJob.refused) else out

    def _taken(x: Array, indices: Array, axis: Array) -> Array:
        try:
            return x.take(indices, 0)
        except IndexError:
            return op.evaluate(x, indices, axis)

    return accepting(replayed(kernel, alone=False), any_lengths)
