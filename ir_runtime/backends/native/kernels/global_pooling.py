"""Global average pooling: means over all pixels of a map, channels last.

Threads sum the lines of a map that they have just computed, as a rule: these are in their own caches. Then they add the
sums of the parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.reduction import ReduceMean
from ... import Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.memory import barrier, fetch_add
from ..codegen.vectors import LANES
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.recording import workspace
from ..threading.task import UNUSED, Task, each_counted, each_unit, failure_word, load_args
from ._channel_means import channel_means, vectors_abreast
from ._columns import REDUCE, reduce_columns
from ._products import asked_products
from ._reduction_steps import Reduction
from ._windows import F32_SIZE, drop_padding, pad_channels
from .contiguous import contiguous

__all__ = ["spatial_means"]

# Elements of a part of a map.
PART_SIZE = 1 << 13


class SpatialMeanJob(Descriptor):
    """The job of `SPATIAL_MEAN`: maps, their parts, lines of a part, and vectors of channels that are summed at a time."""

    images: i64
    height: i64
    width: i64
    channels: i64
    parts: i64
    part_lines: i64
    vectors: i64
    data_size: i64


def _spatial_mean(call: int) -> None:
    address, y, x, sums, _, counter = load_args(call)
    job = SpatialMeanJob.at(address)
    images, height, width, channels = (
        job.images,
        job.height,
        job.width,
        job.channels,
    )
    parts, lines = job.parts, job.part_lines
    vectors, size = job.vectors, job.data_size
    span, step = LANES * vectors, size * channels
    groups = (channels + span - 1) // span
    for index in each_unit(call, images * parts):
        image = index // parts
        top = (index - image * parts) * lines
        source, target = x + (image * height + top) * width * step, sums + F32_SIZE * index * channels
        for group in range(groups):
            first = min(group * span, channels - span)
            channel_means(
                source + size * first, size, width * step, step, min(lines, height - top), width,
                target + F32_SIZE * first, vectors, np.float32(1),
            )  # fmt: skip
        fetch_add(counter + 8)
    barrier(counter + 8, images * parts, failure_word(call))
    factor = np.float32(1) / np.float32(height * width)
    for index in each_counted(counter + 16, images * groups):
        image = index // groups
        first = min((index - image * groups) * span, channels - span)
        source = sums + F32_SIZE * (image * parts * channels + first)
        target = y + F32_SIZE * (image * channels + first)
        channel_means(source, 4, 4 * channels, 0, parts, 1, target, vectors, factor)


SPATIAL_MEAN = Task(_spatial_mean)
"""Sum parts of maps; a unit is some lines. Then add the sums; a unit is some channels of a map."""


@backend.accelerates(ReduceMean)
def spatial_mean(op: ReduceMean, data: Value, axes: Value) -> KernelTemplate | None:
    """f32 over the two axes after the channels."""
    found = axes.ints()
    if not is_f32(data) or data.shape.rank != 4 or found is None or {axis % 4 for axis in found} != {2, 3}:
        return None
    REDUCE.prepare()
    return _SpatialMean(op, np.array(found), asked_products().is_faster)


@dataclass(frozen=True)
class _SpatialMean(KernelTemplate):
    """Means over the two axes after the channels; with ``bf16``, the data may be stored so. The result is f32."""

    op: ReduceMean
    axes: Array
    bf16: bool

    def reads_bf16(self, place: int) -> bool:
        """Return whether an input may be stored in bf16."""
        return self.bf16 and place == 0

    def prepare(self) -> Kernel:
        """Return a function, which is called faster."""
        return Kernel(self._means, replay=replayed())

    def _means(self, *arrays: Array) -> Array:
        """Compute the means of the first input."""
        x = arrays[0]
        if not x.size:
            return self.op.evaluate(x, self.axes)
        means = spatial_means(x)
        return means if self.op.keep_dims else means[:, :, 0, 0]


def spatial_means(x: Array) -> Array:
    """Return the means of the maps of ``[N, C, height, width]``, f32 or bf16, not empty, as ``[N, C, 1, 1]``."""
    if x.itemsize == F32_SIZE and x.flags.c_contiguous and x.shape[1] > 1:
        return _means_of_rows(x)
    rows = pad_channels(channels_last(x))
    images, height, width, channels = rows.shape
    lines = max(PART_SIZE // (width * channels), 1)
    parts = -(-height // lines)
    job = SpatialMeanJob.fill(
        images=images, height=height, width=width, channels=channels, parts=parts, part_lines=lines,
        vectors=vectors_abreast(channels), data_size=x.itemsize,
    )  # fmt: skip
    y, sums = empty((images, 1, 1, channels), np.float32), workspace(images * parts * channels)
    shared = threads_for(moved=8 * x.size)
    parallel_for(SPATIAL_MEAN.address, job, y, contiguous(rows), sums, UNUSED, shared)
    return channels_first(drop_padding(y, x.shape[1]))


def _means_of_rows(x: Array) -> Array:
    """Return the means of maps that are stored channels first."""
    images, channels, height, width = x.shape
    y = empty((images, channels, 1, 1), np.float32)
    reduce_columns(x, y, (images * channels, height * width, 1), Reduction.MEAN, height * width)
    return y
