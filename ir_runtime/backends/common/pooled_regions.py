"""The regions of ROIPooling and PSROIPooling, and the bins of all of them at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ir.tensor import Array
from ...ops.detection.regions import PSROIPooling, ROIPooling, round_half_away

__all__ = ["Bins", "largest_bins", "mean_bins", "regions_of"]


class Bins(NamedTuple):
    """The image of each region, and where its bins begin and end along rows and columns: ``[regions, count, 2]``."""

    images: Array
    rows: Array
    columns: Array

    @property
    def empty(self) -> Array:
        """Which bins have no elements: ``[regions, rows, columns]``."""
        rows, columns = (bounds[..., 0] >= bounds[..., 1] for bounds in (self.rows, self.columns))
        return np.asarray(rows[:, :, None] | columns[:, None])


def largest_bins(op: ROIPooling, x: Array, rois: Array) -> Bins | None:
    """Return the bins of ROIPooling; ``None`` for inputs that the reference must refuse."""
    if (found := regions_of(op, x, rois)) is None:
        return None
    images, corners = found
    x1, y1, x2, y2 = round_half_away(corners * np.float32(op.spatial_scale)).T
    return Bins(images, _bins(y1, y2, op.pooled_h, x.shape[2]), _bins(x1, x2, op.pooled_w, x.shape[3]))


def mean_bins(op: PSROIPooling, x: Array, rois: Array) -> Bins | None:
    """Return the bins of PSROIPooling; ``None`` for inputs that the reference must refuse."""
    size, found = op.group_size, regions_of(op, x, rois)
    if found is None or x.shape[1] != op.output_dim * size * size:
        return None
    images, corners = found
    corners = round_half_away(corners)
    corners[:, 2:] += 1
    x1, y1, x2, y2 = (corners * np.float32(op.spatial_scale)).T
    return Bins(images, _covered(y1, y2, size, x.shape[2]), _covered(x1, x2, size, x.shape[3]))


def regions_of(op: ROIPooling | PSROIPooling, x: Array, rois: Array) -> tuple[Array, Array] | None:
    """Return the image and corners of each pooled region; ``None`` for inputs that the reference must refuse."""
    if not x.size or rois.ndim != 2 or rois.shape[1] != 5:
        return None
    images = np.trunc(rois[:, 0])
    if op.ends:
        rois = rois[: next(iter(np.flatnonzero(images == -1)), len(rois))]
        images = images[: len(rois)]
    if not len(rois) or not np.isfinite(rois).all() or not ((images >= 0) & (images < len(x))).all():
        return None
    return images.astype(np.int64), rois[:, 1:]


def _bins(first: Array, last: Array, count: int, length: int) -> Array:
    """Return where the bins of each region begin and end, as `ops.detection.regions.bins` does."""
    size = np.maximum(last - first + 1, 1) / np.float32(count)
    steps = np.arange(count + 1, dtype=np.float32) * size[:, None]
    begins, ends = np.floor(steps[:, :-1]) + first[:, None], np.ceil(steps[:, 1:]) + first[:, None]
    return np.stack([np.clip(begins, 0, length), np.clip(ends, 0, length)], -1).astype(np.int64)


def _covered(first: Array, last: Array, count: int, length: int) -> Array:
    """Return the elements that the bins of each region touch, as `ops.detection.regions.covers` does."""
    size = ((last - first) / np.float32(count))[:, None]
    steps = first[:, None] + np.arange(count + 1, dtype=np.float32) * size
    begins, ends = np.clip(np.floor(steps[:, :-1]), 0, length - 1), np.clip(np.ceil(steps[:, 1:]), 0, length)
    return np.stack([begins, ends], -1).astype(np.int64)
