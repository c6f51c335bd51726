"""ROIAlign: the mean of bilinear samples in the bins of a region is a product with weights along each axis."""

from __future__ import annotations

import numpy as np

from ...._util import deadline
from ....ir.tensor import Array, Value
from ....ops.detection.roi_align import ROIAlign3, ROIAlign9
from ... import Kernel
from ...common.layout import channels_last, is_f32
from .._backend import backend

__all__: list[str] = []

# Weights of all regions at once, at most; more are left to the reference, which takes region by region.
MAX_WEIGHTS = 1 << 24


@backend.accelerates(ROIAlign3, ROIAlign9)
def align(op: ROIAlign3 | ROIAlign9, data: Value, rois: Value, batch_indices: Value) -> Kernel | None:
    """Return a kernel for f32, and the mean of as many samples of each bin."""
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
        if not after:
            wide, tall = np.maximum(wide, np.float32(1)), np.maximum(tall, np.float32(1))
        rows = _weights(top, tall, op.pooled_h, samples, height)
        columns = _weights(left, wide, op.pooled_w, samples, width)
        return _pooled(np.ascontiguousarray(channels_last(x)), entries.tolist(), rows, columns)

    return Kernel(kernel)


def _is_plain(x: Array, rois: Array, entries: Array, largest: float) -> bool:
    """Return whether every region refers to an existing map, and all numbers are finite and of ordinary size."""
    if not x.size or not len(rois) or rois.shape != (len(entries), 4):
        return False
    if (entries < 0).any() or (entries >= len(x)).any():
        return False
    return bool(np.isfinite(rois).all() and x.max() <= largest and x.min() >= -largest)


def _weights(first: Array, size: Array, bins: int, samples: int, length: int) -> Array:
    """Return the weight of each element in the bins of each region along an axis: ``[region, bin, element]``."""
    step = (size / np.float32(bins))[:, None, None]
    parts = step / np.float32(samples) * (np.arange(samples, dtype=np.float32) + np.float32(0.5))
    at = first[:, None, None] + (np.arange(bins, dtype=np.float32)[:, None] * step + parts)
    within = (at >= -1) & (at <= length)
    # A sample between two elements takes of each as much as it is near.
    away = np.abs(np.clip(at, 0, length - 1)[..., None] - np.arange(length, dtype=np.float32))
    shares = np.maximum(np.float32(1) - away, np.float32(0)) * within[..., None]
    mean: Array = shares.mean(axis=2, dtype=np.float32)
    return mean


def _pooled(maps: Array, entries: list[int], rows: Array, columns: Array) -> Array:
    """Return the bins ``[region, C, height, width]`` from maps ``[N, height, width, C]``."""
    channels = maps.shape[-1]
    y = np.empty((len(entries), channels, rows.shape[1], columns.shape[1]), np.float32)
    for region, (across, down) in enumerate(zip(_used(columns), _used(rows), strict=True)):
        if not region % 64:
            deadline.check()
        part = maps[entries[region], down, across]
        by_row = part.reshape(len(part), part.shape[1] * channels)
        mixed = (rows[region, :, down] @ by_row).reshape(-1, part.shape[1], channels)
        y[region] = np.matmul(columns[region, :, across], mixed).transpose(2, 0, 1)
    return y


def _used(weights: Array) -> list[slice]:
    """Return the elements used by each region."""
    used = np.asarray(weights.any(axis=1))
    starts, stops = used.argmax(axis=1), used.shape[1] - used[:, ::-1].argmax(axis=1)
    return [slice(start, stop) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
