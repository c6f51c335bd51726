"""Pooling of regions: ROIAlign, ROIPooling and PSROIPooling.

ROIAlign multiplies by the bilinear weights of samples along each axis. ROIPooling and PSROIPooling reduce bins along one axis
after the other.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ...._util import deadline
from ....ir.tensor import Array, Value
from ....ops.detection.regions import PSROIPooling, ROIAlign3, ROIAlign9, ROIPooling
from ....ops.kernels.statistics import lowest
from ... import Kernel
from ...common.layout import channels_first, channels_last, is_f32
from ...common.pooled_regions import largest_bins, mean_bins
from .._backend import backend
from ._gemm import is_finite

__all__: list[str] = []

# The maximum number of weights of all regions; larger inputs are left to the reference, which takes region by region.
MAX_WEIGHTS = 1 << 24


@backend.accelerates(ROIAlign3, ROIAlign9)
def align(op: ROIAlign3 | ROIAlign9, data: Value, rois: Value, batch_indices: Value) -> Kernel | None:
    """Return a kernel for f32 and the mean of a fixed number of samples per bin, else ``None``."""
    if op.mode != "avg" or op.sampling_ratio < 1 or not is_f32(data, rois):
        return None
    before, after = map(np.float32, op.shifts())
    scale, samples = np.float32(op.spatial_scale), op.sampling_ratio
    largest = float(np.finfo(np.float32).max) / (4 * samples * samples)

    def kernel(x: Array, rois: Array, entries: Array) -> Array:
        height, width = x.shape[2:]
        if not _is_plain(x, rois, entries, largest):
            return op.evaluate(x, rois, entries)
        if len(rois) * samples * (height * op.pooled_h + width * op.pooled_w) > MAX_WEIGHTS:
            return op.evaluate(x, rois, entries)
        left, top, right, bottom = ((rois + before) * scale + after).T
        wide, tall = right - left, bottom - top
        if not (np.isfinite(wide).all() and np.isfinite(tall).all()):
            return op.evaluate(x, rois, entries)
        if not after:
            wide, tall = np.maximum(wide, np.float32(1)), np.maximum(tall, np.float32(1))
        rows = _weights(top, tall, op.pooled_h, samples, height)
        columns = _weights(left, wide, op.pooled_w, samples, width)
        return _pool_maps(np.ascontiguousarray(channels_last(x)), entries.tolist(), rows, columns)

    return Kernel(kernel)


def _is_plain(x: Array, rois: Array, entries: Array, largest: float) -> bool:
    """Return whether every region refers to an existing map, and all elements of maps are in ``[-largest, largest]``.

    It is false for inputs without maps or regions. ``entries`` is the index of the map of each region.
    """
    if not x.size or not len(rois) or rois.shape != (len(entries), 4):
        return False
    if (entries < 0).any() or (entries >= len(x)).any():
        return False
    return bool(x.max() <= largest and x.min() >= -largest)


def _weights(first: Array, size: Array, bins: int, samples: int, length: int) -> Array:
    """Return the bilinear weight of each element in each bin along an axis: ``[region, bin, element]``.

    Args:
        first: the begin of each region along the axis.
        size: the length of each region, which need not be integral.
        bins: the number of bins of a region.
        samples: the number of samples of a bin.
        length: the number of elements along the axis.
    """
    step = (size / np.float32(bins))[:, None, None]
    parts = step / np.float32(samples) * (np.arange(samples, dtype=np.float32) + np.float32(0.5))
    at = first[:, None, None] + (np.arange(bins, dtype=np.float32)[:, None] * step + parts)
    within = (at >= -1) & (at <= length)
    # Bilinear interpolation: the weight of an element is 1 minus its distance from the sample.
    away = np.abs(np.clip(at, 0, length - 1)[..., None] - np.arange(length, dtype=np.float32))
    shares = np.maximum(np.float32(1) - away, np.float32(0)) * within[..., None]
    mean: Array = shares.mean(axis=2, dtype=np.float32)
    return mean


def _pool_maps(maps: Array, entries: list[int], rows: Array, columns: Array) -> Array:
    """Return the bins ``[region, C, height, width]`` of maps ``[N, height, width, C]``.

    Args:
        maps: the maps.
        entries: the index of the map of each region.
        rows: the weights along the height, from `_weights`.
        columns: the weights along the width.
    """
    channels = maps.shape[-1]
    y = np.empty((len(entries), channels, rows.shape[1], columns.shape[1]), np.float32)
    for region, (across, down) in enumerate(zip(_used_ranges(columns), _used_ranges(rows), strict=True)):
        if not region % 64:
            deadline.check()
        part = maps[entries[region], down, across]
        by_row = part.reshape(len(part), part.shape[1] * channels)
        mixed = (rows[region, :, down] @ by_row).reshape(-1, part.shape[1], channels)
        y[region] = np.matmul(columns[region, :, across], mixed).transpose(2, 0, 1)
    return y


def _used_ranges(weights: Array) -> list[slice]:
    """Return the range of elements with nonzero weights of each region."""
    used = np.asarray(weights.any(axis=1))
    starts, stops = used.argmax(axis=1), used.shape[1] - used[:, ::-1].argmax(axis=1)
    return [slice(start, stop) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]


# The maximum number of row sums at a time, before they are summed to bins; regions are processed in chunks.
MAX_PARTIAL = 1 << 18
# The number of regions between two checks of the deadline.
CHECKED = 64


@backend.accelerates(ROIPooling)
def pool(op: ROIPooling, data: Value, rois: Value) -> Kernel | None:
    """Return a kernel for f32 and the maximum of each bin, else ``None``."""
    return Kernel(partial(_largest, op)) if op.method == "max" and is_f32(data, rois) else None


@backend.accelerates(PSROIPooling)
def position_sensitive(op: PSROIPooling, data: Value, rois: Value) -> Kernel | None:
    """Return a kernel for f32 and the mean of each bin, else ``None``."""
    return Kernel(partial(_means, op)) if op.mode == "average" and is_f32(data, rois) else None


def _largest(op: ROIPooling, x: Array, rois: Array) -> Array:
    if (bins := largest_bins(op, x, rois)) is None:
        return op.evaluate(x, rois)
    maps = np.ascontiguousarray(channels_last(x))
    y = np.zeros((len(rois), op.pooled_h, op.pooled_w, x.shape[1]), np.float32)
    every = zip(*(array.tolist() for array in bins), strict=True)
    for region, (image, of_rows, of_columns) in enumerate(every):
        if not region % CHECKED:
            deadline.check()
        _pool_region(maps[image], of_rows, of_columns, y[region])
    pooled = y[: len(bins.images)]
    np.fmax(pooled, lowest(np.dtype(np.float32)), out=pooled)
    if (nothing := bins.empty).any():
        pooled[nothing] = 0
    return channels_first(y)


def _pool_region(maps: Array, rows: list[list[int]], columns: list[list[int]], out: Array) -> None:
    """Write the maximum of each bin of a region into ``out[bin row, bin column, C]``; an empty bin is left as it is.

    Args:
        maps: the map, ``[height, width, C]``.
        rows: the elements ``[begin, end)`` of each bin along the height.
        columns: the elements ``[begin, end)`` of each bin along the width.
        out: the result.
    """
    first, last = columns[0][0], columns[-1][1]
    part = maps[:, first:last]
    largest = np.zeros((len(rows), *part.shape[1:]), np.float32)
    for of_row, (top, bottom) in zip(largest, rows, strict=True):
        if top < bottom:
            np.fmax.reduce(part[top:bottom], 0, out=of_row)
    for index, (left, right) in enumerate(columns):
        if left < right:
            np.fmax.reduce(largest[:, left - first : right - first], 1, out=out[:, index])


def _means(op: PSROIPooling, x: Array, rois: Array) -> Array:
    """Return the mean of each bin; sums are products with a mask that is 1 inside the bin and 0 elsewhere."""
    size, depth = op.group_size, op.output_dim
    bins = mean_bins(op, x, rois)
    if bins is None or not is_finite(x.reshape(-1)):
        return op.evaluate(x, rois)
    images, rows, columns = bins
    y = np.zeros((len(rois), depth, size, size), np.float32)
    chunk = max(MAX_PARTIAL // (size * depth * x.shape[3]), 1)
    for image in np.unique(images).tolist():
        # Bins of a row are next to each other: [row, height, column, depth, width].
        maps = x[image].reshape(depth, size, size, *x.shape[2:]).transpose(1, 3, 2, 0, 4)
        maps = np.ascontiguousarray(maps)
        regions = np.flatnonzero(images == image)
        for start in range(0, len(regions), chunk):
            deadline.check()
            part = regions[start : start + chunk]
            y[part] = _sums(maps, _inside(rows[part], x.shape[2]), _inside(columns[part], x.shape[3]))
    counts = _lengths(rows)[:, :, None] * _lengths(columns)[:, None]
    np.divide(y, np.maximum(counts, 1).astype(np.float32)[:, None], out=y)
    return y


def _sums(maps: Array, rows: Array, columns: Array) -> Array:
    """Return the sum of each bin, ``[region, depth, row, column]``.

    Args:
        maps: ``[row, height, column, depth, width]``.
        rows: the mask ``[region, row, height]``.
        columns: the mask ``[region, column, width]``.
    """
    size, height, _, depth, width = maps.shape
    sums = np.empty((len(rows), depth, size, size), np.float32)
    for row in range(size):
        by_row = rows[:, row] @ maps[row].reshape(height, -1)
        by_column = by_row.reshape(-1, size, depth, width)
        sums[:, :, row] = np.matmul(by_column, columns[..., None])[..., 0].transpose(0, 2, 1)
    return sums


def _inside(bounds: Array, length: int) -> Array:
    """Return a mask, 1 for the elements of each bin along an axis and 0 elsewhere: ``[region, bin, element]``.

    Args:
        bounds: the elements ``[begin, end)`` of each bin, ``[region, bin, 2]``.
        length: the length of the axis.
    """
    places = np.arange(length)
    return np.asarray((places >= bounds[..., :1]) & (places < bounds[..., 1:]), np.float32)


def _lengths(bounds: Array) -> Array:
    return np.asarray(np.maximum(bounds[..., 1] - bounds[..., 0], 0))
