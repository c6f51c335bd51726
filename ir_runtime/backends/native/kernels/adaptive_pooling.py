"""Adaptive average pooling: channels last, some vectors of channels at a time."""

from __future__ import annotations

import math

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.pooling.adaptive import AdaptiveAvgPool
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.vectors import LANES
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_unit, load_args
from ._channel_means import channel_means, vectors_abreast
from ._windows import F32_SIZE, drop_padding, pad_channels
from .contiguous import contiguous
from .global_pooling import spatial_means

__all__: list[str] = []


class AdaptivePoolJob(Descriptor):
    """The job of `ADAPTIVE_MEAN`: ``vectors`` of channels of an element are a unit."""

    height: i64
    width: i64
    channels: i64
    out_height: i64
    out_width: i64
    units: i64
    vectors: i64
    data_size: i64


def _adaptive_mean(call: int) -> None:
    address, y, x, _, _, _ = load_args(call)
    job = AdaptivePoolJob.at(address)
    height, width, channels, lines, columns = (
        job.height,
        job.width,
        job.channels,
        job.out_height,
        job.out_width,
    )
    count, vectors = job.units, job.vectors
    size = job.data_size
    step = size * channels
    span = LANES * vectors
    groups = (channels + span - 1) // span
    for index in each_unit(call, count):
        place = index // groups
        first = min((index - place * groups) * span, channels - span)
        image, column = place // (lines * columns), place % columns
        across = place // columns - image * lines
        top, left = across * height // lines, column * width // columns
        rows = ((across + 1) * height + lines - 1) // lines - top
        breadth = ((column + 1) * width + columns - 1) // columns - left
        source = x + ((image * height + top) * width + left) * step + size * first
        target, factor = y + F32_SIZE * (place * channels + first), np.float32(1) / np.float32(rows * breadth)
        channel_means(source, size, width * step, step, rows, breadth, target, vectors, factor)


ADAPTIVE_MEAN = Task(_adaptive_mean)
"""Compute means over windows that are as equal as possible; a unit is some channels of an element."""


@backend.accelerates(AdaptiveAvgPool)
def adaptive(op: AdaptiveAvgPool, data: Value, output_size: Value) -> Kernel | None:
    """f32 over two spatial axes, into a constant number of windows."""
    counts = output_size.ints()
    if not is_f32(data) or counts is None or data.shape.rank != 4 or len(counts) != 2 or min(counts) < 1:
        return None
    means = spatial_means if counts == (1, 1) else lambda x: _adaptive_means(x, counts)
    return Kernel(lambda x, _: means(x) if x.size else op.evaluate(x, np.array(counts)), replay=replayed())


def _adaptive_means(x: Array, counts: tuple[int, ...]) -> Array:
    rows = pad_channels(channels_last(x))
    n, height, width, channels = rows.shape
    y = empty((n, *counts, channels), np.float32)
    vectors = vectors_abreast(channels)
    groups = -(-channels // (LANES * vectors))
    job = AdaptivePoolJob.fill(
        height=height, width=width, channels=channels, out_height=counts[0], out_width=counts[1],
        units=n * math.prod(counts) * groups, vectors=vectors, data_size=x.itemsize,
    )  # fmt: skip
    shared = threads_for(computed=x.size)
    parallel_for(ADAPTIVE_MEAN.address, job, y, contiguous(rows), UNUSED, UNUSED, shared)
    return channels_first(drop_padding(y, x.shape[1]))
