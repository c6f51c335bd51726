"""Max and average pooling in NHWC layout, over two axes in one pass; over volumes, planes are pooled first."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from ....ir.tensor import Array, Value
from ....kernels.statistics import lowest
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
from ... import UNREAD, Kernel
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen.descriptor import f32, i64
from ..codegen.language import device
from ..codegen.memory import fetch_add, load_f32, load_i64
from ..codegen.vectors import LANES, Emit
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args
from ._reductions import scale_row
from ._windows import (
    F32_SIZE,
    WINDOWS,
    SlidingWindows,
    drop_padding,
    general_window,
    pad_channels,
    sliding_window,
    window_range,
)
from .contiguous import contiguous

__all__: list[str] = []

# Elements read from which on several threads are faster.
MIN_PARALLEL_WORK = 1 << 17
# Vectors of channels that are summed at a time.
MAX_VECTORS = 4

_LOWEST = float(lowest(np.dtype(np.float32)))


def _max(emit: Emit, found: ir.Value, x: ir.Value, _: ir.Value) -> ir.Value:
    """Return the maximum, ignoring NaN."""
    return emit.builder.select(emit.builder.fcmp_ordered(">", x, found), x, found)


def _add(emit: Emit, found: ir.Value, x: ir.Value, _: ir.Value) -> ir.Value:
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


@device
def _vectors(  # noqa: PLR0913 (values in registers)
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


@backend.accelerates(MaxPool1)
def max_pool(op: MaxPool1, data: Value) -> Kernel | None:
    """f32 over up to three spatial axes. As in the reference, no result is NaN, nor below the lowest number."""
    return _pooling(op, _MAX, _LOWEST) if _is_supported(op, data) else None


@backend.accelerates(MaxPool8, MaxPool14)
def max_pool_values(op: MaxPoolWithIndices, data: Value, unread: Collection[int] = ()) -> Kernel | None:
    """f32 over up to three spatial axes, where the indices are not read."""
    if not _is_supported(op, data) or 1 not in unread:
        return None
    kernel = _pooling(op, _MAX, _LOWEST)
    return lambda x: (kernel(x), UNREAD)


@backend.accelerates(AvgPool1, AvgPool14, AvgPool16)
def average_pool(op: AvgPoolBase, data: Value) -> Kernel | None:
    """f32 over up to three spatial axes."""
    return _pooling(op, _AVERAGE, 0) if _is_supported(op, data) else None


def _is_supported(op: Pooling, data: Value) -> bool:
    return is_f32(data) and len(op.kernel) <= 3


class _Axis(NamedTuple):
    """A spatial axis: its length, the windows along it, and of these kernel, stride, dilation and padding before."""

    length: int
    windows: int
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0


class _Pass(NamedTuple):
    """Windows over two axes of some images: the job, and the shape of the result."""

    job: Array
    shape: tuple[int, ...]


def _pooling(op: Pooling, form: int, fill: float) -> Callable[[Array], Array]:
    filler = np.full(LANES, fill, np.float32)

    def one_pass(images: int, down: _Axis, across: _Axis, channels: int, counts_padding: bool) -> _Pass:
        pairs = [n for pair in zip(down, across, strict=True) for n in pair]
        windows = dict(zip(SlidingWindows.dtype.names or (), [*pairs[:2], channels, *pairs[2:]], strict=True))
        job = PoolJob.fill(
            **windows, rows=images * down.windows, mode=form, fill_values=filler.ctypes.data,
            factor=1 / (down.kernel * across.kernel) if counts_padding else 0.0,
        )  # fmt: skip
        return _Pass(job, (images, down.windows, across.windows, channels))

    @lru_cache(maxsize=16)
    def passes(images: int, lengths: tuple[int, ...], channels: int) -> tuple[list[_Pass], tuple[int, ...]]:
        """Return the passes over volumes, images or rows, and the number of windows along each axis."""
        pads, counts = op.pads(lengths, op.kernel), op.windows(lengths, op.kernel)
        before = [begin for begin, _ in pads]
        numbers = zip(lengths, counts, op.kernel, op.strides, op.spread(), before, strict=True)
        *ahead, down, across = [_Axis(1, 1), *(_Axis(*map(int, each)) for each in numbers)]
        counted = isinstance(op, AvgPoolBase) and not op.exclude_pad and any(map(any, pads))
        found = []
        if len(lengths) == 3:
            plane = down.length * across.length
            found.append(one_pass(images, ahead[-1], _Axis(plane, plane), channels, counted))
            images *= ahead[-1].windows
        return [*found, one_pass(images, down, across, channels, counted)], counts

    def kernel(x: Array) -> Array:
        rows = pad_channels(channels_last(x))
        found, (steps, counts) = contiguous(rows), passes(len(x), x.shape[2:], rows.shape[-1])
        for job, shape in steps:
            y = np.empty(shape, np.float32)
            shared = threads() if y.size * math.prod(op.kernel) >= MIN_PARALLEL_WORK else 1
            parallel_for(POOL.address, job, y, found, UNUSED, UNUSED, shared)
            found = y
        return channels_first(drop_padding(found.reshape(len(x), *counts, rows.shape[-1]), x.shape[1]))

    return kernel
