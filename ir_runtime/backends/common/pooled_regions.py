"""The regions of ROIPooling and PSROIPooling, and the bins of all of them at once."""

from __future__ import annotations

import numpy as np

from ...ir.tensor import Array
from ...ops.detection.roi_pooling import PSROIPooling, ROIPooling

__all__ = ["bins_of", "covered_by", "regions_of"]


def regions_of(op: ROIPooling | PSROIPooling, x: Array, rois: Array) -> tuple[Array, Array] | None:
    """Return the image and the corners of each region that is pooled; ``None`` for what the reference has to refuse."""
    if not x.size or rois.ndim != 2 or rois.shape[1] != 5:
        return None
    images = np.trunc(rois[:, 0])
    if op.ends:
        rois = rois[: next(iter(np.flatnonzero(images == -1)), len(rois))]
        images = images[: len(rois)]
    if not len(rois) or not np.isfinite(rois).all() or not ((images >= 0) & (images < len(x))).all():
        return None
    return images.astype(np.int64), rois[:, 1:]


def bins_of(first: Array, last: Array, count: int, length: int) -> Array:
    """Return where the bins of each region begin and end, as `ops.detection.bins.bins` does: ``[regions, count, 2]``."""
    size = np.maximum(last - first + 1, 1) / np.float32(count)
    steps = np.arange(count + 1, dtype=np.float32) * size[:, None]
    begins, ends = np.floor(steps[:, :-1]) + first[:, None], np.ceil(steps[:, 1:]) + first[:, None]
    return np.stack([np.clip(begins, 0, length), np.clip(ends, 0, length)], -1).astype(np.int64)


def covered_by(first: Array, last: Array, count: int, length: int) -> Array:
    """Return the elements that the bins of each region touch, as `ops.detection.bins.covers` does."""
    size = ((last - first) / np.float32(count))[:, None]
    steps = first[:, None] + np.arange(count + 1, dtype=np.float32) * size
    begins, ends = np.clip(np.floor(steps[:, :-1]), 0, length - 1), np.clip(np.ceil(steps[:, 1:]), 0, length)
    return np.stack([begins, ends], -1).astype(np.int64)
