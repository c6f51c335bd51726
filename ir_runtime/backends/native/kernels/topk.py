"""The best elements along an axis: few are kept sorted by one pass, as those that choose experts or tokens; many are sorted."""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.sort.topk import TopK1, TopK3, TopK11, TopKBase
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import is_f32
from ...core.lengths import any_lengths
from .._backend import backend
from ..codegen.language import device
from ..codegen.memory import fetch_add, load_f32, scratch_memory, store_f32
from ..codegen.vectors import LANES
from ..threading.capture import replayed
from ..threading.recording import was_refused
from ..threading.task import Task, each_unit, load_args
from ._axes_plan import plan_axes
from ._columns_task import column_sizes, load_sizes, run_columns
from ._indices import load_index, store_index
from ._rows import transpose_part
from ._topk_job import TopKJob
from ._topk_lanes import WIDTH, better_lanes, hold_best, order_by_index, store_held
from ._topk_sort import SORT_ROWS
from .contiguous import contiguous

__all__: list[str] = []

# The most elements that a pass keeps; the longest rows that are transposed, and from how many.
MAX_COUNT = 32
MAX_SHORT = 1 << 10
MIN_SHORT_ROWS = LANES // 2
# Layouts whose plans are cached.
MAX_PLANS = 16


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


@device
def _choose(line: int, length: int, count: int, largest: int, values: int, indices: int, size: int) -> bool:
    """Store the best of a row, sorted; return whether it has NaN."""
    is_largest, has_nan, index = largest != 0, False, 0
    while index < length:
        is_vector = index >= count and index + LANES <= length
        if is_vector and better_lanes(line + 4 * index, load_f32(values, count - 1), largest) == 0:
            index += LANES
            continue
        for place in range(index, min(index + LANES, length)):
            value = load_f32(line, place)
            has_nan = has_nan or value != value
            if place < count:
                _insert(values, indices, size, place, value, place, is_largest)
            else:
                worst = load_f32(values, count - 1)
                if value > worst if is_largest else value < worst:
                    _insert(values, indices, size, count - 1, value, place, is_largest)
        index += LANES
    return has_nan


def _topk(call: int) -> None:
    """Choose elements; a unit is a row."""
    address, out, x, _, _, _ = load_args(call)
    job = TopKJob.at(address)
    rows, length, count = (
        job.outer,
        job.length,
        job.count,
    )
    largest, size = job.largest, job.index_size
    for row in each_unit(call, rows):
        indices = out + size * count * row
        values = out + job.values + 4 * count * row
        if _choose(x + 4 * length * row, length, count, largest, values, indices, size):
            fetch_add(job + 8 * TopKJob.refused)
        if job.by_index != 0:
            _sort_by_index(values, indices, size, count)


def _topk_short(call: int) -> None:
    """Choose elements of short rows; a unit are `LANES` of them, which are transposed."""
    address, out, x, _, _, _ = load_args(call)
    job = TopKJob.at(address)
    rows, length, count = (
        job.outer,
        job.length,
        job.count,
    )
    largest, size = job.largest, job.index_size
    held = scratch_memory(WIDTH * (2 * count + length))
    columns, units = held + 2 * WIDTH * count, (rows + LANES - 1) // LANES
    for unit in each_unit(call, units):
        first = LANES * unit
        some = min(LANES, rows - first)
        for column in range(0, length, LANES):
            source = x + 4 * (first * length + column)
            transpose_part(
                source, 4 * length, some, min(LANES, length - column), columns + WIDTH * column, WIDTH
            )  # fmt: skip
        if hold_best(columns, WIDTH, length, LANES, held, count, largest) != 0:
            fetch_add(job + 8 * TopKJob.refused)
        if job.by_index != 0:
            order_by_index(held, count)
        indices = out + size * count * first
        values = out + job.values + 4 * count * first
        for row in range(some):
            for place in range(count):
                at = row * count + place
                store_f32(values, at, load_f32(held, LANES * place + row))
                store_index(indices, at, load_index(held, LANES * (count + place) + row, 4), size)


def _topk_columns(call: int) -> None:
    """Choose elements of columns; a unit is some of them."""
    address, out, x, _, _, _ = load_args(call)
    job = TopKJob.at(address)
    outer, length, inner, block = load_sizes(job)
    count, largest, size = (
        job.count,
        job.largest,
        job.index_size,
    )
    held, across = scratch_memory(2 * WIDTH * count), (inner + block - 1) // block
    for unit in each_unit(call, outer * across):
        row = unit // across
        begin = (unit - row * across) * block
        for column in range(begin, min(begin + block, inner), LANES):
            source, some = x + 4 * (row * length * inner + column), min(LANES, inner - column)
            if hold_best(source, 4 * inner, length, some, held, count, largest) != 0:
                fetch_add(job + 8 * TopKJob.refused)
            if job.by_index != 0:
                order_by_index(held, count)
            at = row * count * inner + column
            values = out + job.values + 4 * at
            store_held(held, count, values, out + size * at, inner, some, size)


TOPK, TOPK_SHORT, TOPK_COLUMNS = Task(_topk), Task(_topk_short), Task(_topk_columns)
"""Store the indices and the elements of the best of each row, or column, of A; they refuse NaN."""


class _Plan(NamedTuple):
    """How elements of data of one layout are chosen.

    Args:
        order: the axes in memory, or as they are copied.
        sizes: ``[outer, length, inner]``.
        shape: of the result, whose axes are in that order.
        back: the order of the axes of the result.
        task: what chooses.
    """

    order: list[int]
    sizes: tuple[int, int, int]
    shape: tuple[int, ...]
    back: list[int]
    task: Task


@backend.accelerates(TopK1, TopK3, TopK11)
def topk(op: TopKBase, data: Value, k: Value, unread: Collection[int] = ()) -> Kernel | None:
    """A known number of f32; where a pass that keeps up to `MAX_COUNT` meets NaN, the reference compares."""
    count, rank = k.ints(), data.shape.rank
    if not is_f32(data) or not rank or count is None or len(count) != 1 or not -rank <= op.axis < rank:
        return None
    if count[0] < 1:
        return None
    index, kept, axis = op.index_element_type.dtype, count[0], op.axis % rank
    for task in (SORT_ROWS,) if kept > MAX_COUNT else (TOPK, TOPK_SHORT, TOPK_COLUMNS):
        task.prepare()

    @lru_cache(maxsize=MAX_PLANS)
    def plan(shape: tuple[int, ...], strides: tuple[int, ...]) -> _Plan:
        return _plan(shape, strides, axis, kept)

    def kernel(x: Array, k: Array) -> tuple[Array, Array]:
        if not x.size or x.shape[axis] < kept:
            return op.evaluate(x, k)
        order, sizes, shape, back, task = plan(x.shape, x.strides)
        chosen = math.prod(shape)
        values = chosen * index.itemsize
        job = TopKJob.fill(
            **column_sizes(sizes), count=kept, largest=op.mode == "max", by_index=op.sort == "index",
            index_size=index.itemsize, values=values, refused=0,
        )  # fmt: skip
        out = empty(values + 4 * chosen, np.uint8)
        run_columns(task, contiguous(x.transpose(order)), out, job)
        if task is not SORT_ROWS and was_refused(job, TopKJob.refused):
            return op.evaluate(x, k)
        best, places = out[values:].view(np.float32), out[:values].view(index)
        return best.reshape(shape).transpose(back), places.reshape(shape).transpose(back)

    return Kernel(kernel, accepts=any_lengths, replay=replayed())


def _plan(shape: tuple[int, ...], strides: tuple[int, ...], axis: int, kept: int) -> _Plan:
    axes, sizes, _, _ = plan_axes(shape, strides, frozenset({axis}), True)
    order = [*axes]
    by_columns = sizes[2] >= LANES and kept <= MAX_COUNT
    if not by_columns and sizes[2] > 1:
        order.remove(axis)
        order.append(axis)
    outer, length, inner = sizes if by_columns else (sizes[0] * sizes[2], sizes[1], 1)
    found = tuple(kept if along == axis else shape[along] for along in order)
    task = TOPK_COLUMNS if by_columns else SORT_ROWS if kept > MAX_COUNT else TOPK
    if task is TOPK and length <= MAX_SHORT and outer >= MIN_SHORT_ROWS:
        task = TOPK_SHORT
    return _Plan(order, (outer, length, inner), found, np.argsort(order).tolist(), task)
