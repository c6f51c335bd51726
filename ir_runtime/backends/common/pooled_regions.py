"""The bins of ROIPooling and PSROIPooling, computed for all regions at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ir.tensor import Array
from ...ops.detection.regions import PSROIPooling, ROIPooling, round_half_away

__all__ = ["Bins", "largest_bins", "mean_bins", "regions_of"]


class Bins(NamedTuple):
    """The image index of each region, and the elements ``[begin, end)`` of its bins along each axis: ``[regions, count, 2]``."""

    images: Array
    rows: Array
    columns: Array

    @property
    def empty(self) -> Array:
        """A mask ``[regions, rows, columns]`` of the bins that contain no element."""
        rows, columns = (bounds[..., 0] >= bounds[..., 1] for bounds in (self.rows, self.columns))
        return np.asarray(rows[:, :, None] | columns[:, None])


def largest_bins(op: ROIPooling, x: Array, rois: Array) -> Bins | None:
    """Return the bins of ROIPooling, or ``None`` for inputs that the reference must handle (see `regions_of`)."""
    if (regions := regions_of(op, x, rois)) is None:
        return None
    images, corners = regions
    x1, y1, x2, y2 = round_half_away(corners * np.float32(op.spatial_scale)).T
    return Bins(images, _bins(y1, y2, op.pooled_h, x.shape[2]), _bins(x1, x2, op.pooled_w, x.shape[3]))


def mean_bins(op: PSROIPooling, x: Array, rois: Array) -> Bins | None:
    """Return the bins of PSROIPooling, or ``None`` for inputs that the reference must handle.

    These are the inputs that `regions_of` refuses, and data whose number of channels does not match the attributes.
    """
    size, regions = op.group_size, regions_of(op, x, rois)
    if regions is None or x.shape[1] != op.output_dim * size * size:
        return None
    images, corners = regions
    corners = round_half_away(corners)
    corners[:, 2:] += 1
    x1, y1, x2, y2 = (corners * np.float32(op.spatial_scale)).T
    return Bins(images, _touched_bins(y1, y2, size, x.shape[2]), _touched_bins(x1, x2, size, x.shape[3]))


def regions_of(op: ROIPooling | PSROIPooling, x: Array, rois: Array) -> tuple[Array, Array] | None:
    """Return the image index and the corners of each pooled region, or ``None`` for inputs that the reference must handle.

    These have no data or no regions, a corner that is not finite, or the index of an image that does not exist. For operations
    whose list of regions ends at the image index -1, later regions are left out.
    """
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
    """Return the elements ``[begin, end)`` of the bins of each region along an axis, as `ops.detection.regions.bins`.

    Args:
        first: the first element of each region.
        last: the last element of each region.
        count: the number of bins.
        length: the length of the axis.
    """
    size = np.maximum(last - first + 1, 1) / np.float32(count)
    steps = np.arange(count + 1, dtype=np.float32) * size[:, None]
    begins, ends = np.floor(steps[:, :-1]) + first[:, None], np.ceil(steps[:, 1:]) + first[:, None]
    return np.stack([np.clip(begins, 0, length), np.clip(ends, 0, length)], -1).astype(np.int64)


def _touched_bins(first: Array, last: Array, count: int, length: int) -> Array:
    """Return the elements ``[begin, end)`` that each bin touches along an axis, as `ops.detection.regions.covers`.

    Args:
        first: the begin of each region, which may be between elements.
        last: the end of each region.
        count: the number of bins.
        length: the length of the axis.
    """
    size = ((last - first) / np.float32(count))[:, None]
    steps = first[:, None] + np.arange(count + 1, dtype=np.float32) * size
    begins, ends = np.clip(np.floor(steps[:, :-1]), 0, length - 1), np.clip(np.ceil(steps[:, 1:]), 0, length)
    return np.stack([begins, ends], -1).astype(np.int64)
