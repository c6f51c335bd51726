"""Max and average pooling, adaptive average pooling, and spatial means in NHWC layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ...._util.cached import cached_property
from ....ir.tensor import Array, Value
from ....ops.kernels.statistics import lowest
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
from ... import UNREAD, Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen import ir
from ..codegen.bf16 import as_bf16, load_bf16, store_bf16
from ..codegen.descriptor import f32, i64
from ..codegen.language import Device, Instruction, device, types
from ..codegen.vectors import LANES, Emit
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_unit, load_args
from ._epilogue import BF16, F32
from ._products import asked_products
from ._reductions import scale_row
from ._windows import (
    F32_SIZE,
    WINDOWS,
    Memory,
    SlidingWindows,
    are_better_channels,
    general_window,
    geometry,
    load_f32_vector,
    sliding_window,
    window_range,
)
from .contiguous import contiguous

__all__ = ["AVERAGE", "LOWEST", "MAX", "POOL", "PoolJob", "pool_maps"]

# Vectors of channels that are summed at a time.
MAX_VECTORS = 4

LOWEST = float(lowest(np.dtype(np.float32)))
_LOWEST_BF16 = -(2 - 2.0**-7) * 2.0**127


def _max(emit: Emit, found: ir.Value, x: ir.Value, _: ir.Value) -> ir.Value:
    """Return the maximum, ignoring NaN."""
    return emit.builder.select(emit.builder.fcmp_ordered(">", x, found), x, found)


# Maximum and sum of several windows at a time; add 1 for one window at a time.
MAX, AVERAGE = 0, 2
# Added where the data are bf16, and where there are fewer channels than lanes.
_FROM_BF16, _NARROW = 4, 8
BF16_SIZE = 2


def _store_rounded(emit: Emit, value: ir.Value, at: ir.Value, *more: ir.Value, **lanes: ir.Value) -> None:
    store_bf16(emit, as_bf16(emit, emit.multiply(value, emit.splat(more[0]))), at, **lanes)


def _ways(memory: Memory) -> dict[int, Callable[..., None]]:
    return {
        form + place + _NARROW * narrow: general_window(combine, beside, memory, narrow)
        for form, combine in ((MAX, _max), (AVERAGE, lambda emit, found, x, _: emit.add(found, x)))
        for place, beside in enumerate((WINDOWS, 1))
        for narrow in (False, True)
    }


# The last arguments multiply results that are rounded, and count lanes.
_MORE = (types.float32, types.int64)
_slide = sliding_window(_ways(Memory()), _MORE)
_f32, _bf16 = (_ways(Memory(load, _store_rounded)) for load in (load_f32_vector, load_bf16))
_slide_bf16 = sliding_window(_f32 | {form + _FROM_BF16: way for form, way in _bf16.items()}, _MORE)


class PoolJob(SlidingWindows):
    """The job of `POOL`: ``factor`` multiplies sums; 0 divides them by the elements inside the data. Sizes are in bytes."""

    rows: i64
    mode: i64
    fill_values: i64
    start_values: i64
    factor: f32
    data_size: i64
    result_size: i64


def _windows_of(slide: Instruction) -> Device[..., None]:
    """Return a function that computes neighbouring windows for all channels."""

    def compute(job: PoolJob, form: int, x: int, rows: int, y: int, first: int) -> None:
        channels, width = job.channels, job.width
        wide, apart = job.kernel_width, job.dilation_across
        size, result = job.data_size, job.result_size
        filler, along = job.fill_values, job.stride_across
        start, factor = job.start_values, job.factor
        down = size * channels * width * job.dilation_down
        if size == BF16_SIZE:
            form += _FROM_BF16
        if channels < LANES:
            form += _NARROW
        for c in range(0, channels, LANES):
            at = max(min(c, channels - LANES), 0)
            slide(
                form, x + size * at, down, size * channels, 0, rows, 1, 0, 0, y + result * at, result * channels, start,
                first, width, filler, wide, apart, along, factor, min(channels, LANES),
            )  # fmt: skip

    return device(compute)


@device
def _divide_row(job: PoolJob, target: int, rows: int) -> None:
    """Divide sums of windows of that many rows by their number of elements, or multiply them by the factor."""
    channels, columns = job.channels, job.out_width
    factor = job.factor
    if factor > 0:
        scale_row(target, columns * channels, factor)
        return
    for column in range(columns):
        first = column * job.stride_across - job.pad_left
        left, right = window_range(
            first, job.width, job.dilation_across, job.kernel_width
        )  # fmt: skip
        inside = max(rows * (right - left), 1)
        scale_row(target + column * F32_SIZE * channels, channels, np.float32(1) / np.float32(inside))


def _pool_task(name: str, slide: Instruction) -> Task:
    """Return the task of pooling: rows of the results of all images."""
    compute = _windows_of(slide)

    def pool(call: int) -> None:
        address, y, x, _, _, _ = load_args(call)
        job = PoolJob.at(address)
        height, width, channels, lines, columns = (
            job.height,
            job.width,
            job.channels,
            job.out_height,
            job.out_width,
        )
        spread, form = job.dilation_down, job.mode
        size = job.result_size
        beside = WINDOWS if columns >= WINDOWS else 1
        form += beside == 1
        pixel, step = job.data_size * channels, size * channels
        rows = job.rows
        for index in each_unit(call, rows):
            image = index // lines
            top = (index - image * lines) * job.stride_down - job.pad_top
            low, high = window_range(top, height, spread, job.kernel_height)
            source = x + (image * height + top + low * spread) * width * pixel
            target = y + index * columns * step
            for place in range(0, columns, beside):
                column = min(place, columns - beside)
                first = column * job.stride_across - job.pad_left
                compute(job, form, source + first * pixel, high - low, target + column * step, first)
            if form >= AVERAGE and size == F32_SIZE:
                _divide_row(job, target, high - low)

    pool.__qualname__ = name
    return Task(pool)


POOL = _pool_task("_pool", _slide)
"""Compute rows of the results of all images."""
BF16_POOL = _pool_task("_bf16_pool", _slide_bf16)
"""The same of data that are f32 or bf16, to bf16; averages only where all windows are inside the data."""


@backend.accelerates(MaxPool1)
def max_pool(op: MaxPool1, data: Value) -> KernelTemplate | None:
    """f32 over two spatial axes. As in the reference, no result is NaN, nor below the lowest number."""
    return _Pooling(op, MAX, LOWEST, asked_products().is_faster) if _is_supported(op, data) else None


@backend.accelerates(MaxPool8, MaxPool14)
def max_pool_values(
    op: MaxPoolWithIndices, data: Value, unread: Collection[int] = ()
) -> KernelTemplate | None:
    """f32 over two spatial axes, where the indices are not read."""
    supported = _is_supported(op, data) and 1 in unread
    return _Pooling(op, MAX, LOWEST, asked_products().is_faster, UNREAD) if supported else None


@backend.accelerates(AvgPool1, AvgPool14, AvgPool16)
def average_pool(op: AvgPoolBase, data: Value) -> KernelTemplate | None:
    """f32 over two spatial axes."""
    if not _is_supported(op, data):
        return None
    inside = op.auto_pad in ("explicit", "valid") and op.rounding_type == "floor"
    inside = inside and not any(op.pads_begin) and not any(op.pads_end)
    return _Pooling(op, AVERAGE, 0, inside and asked_products().is_faster)


def _is_supported(op: Pooling, data: Value) -> bool:
    return is_f32(data) and len(op.kernel) == 2


@dataclass(frozen=True)
class _Pooling(KernelTemplate):
    """Pooling of maps.

    Args:
        op: the operation.
        form: what is computed.
        fill: stands for the padding.
        bf16: whether the result may be stored in bf16.
        other: what is returned beside the result, if anything.
        rounds: whether the result is stored in bf16; then the data may be, too.
    """

    op: Pooling
    form: int
    fill: float
    bf16: bool
    other: Array | None = None
    rounds: bool = False

    def reads_bf16(self, place: int) -> bool:
        """Return whether the data may be stored in bf16."""
        return self.rounds

    def storing_bf16(self) -> _Pooling | None:
        """Return a kernel that stores its result in bf16, or ``None``."""
        return replace(self, rounds=True) if self.bf16 else None

    @cached_property
    def _kernel(self) -> Kernel:
        pool, other = pool_maps(self.op, self.form, self.fill, self.rounds), self.other
        return Kernel(pool if other is None else lambda x: (pool(x), other), replay=replayed())

    def prepare(self) -> Kernel:
        """Return the kernel."""
        return self._kernel


def pool_maps(op: Pooling, form: int, fill: float, rounds: bool) -> Callable[[Array], Array]:
    """Return a function that pools maps by a form over two spatial axes, whose result is rounded to bf16 or not."""
    start = np.full(LANES, fill, F32)
    fillers = {F32.itemsize: start, BF16.itemsize: np.full(LANES, max(fill, _LOWEST_BF16), BF16)}
    task, stored = (BF16_POOL, BF16) if rounds else (POOL, F32)
    task.prepare()

    @lru_cache(maxsize=16)
    def job_for(
        images: int, lengths: tuple[int, ...], channels: int, size: int
    ) -> tuple[Array, tuple[int, ...]]:
        windows, factor = geometry(op, lengths, channels, op.kernel, op.spread()), float(rounds)
        if isinstance(op, AvgPoolBase):
            has_padding = any(map(any, op.pads(lengths, op.kernel)))
            factor = 1 / math.prod(op.kernel) if rounds or (has_padding and not op.exclude_pad) else 0.0
        out = (images, windows["out_height"], windows["out_width"], channels)
        job = PoolJob.fill(
            **windows, rows=images * out[1], mode=form, fill_values=fillers[size].ctypes.data,
            start_values=start.ctypes.data, factor=factor, data_size=size,
            result_size=stored.itemsize,
        )  # fmt: skip
        return job, out

    def pool(x: Array) -> Array:
        if are_better_channels(x):
            found = pool(x.reshape(1, len(x) * x.shape[1], *x.shape[2:]))
            return found.reshape(*x.shape[:2], *found.shape[2:])
        job, shape = job_for(len(x), x.shape[2:], x.shape[1], x.itemsize)
        shared = threads_for(computed=math.prod((*shape, *op.kernel)))
        y = empty(shape, stored)
        parallel_for(task.address, job, y, contiguous(channels_last(x)), UNUSED, UNUSED, shared)
        return channels_first(y)

    return pool
