"""The few best elements of rows, as those that choose experts or tokens: one pass that keeps them sorted."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.sort.topk import TopK1, TopK3, TopK11, TopKBase
from ... import Kernel
from ...common.layout import is_f32
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device
from ..codegen.memory import fetch_add, load_f32, load_i64, store_f32
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads
from ..threading.recording import was_refused
from ..threading.task import UNUSED, Task, load_args, next_unit
from ._indices import load_index, store_index
from .contiguous import contiguous

__all__: list[str] = []

# The most elements that a pass keeps; elements from which on several threads are faster.
MAX_COUNT = 32
MIN_PARALLEL_WORK = 1 << 15


class TopKJob(Descriptor):
    """The job of `TOPK`: ``count`` of ``length`` elements of each row; ``refused`` counts rows with NaN.

    The result has all indices, of ``index_size`` bytes, then the elements from ``values`` bytes on.
    """

    rows: i64
    length: i64
    count: i64
    largest: i64
    by_index: i64
    index_size: i64
    values: i64
    refused: i64


@device
def _insert(
    values: int, indices: int, size: int, end: int, value: np.float32, index: int, largest: bool
) -> None:
    """Insert an element behind those of ``end`` sorted ones that are not worse."""
    place = end
    while place > 0:
        before = load_f32(values, place - 1)
        if not (value > before if largest else value < before):
            break
        store_f32(values, place, before)
        store_index(indices, place, load_index(indices, place - 1, size), size)
        place -= 1
    store_f32(values, place, value)
    store_index(indices, place, index, size)


@device
def _sort_by_index(values: int, indices: int, size: int, count: int) -> None:
    for end in range(1, count):
        value, index, place = load_f32(values, end), load_index(indices, end, size), end
        while place > 0 and load_index(indices, place - 1, size) > index:
            store_f32(values, place, load_f32(values, place - 1))
            store_index(indices, place, load_index(indices, place - 1, size), size)
            place -= 1
        store_f32(values, place, value)
        store_index(indices, place, index, size)


def _topk(call: int) -> None:
    """Choose elements; a unit is a row."""
    job, out, x, _, _, _ = load_args(call)
    rows, length, count = (
        load_i64(job, TopKJob.rows),
        load_i64(job, TopKJob.length),
        load_i64(job, TopKJob.count),
    )
    largest, size = load_i64(job, TopKJob.largest) != 0, load_i64(job, TopKJob.index_size)
    row = next_unit(call, rows)
    while row < rows:
        line, indices = x + 4 * length * row, out + size * count * row
        values = out + load_i64(job, TopKJob.values) + 4 * count * row
        has_nan, held = False, 0
        for index in range(length):
            value = load_f32(line, index)
            has_nan = has_nan or value != value
            if held < count:
                _insert(values, indices, size, held, value, index, largest)
                held += 1
            else:
                worst = load_f32(values, count - 1)
                if value > worst if largest else value < worst:
                    _insert(values, indices, size, count - 1, value, index, largest)
        if has_nan:
            fetch_add(job + 8 * TopKJob.refused)
        if load_i64(job, TopKJob.by_index) != 0:
            _sort_by_index(values, indices, size, count)
        row = next_unit(call, rows)


TOPK = Task(_topk)
"""Stores the indices and the elements of the best of each row of A."""


@backend.accelerates(TopK1, TopK3, TopK11)
def topk(op: TopKBase, data: Value, k: Value, unread: Collection[int] = ()) -> Kernel | None:
    """A known number of f32 along the last axis, up to `MAX_COUNT`; where there is NaN, the reference compares."""
    count, rank = k.ints(), data.shape.rank
    if not is_f32(data) or not rank or count is None or len(count) != 1 or op.axis not in (-1, rank - 1):
        return None
    if not 1 <= count[0] <= MAX_COUNT:
        return None
    index, kept = op.index_element_type.dtype, count[0]
    TOPK.prepare()

    def kernel(x: Array, k: Array) -> tuple[Array, Array]:
        *batch, length = x.shape
        rows = math.prod(batch)
        if not rows or length < kept:
            return op.evaluate(x, k)
        values = rows * kept * index.itemsize
        job = TopKJob.fill(
            rows=rows, length=length, count=kept, largest=op.mode == "max", by_index=op.sort == "index",
            index_size=index.itemsize, values=values, refused=0,
        )  # fmt: skip
        out = np.empty(values + 4 * rows * kept, np.uint8)
        count = threads() if x.size >= MIN_PARALLEL_WORK else 1
        parallel_for(TOPK.address, job, out, contiguous(x), UNUSED, UNUSED, count)
        if was_refused(job, TopKJob.refused):
            return op.evaluate(x, k)
        shape = (*batch, kept)
        return out[values:].view(np.float32).reshape(shape), out[:values].view(index).reshape(shape)

    return accepting(replayed(kernel), any_lengths)
