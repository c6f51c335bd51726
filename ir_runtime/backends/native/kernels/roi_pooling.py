"""ROIPooling and PSROIPooling: the largest element, one bilinear sample, or the mean of the bins of regions."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.detection.roi_pooling import PSROIPooling, ROIPooling
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last, is_f32
from ...common.pooled_regions import Bins, largest_bins, mean_bins, regions_of
from .._backend import backend
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED
from ._pooled_bins import LARGEST_OF_BINS, MEANS_OF_BINS, BinsJob
from .contiguous import contiguous
from .roi_align import ALIGN, BinSamples, align_bins

__all__: list[str] = []


@backend.accelerates(ROIPooling)
def pool(op: ROIPooling, data: Value, rois: Value) -> Kernel | None:
    """f32."""
    if not is_f32(data, rois):
        return None
    (ALIGN if op.method == "bilinear" else LARGEST_OF_BINS).prepare()
    return Kernel(partial(_sampled if op.method == "bilinear" else _largest, op))


@backend.accelerates(PSROIPooling)
def position_sensitive(op: PSROIPooling, data: Value, rois: Value) -> Kernel | None:
    """f32, the mean of elements."""
    if op.mode != "average" or not is_f32(data, rois):
        return None
    MEANS_OF_BINS.prepare()
    return Kernel(partial(_means, op))


def _largest(op: ROIPooling, x: Array, rois: Array) -> Array:
    if (bins := largest_bins(op, x, rois)) is None:
        return op.evaluate(x, rois)
    shape = len(rois), op.pooled_h, op.pooled_w, x.shape[1]
    y = empty(shape, np.float32)
    y[len(bins.images) :] = 0
    _run(LARGEST_OF_BINS.address, contiguous(channels_last(x)), y, bins, x.shape, x.shape[1])
    if (nothing := bins.empty).any():
        y[: len(bins.images)][nothing] = 0
    return channels_first(y)


def _means(op: PSROIPooling, x: Array, rois: Array) -> Array:
    size, depth = op.group_size, op.output_dim
    if (bins := mean_bins(op, x, rois)) is None:
        return op.evaluate(x, rois)
    y = empty((len(rois), depth, size, size), np.float32)
    _run(MEANS_OF_BINS.address, contiguous(x), y, bins, x.shape, depth)
    return y


def _run(task: int, maps: Array, y: Array, bins: Bins, shape: tuple[int, ...], depth: int) -> None:
    """Compute the bins of regions of images ``[N, C, height, width]``, however they are stored."""
    images, rows, columns = bins
    job = BinsJob.fill(
        regions=len(images), bin_rows=rows.shape[1], bin_columns=columns.shape[1], depth=depth, height=shape[2],
        width=shape[3], channels=shape[1], images=images.ctypes.data, row_bounds=rows.ctypes.data,
        column_bounds=columns.ctypes.data,
    )  # fmt: skip
    shared = threads_for(steps=y.size)
    parallel_for(task, job, y.reshape(-1), maps, UNUSED, UNUSED, shared)


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
