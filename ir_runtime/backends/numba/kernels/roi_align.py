"""Means of points in the bins of regions: along each axis, points are elements with weights, as in a resized map."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.detection.roi_align import MOST_POINTS, ROIAlign3, ROIAlign9
from ... import Kernel
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen.memory import alloc, fetch_add, free, load_i64, store_i64
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, contiguous, load_args
from .interpolation import blend

__all__: list[str] = []

# Multiplications that are worth a second thread.
WORTH = 1 << 17
# Points along an axis, of all regions, that are not worth their memory.
MANY = 1 << 22


def _align(call: int) -> None:
    job, out, x, _, _, counter = load_args(call)
    count, image, channels = load_i64(job, 0), load_i64(job, 1), load_i64(job, 2)
    lines, columns = load_i64(job, 3), load_i64(job, 4)
    entries, row_starts, rows, row_weights = (
        load_i64(job, 5),
        load_i64(job, 6),
        load_i64(job, 7),
        load_i64(job, 8),
    )
    column_starts, places, column_weights, most = (
        load_i64(job, 9),
        load_i64(job, 10),
        load_i64(job, 11),
        load_i64(job, 12),
    )
    table = alloc(8 * most)
    index = fetch_add(counter)
    while index < count:
        region = index // lines
        base = x + image * load_i64(entries, region)
        first = load_i64(row_starts, index)
        tall = load_i64(row_starts, index + 1) - first
        for i in range(tall):
            store_i64(table, i, base + load_i64(rows, first + i))
        for column in range(columns):
            start = load_i64(column_starts, region * columns + column)
            wide = load_i64(column_starts, region * columns + column + 1) - start
            blend(
                out + 4 * channels * (index * columns + column), table, row_weights + 4 * first, tall,
                places + 8 * start, column_weights + 4 * start, wide, channels,
            )  # fmt: skip
        index = fetch_add(counter)
    free(table)


ALIGN = Task(_align)
"""Takes rows of bins through all regions.

Its job: how many there are; bytes of an image, channels; rows and columns of bins of a region; addresses: of the
image of each region; of where the elements of each row of bins begin, their offsets in bytes, and their weights;
the same of columns; and the most elements that a row of bins has.
"""


@dataclass(frozen=True)
class Taps:
    """For each bin along an axis, of all regions, elements and their weights.

    Args:
        starts: where the elements of a bin begin, and where the last ones end.
        index: the elements.
        weight: their weights, which add up to 1 where all points lie inside.
    """

    starts: Array
    index: Array
    weight: Array

    @classmethod
    def of(cls, first: Array, size: Array, bins: int, samples: Array, length: int) -> Taps:
        """Along an axis of ``length`` elements.

        Args:
            first: where regions begin.
            size: how long they are.
            bins: how many a region is divided into.
            samples: how many points each of those has.
            length: elements of the axis.
        """
        most = 2 * int(samples.max(initial=0))
        shape = len(first), bins, most
        index, weight = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
        used = np.zeros(shape, np.bool_)
        for each in np.unique(samples[samples > 0]).tolist():
            some = samples == each
            step = size[some] / bins
            offsets = np.arange(bins, dtype=np.float32) * step[:, None]
            parts = (step / each)[:, None] * (np.arange(each, dtype=np.float32) + np.float32(0.5))
            at = first[some, None, None] + (offsets[:, :, None] + parts[:, None])
            within = (at >= -1) & (at <= length)
            at = np.clip(at, 0, length - 1)
            low = np.floor(at)
            part = at - low
            low = low.astype(np.int64)
            pairs = np.stack([low, np.minimum(low + 1, length - 1)], axis=-1)
            shares = np.stack([1 - part, part], axis=-1) / np.float32(each)
            index[some, :, : 2 * each] = pairs.reshape(-1, bins, 2 * each)
            weight[some, :, : 2 * each] = shares.reshape(-1, bins, 2 * each)
            used[some, :, : 2 * each] = np.repeat(within, 2, axis=2)
        counts = used.sum(axis=2)
        return cls(np.concatenate([[0], counts.reshape(-1).cumsum()]), index[used], weight[used])


@backend.accelerates(ROIAlign3, ROIAlign9)
def align(op: ROIAlign3 | ROIAlign9, data: Value, rois: Value, batch_indices: Value) -> Kernel | None:
    """f32, the mean of points."""
    if op.mode != "avg" or not is_f32(data, rois):
        return None
    ALIGN.prepare()
    return partial(_aligned, op)


def _aligned(op: ROIAlign3 | ROIAlign9, x: Array, rois: Array, entries: Array) -> Array:
    """Regions that are refused, or not to be pooled, are left to the reference."""
    images, channels, height, width = x.shape
    if not x.size or not len(rois) or rois.shape != (len(entries), 4) or not np.isfinite(rois).all():
        return op.evaluate(x, rois, entries)
    if (entries < 0).any() or (entries >= images).any():
        return op.evaluate(x, rois, entries)
    before, after = map(np.float32, op.shifts())
    left, top, right, bottom = ((rois + before) * np.float32(op.spatial_scale) + after).T
    wide, tall = right - left, bottom - top
    if not after:
        wide, tall = np.maximum(wide, np.float32(1)), np.maximum(tall, np.float32(1))
    down, across = _samples(op, tall, op.pooled_h), _samples(op, wide, op.pooled_w)
    if not (down * op.pooled_h * across * op.pooled_w <= MOST_POINTS).all():
        return op.evaluate(x, rois, entries)
    if len(rois) * max(op.pooled_h * down.max(), op.pooled_w * across.max()) > MANY:
        return op.evaluate(x, rois, entries)
    rows = Taps.of(top, tall, op.pooled_h, down.astype(np.int64), height)
    columns = Taps.of(left, wide, op.pooled_w, across.astype(np.int64), width)
    y = np.empty((len(rois), op.pooled_h, op.pooled_w, channels), np.float32)
    kept = [
        np.ascontiguousarray(entries, np.int64), rows.starts, rows.index * (4 * channels * width), rows.weight,
        columns.starts, columns.index * (4 * channels), columns.weight,
    ]  # fmt: skip
    most = int(np.diff(rows.starts).max(initial=0))
    words = [
        len(rois) * op.pooled_h, 4 * channels * width * height, channels, op.pooled_h, op.pooled_w,
        *(array.ctypes.data for array in kept), most,
    ]  # fmt: skip
    work = channels * len(columns.index) * most
    shared = threads() if work >= WORTH else 1
    maps = contiguous(channels_last(x))
    parallel_for(ALIGN.address, np.array(words, np.int64), y.reshape(-1), maps, UNUSED, UNUSED, shared)
    return channels_first(y)


def _samples(op: ROIAlign3 | ROIAlign9, size: Array, bins: int) -> Any:
    """Points of a bin along an axis, as real numbers: there may be very many."""
    if op.sampling_ratio:
        return np.full(len(size), op.sampling_ratio, np.float64)
    return np.maximum(np.ceil((size / bins).astype(np.float64)), 0)
