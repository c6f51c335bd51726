"""ROIPooling and PSROIPooling: the largest element, one bilinear sample, or the mean of the bins of regions."""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.detection.bins import rounded
from ....ops.detection.roi_pooling import PSROIPooling, ROIPooling
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last, is_f32
from ...common.pooled_regions import bins_of, covered_by, regions_of
from .._backend import backend
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED
from ._pooled_bins import LARGEST_OF_BINS, MEANS_OF_BINS, BinsJob
from .contiguous import contiguous
from .roi_align import ALIGN, BinSamples, align_bins

__all__: list[str] = []

# Numbers of a result from which on several threads are faster.
MIN_PARALLEL_WORK = 1 << 12

_Bounds: TypeAlias = tuple[Array, Array]


@backend.accelerates(ROIPooling)
def pool(op: ROIPooling, data: Value, rois: Value) -> Kernel | None:
    """f32."""
    if not is_f32(data, rois):
        return None
    (ALIGN if op.method == "bilinear" else LARGEST_OF_BINS).prepare()
    return partial(_sampled if op.method == "bilinear" else _largest, op)


@backend.accelerates(PSROIPooling)
def position_sensitive(op: PSROIPooling, data: Value, rois: Value) -> Kernel | None:
    """f32, the mean of elements."""
    if op.mode != "average" or not is_f32(data, rois):
        return None
    MEANS_OF_BINS.prepare()
    return partial(_means, op)


def _largest(op: ROIPooling, x: Array, rois: Array) -> Array:
    if (found := regions_of(op, x, rois)) is None:
        return op.evaluate(x, rois)
    images, corners = found
    x1, y1, x2, y2 = rounded(corners * np.float32(op.spatial_scale)).T
    rows, columns = bins_of(y1, y2, op.pooled_h, x.shape[2]), bins_of(x1, x2, op.pooled_w, x.shape[3])
    shape = len(rois), op.pooled_h, op.pooled_w, x.shape[1]
    y = empty(shape, np.float32)
    y[len(images) :] = 0
    _run(
        LARGEST_OF_BINS.address, contiguous(channels_last(x)), y, images, (rows, columns), x.shape, x.shape[1]
    )
    if (nothing := _empty(rows)[:, :, None] | _empty(columns)[:, None]).any():
        y[: len(images)][nothing] = 0
    return channels_first(y)


def _means(op: PSROIPooling, x: Array, rois: Array) -> Array:
    size, depth = op.group_size, op.output_dim
    found = regions_of(op, x, rois)
    if found is None or x.shape[1] != depth * size * size:
        return op.evaluate(x, rois)
    images, corners = found
    corners = rounded(corners)
    corners[:, 2:] += 1
    x1, y1, x2, y2 = (corners * np.float32(op.spatial_scale)).T
    bounds = covered_by(y1, y2, size, x.shape[2]), covered_by(x1, x2, size, x.shape[3])
    y = empty((len(rois), depth, size, size), np.float32)
    _run(MEANS_OF_BINS.address, contiguous(x), y, images, bounds, x.shape, depth)
    return y


def _run(
    task: int, maps: Array, y: Array, images: Array, bounds: _Bounds, shape: tuple[int, ...], depth: int
) -> None:
    """Compute the bins of regions of images ``[N, C, height, width]``, however they are stored."""
    rows, columns = bounds
    job = BinsJob.fill(
        regions=len(images), bin_rows=rows.shape[1], bin_columns=columns.shape[1], depth=depth, height=shape[2],
        width=shape[3], channels=shape[1], images=images.ctypes.data, row_bounds=rows.ctypes.data,
        column_bounds=columns.ctypes.data,
    )  # fmt: skip
    shared = threads() if y.size >= MIN_PARALLEL_WORK else 1
    parallel_for(task, job, y.reshape(-1), maps, UNUSED, UNUSED, shared)


def _empty(bounds: Array) -> Array:
    return bounds[..., 0] >= bounds[..., 1]


def _sampled(op: ROIPooling, x: Array, rois: Array) -> Array:
    """Compute one bilinear sample of each bin; corners are in parts of the image."""
    if (found := regions_of(op, x, rois)) is None:
        return op.evaluate(x, rois)
    images, corners = found
    x1, y1, x2, y2 = corners.T
    rows = BinSamples.around(_points(y1, y2, op.pooled_h, x.shape[2]), x.shape[2])
    columns = BinSamples.around(_points(x1, x2, op.pooled_w, x.shape[3]), x.shape[3])
    y = empty((len(rois), op.pooled_h, op.pooled_w, x.shape[1]), np.float32)
    y[len(images) :] = 0
    align_bins(x, images, rows, columns, y[: len(images)])
    return channels_first(y)


def _points(first: Array, last: Array, count: int, length: int) -> Array:
    """Return the samples of each region, as `ops.detection.bins.points` does: ``[regions, count]``."""
    far = np.float32(length - 1)
    if count == 1:
        return np.asarray(np.float32(0.5) * (first + last) * far)[:, None]
    step = (last - first) * far / np.float32(count - 1)
    places = np.arange(count, dtype=np.float32) * step[:, None] + (first * far)[:, None]
    places[:, -1] = last * far
    return np.asarray(places)
