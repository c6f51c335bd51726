"""Max and average pooling, adaptive average pooling, and spatial means in NHWC layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any

import numpy as np

from ....ir.tensor import Array, Value
from ....kernels.statistics import lowest
from ....ops.pooling.adaptive import AdaptiveAvgPool
from ....ops.pooling.windowed import (
    AvgPool1,
    AvgPool14,
    AvgPool16,
    AvgPoolBase,
    MaxPool1,
    MaxPool8,
    MaxPool14,
    MaxPoolWithIndices,
    Pooling,
)
from ....ops.reduction import ReduceMean
from ... import Kernel
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import fetch_add, load_f32, load_i64
from ..codegen.vectors import LANES, Emit
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, contiguous, load_args
from ._reductions import scale_row
from ._windows import (
    F32_SIZE,
    WINDOWS,
    SlidingWindows,
    general_window,
    geometry,
    pad_channels,
    sliding_window,
    window_range,
)

__all__: list[str] = []

# Elements read from which on several threads are faster.
MIN_PARALLEL_WORK = 1 << 17
# Vectors of channels that are summed at a time.
MAX_VECTORS = 4

_LOWEST = float(lowest(np.dtype(np.float32)))
_UNREAD = np.empty(0)


def _max(emit: Emit, found: Any, x: Any, _: Any) -> Any:
    """Return the maximum, ignoring NaN."""
    return emit.builder.select(emit.builder.fcmp_ordered(">", x, found), x, found)


def _add(emit: Emit, found: Any, x: Any, _: Any) -> Any:
    return emit.add(found, x)


# Maximum and sum of several windows at a time; add 1 for one window at a time.
_MAX, _AVERAGE = 0, 2
_slide = sliding_window({
    _MAX: general_window(_max, WINDOWS), _MAX + 1: general_window(_max, 1), _AVERAGE: general_window(_add, WINDOWS), _AVERAGE + 1: general_window(_add, 1),
})  # fmt: skip


class PoolJob(SlidingWindows):
    """The job of `POOL`: ``factor`` multiplies sums; 0 divides them by the elements inside the data."""

    rows: i64
    mode: i64
    fill_values: i64
    factor: f32


class AdaptivePoolJob(Descriptor):
    """The job of `ADAPTIVE_MEAN`: ``vectors`` of channels of an element are a unit."""

    height: i64
    width: i64
    channels: i64
    out_height: i64
    out_width: i64
    units: i64
    vectors: i64


@device
def _vectors(
    form: int, x: int, down: int, right: int, rows: int, y: int, filler: int, first: int, width: int,
    kernel: int, dilation: int, stride: int, channels: int,
) -> None:  # fmt: skip
    """Compute neighbouring windows for all channels."""
    for c in range(0, channels, LANES):
        at = F32_SIZE * min(c, channels - LANES)
        a, b = x + at, y + at
        _slide(
            form, a, down, right, 0, rows, b, right, filler, first, width, filler, kernel, dilation, stride
        )


def _pool(call: int) -> None:
    job, y, x, _, _, counter = load_args(call)
    height, width, channels, lines, columns = (
        load_i64(job, PoolJob.height),
        load_i64(job, PoolJob.width),
        load_i64(job, PoolJob.channels),
        load_i64(job, PoolJob.out_height),
        load_i64(job, PoolJob.out_width),
    )
    tall, wide, across, along = (
        load_i64(job, PoolJob.kernel_height),
        load_i64(job, PoolJob.kernel_width),
        load_i64(job, PoolJob.stride_down),
        load_i64(job, PoolJob.stride_across),
    )
    spread, apart, above, before = (
        load_i64(job, PoolJob.dilation_down),
        load_i64(job, PoolJob.dilation_across),
        load_i64(job, PoolJob.pad_top),
        load_i64(job, PoolJob.pad_left),
    )
    count, form, filler, factor = (
        load_i64(job, PoolJob.rows),
        load_i64(job, PoolJob.mode),
        load_i64(job, PoolJob.fill_values),
        load_f32(job, PoolJob.factor),
    )
    beside = WINDOWS if columns >= WINDOWS else 1
    form += beside == 1
    step, row = F32_SIZE * channels, F32_SIZE * channels * width
    index = fetch_add(counter)
    while index < count:
        image = index // lines
        top = (index - image * lines) * across - above
        low, high = window_range(top, height, spread, tall)
        source = x + (image * height + top + low * spread) * row
        target = y + index * columns * step
        for place in range(0, columns, beside):
            column = min(place, columns - beside)
            first = column * along - before
            _vectors(
                form, source + first * step, row * spread, step, high - low, target + column * step, filler,
                first, width, wide, apart, along, channels,
            )  # fmt: skip
        if form >= _AVERAGE and factor > 0:
            scale_row(target, columns * channels, factor)
        elif form >= _AVERAGE:
            for column in range(columns):
                left, right = window_range(column * along - before, width, apart, wide)
                inside = max((high - low) * (right - left), 1)
                scale_row(target + column * step, channels, np.float32(1) / np.float32(inside))
        index = fetch_add(counter)


POOL = Task(_pool)
"""Compute rows of the results of all images."""


def _rectangle_mean(abreast: int) -> Any:
    """Return an instruction for the mean over a rectangle for several vectors of channels, summed row by row."""

    def write(
        emit: Emit, x: Any, down: Any, right: Any, rows: Any, columns: Any, y: Any, factor: Any
    ) -> None:
        zeros = [emit.constant(0)] * abreast
        with emit.loop(rows, [x, *zeros]) as (_, (begin, *totals), below):
            with emit.loop(columns, [begin, *zeros]) as (_, (place, *sums), following):
                loaded = [emit.load(emit.at(place, 4 * LANES * i)) for i in range(abreast)]
                sums = [emit.add(a, b) for a, b in zip(sums, loaded, strict=True)]
                following += [emit.at(place, right), *sums]
            totals = [emit.add(a, b) for a, b in zip(totals, following[1:], strict=True)]
            below += [emit.at(begin, down), *totals]
        same = emit.splat(factor)
        for i, total in enumerate(below[1:]):
            emit.store(emit.multiply(total, same), emit.at(y, 4 * LANES * i))

    return instruction(*[types.int64] * 6, types.float32)(write)


_mean_wide, _mean_double, _mean_single = _rectangle_mean(MAX_VECTORS), _rectangle_mean(2), _rectangle_mean(1)


def _adaptive_mean(call: int) -> None:
    job, y, x, _, _, counter = load_args(call)
    height, width, channels, lines, columns = (
        load_i64(job, AdaptivePoolJob.height),
        load_i64(job, AdaptivePoolJob.width),
        load_i64(job, AdaptivePoolJob.channels),
        load_i64(job, AdaptivePoolJob.out_height),
        load_i64(job, AdaptivePoolJob.out_width),
    )
    count, vectors = load_i64(job, AdaptivePoolJob.units), load_i64(job, AdaptivePoolJob.vectors)
    step = F32_SIZE * channels
    span = LANES * vectors
    groups = (channels + span - 1) // span
    index = fetch_add(counter)
    while index < count:
        place = index // groups
        at = F32_SIZE * min((index - place * groups) * span, channels - span)
        image, column = place // (lines * columns), place % columns
        across = place // columns - image * lines
        top, left = across * height // lines, column * width // columns
        rows = ((across + 1) * height + lines - 1) // lines - top
        breadth = ((column + 1) * width + columns - 1) // columns - left
        source = x + ((image * height + top) * width + left) * step + at
        target, factor = y + place * step + at, np.float32(1) / np.float32(rows * breadth)
        if vectors == MAX_VECTORS:
            _mean_wide(source, width * step, step, rows, breadth, target, factor)
        elif vectors == 2:
            _mean_double(source, width * step, step, rows, breadth, target, factor)
        else:
            _mean_single(source, width * step, step, rows, breadth, target, factor)
        index = fetch_add(counter)


ADAPTIVE_MEAN = Task(_adaptive_mean)
"""Compute means over windows that are as equal as possible; a unit is some channels of an element."""


@backend.accelerates(MaxPool1)
def max_pool(op: MaxPool1, data: Value) -> Kernel | None:
    """f32 over two spatial axes. As in the reference, no result is NaN, nor below the lowest number."""
    return _pooling(op, _MAX, _LOWEST) if _is_supported(op, data) else None


@backend.accelerates(MaxPool8, MaxPool14)
def max_pool_values(op: MaxPoolWithIndices, data: Value, unread: Collection[int] = ()) -> Kernel | None:
    """f32 over two spatial axes, where the indices are not read."""
    if not _is_supported(op, data) or 1 not in unread:
        return None
    kernel = _pooling(op, _MAX, _LOWEST)
    return lambda x: (kernel(x), _UNREAD)


@backend.accelerates(AvgPool1, AvgPool14, AvgPool16)
def average_pool(op: AvgPoolBase, data: Value) -> Kernel | None:
    """f32 over two spatial axes."""
    return _pooling(op, _AVERAGE, 0) if _is_supported(op, data) else None


def _is_supported(op: Pooling, data: Value) -> bool:
    return is_f32(data) and len(op.kernel) == 2


def _pooling(op: Pooling, form: int, fill: float) -> Callable[[Array], Array]:
    filler = np.full(LANES, fill, np.float32)

    @lru_cache(maxsize=16)
    def job_for(images: int, lengths: tuple[int, ...], channels: int) -> tuple[Array, tuple[int, ...]]:
        windows, factor = geometry(op, lengths, channels, op.kernel, op.spread()), 0.0
        if isinstance(op, AvgPoolBase) and not op.exclude_pad and any(map(any, op.pads(lengths, op.kernel))):
            factor = 1 / math.prod(op.kernel)
        out = (images, windows["out_height"], windows["out_width"], channels)
        job = PoolJob.fill(
            **windows, rows=images * out[1], mode=form, fill_values=filler.ctypes.data, factor=factor
        )
        return job, out

    def kernel(x: Array) -> Array:
        rows = pad_channels(channels_last(x))
        job, shape = job_for(len(x), x.shape[2:], rows.shape[-1])
        y = np.empty(shape, np.float32)
        shared = threads() if y.size * math.prod(op.kernel) >= MIN_PARALLEL_WORK else 1
        parallel_for(POOL.address, job, y, contiguous(rows), UNUSED, UNUSED, shared)
        return channels_first(_drop_padding(y, x.shape[1]))

    return kernel


def _drop_padding(y: Array, channels: int) -> Array:
    return y if y.shape[-1] == channels else np.ascontiguousarray(y[..., :channels])


@backend.accelerates(AdaptiveAvgPool)
def adaptive(op: AdaptiveAvgPool, data: Value, output_size: Value) -> Kernel | None:
    """f32 over two spatial axes, into a constant number of windows."""
    counts = output_size.ints()
    if not is_f32(data) or counts is None or data.shape.rank != 4 or len(counts) != 2 or min(counts) < 1:
        return None
    return lambda x, _: _adaptive_means(x, counts) if x.size else op.evaluate(x, np.array(counts))


@backend.accelerates(ReduceMean)
def spatial_mean(op: ReduceMean, data: Value, axes: Value) -> Kernel | None:
    """f32 over the two axes after the channels."""
    found = axes.ints()
    if not is_f32(data) or data.shape.rank != 4 or found is None or {axis % 4 for axis in found} != {2, 3}:
        return None
    constant = np.array(found)

    def kernel(x: Array, _: Array) -> Array:
        if not x.size:
            return op.evaluate(x, constant)
        means = _adaptive_means(x, (1, 1))
        return means if op.keep_dims else means[:, :, 0, 0]

    return kernel


def _adaptive_means(x: Array, counts: tuple[int, ...]) -> Array:
    rows = pad_channels(channels_last(x))
    n, height, width, channels = rows.shape
    y = np.empty((n, *counts, channels), np.float32)
    vectors = next(n for n in (MAX_VECTORS, 2, 1) if channels >= n * LANES)
    groups = -(-channels // (LANES * vectors))
    job = AdaptivePoolJob.fill(
        height=height, width=width, channels=channels, out_height=counts[0], out_width=counts[1],
        units=n * math.prod(counts) * groups, vectors=vectors,
    )  # fmt: skip
    shared = threads() if x.size >= MIN_PARALLEL_WORK else 1
    parallel_for(ADAPTIVE_MEAN.address, job, y, contiguous(rows), UNUSED, UNUSED, shared)
    return channels_first(_drop_padding(y, x.shape[1]))
