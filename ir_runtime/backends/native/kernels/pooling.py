"""Max, average and adaptive average pooling, and spatial means, in NHWC layout.

Volumes are pooled in two passes of the 2-D kernel: across planes, then within them. For a spatial mean, each
thread sums the lines of maps that it has usually just computed and still has in its cache; then the partial
sums are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...._util.forks import cached_property
from ....ir.tensor import Array, Value
from ....ops.kernels.statistics import lowest
from ....ops.pooling import (
    AdaptiveAvgPool,
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
from ... import UNREAD, Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen import ir
from ..codegen.bf16 import as_bf16, load_bf16, store_bf16
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import Device, Instruction, device, instruction, types
from ..codegen.memory import barrier, fetch_add
from ..codegen.vectors import LANES, Emit
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for, workspace
from ..threading.task import UNUSED, Task, each_counted, each_unit, failure_word, shared_counters
from ._copy import contiguous
from ._epilogue import BF16, F32
from ._gemm_kernel import requested_products
from ._reductions import REDUCE, Reduction, reduce_columns, scale_row
from ._windows import (
    F32_SIZE,
    WINDOWS,
    Memory,
    SlidingWindows,
    are_better_channels,
    drop_padding,
    general_window,
    geometry,
    load_f32_vector,
    pad_channels,
    sliding_window,
    window_range,
)

__all__: list[str] = []

LOWEST = float(lowest(np.dtype(np.float32)))
_LOWEST_BF16 = -(2 - 2.0**-7) * 2.0**127


def _max(emit: Emit, largest: ir.Value, x: ir.Value, _: ir.Value) -> ir.Value:
    """Return the maximum; ``x`` is ignored if it is NaN."""
    return emit.builder.select(emit.builder.fcmp_ordered(">", x, largest), x, largest)


# Kernel variants: maximum or sum of several windows at a time; plus 1 for one window at a time.
MAX, AVERAGE = 0, 2
# Added to the variant for bf16 data, and for fewer channels than lanes.
_FROM_BF16, _NARROW = 4, 8
BF16_SIZE = 2


def _store_rounded(emit: Emit, value: ir.Value, at: ir.Value, *more: ir.Value, **lanes: ir.Value) -> None:
    store_bf16(emit, as_bf16(emit, emit.multiply(value, emit.splat(more[0]))), at, **lanes)


def _variants(memory: Memory) -> dict[int, Callable[..., None]]:
    return {
        form + place + _NARROW * narrow: general_window(combine, beside, memory, narrow)
        for form, combine in ((MAX, _max), (AVERAGE, lambda emit, sum, x, _: emit.add(sum, x)))
        for place, beside in enumerate((WINDOWS, 1))
        for narrow in (False, True)
    }


# The last arguments: the factor for rounded results, and the number of lanes.
_MORE = types.float32, types.int64
_slide = sliding_window(_variants(Memory()), _MORE)
_f32, _bf16 = (_variants(Memory(load, _store_rounded)) for load in (load_f32_vector, load_bf16))
_slide_bf16 = sliding_window(_f32 | {form + _FROM_BF16: variant for form, variant in _bf16.items()}, _MORE)


class PoolJob(SlidingWindows):
    """Parameters of `POOL`; ``mode`` is `MAX` or `AVERAGE`, and sizes are in bytes.

    ``factor`` multiplies the sum of a window; if it is 0, the sum is divided by the number of elements of the
    window that lie inside the data.
    """

    rows: i64
    mode: i64
    fill_values: i64
    start_values: i64
    factor: f32
    data_size: i64
    result_size: i64


def _window_function(slide: Instruction) -> Device[..., None]:
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
    """Turn a row of window sums, at the address ``target``, into means.

    ``rows`` is the height of the windows inside the data, used unless the job has a factor for all windows.
    """
    channels, columns = job.channels, job.out_width
    factor = job.factor
    if factor > 0:
        scale_row(target, columns * channels, factor)
        return
    for column in range(columns):
        first = column * job.stride_across - job.pad_left
        left, right = window_range(first, job.width, job.dilation_across, job.kernel_width)
        inside = max(rows * (right - left), 1)
        scale_row(target + column * F32_SIZE * channels, channels, np.float32(1) / np.float32(inside))


def _pool_task(name: str, slide: Instruction) -> Task:
    """Return a pooling task; a work unit is a row of the result of an image."""
    compute = _window_function(slide)

    def pool(call: int, job: PoolJob, y: int, x: int) -> None:
        height, width, channels, lines, columns = (
            job.height, job.width, job.channels, job.out_height, job.out_width,
        )  # fmt: skip
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

    return Task(pool, name)


POOL = _pool_task("_pool", _slide)
"""Pool f32 images."""
BF16_POOL = _pool_task("_bf16_pool", _slide_bf16)
"""Like `POOL`, from f32 or bf16 data to bf16; averages require all windows to lie inside the data."""


@backend.accelerates(MaxPool1)
def max_pool(op: MaxPool1, data: Value) -> KernelTemplate | None:
    """Return a MaxPool kernel for f32; as in the reference, no result is NaN or below the lowest finite number."""
    return _Pooling(op, MAX, LOWEST, requested_products().is_faster) if _is_supported(op, data) else None


@backend.accelerates(MaxPool8, MaxPool14)
def max_pool_values(
    op: MaxPoolWithIndices, data: Value, unread: Collection[int] = ()
) -> KernelTemplate | None:
    """Return a MaxPool kernel for f32 if nothing reads the indices."""
    supported = _is_supported(op, data) and 1 in unread
    return _Pooling(op, MAX, LOWEST, requested_products().is_faster, UNREAD) if supported else None


@backend.accelerates(AvgPool1, AvgPool14, AvgPool16)
def average_pool(op: AvgPoolBase, data: Value) -> KernelTemplate | None:
    """Return an AvgPool kernel for f32."""
    if not _is_supported(op, data):
        return None
    inside = op.auto_pad in ("explicit", "valid") and op.rounding_type == "floor"
    inside = inside and not any(op.pads_begin) and not any(op.pads_end)
    return _Pooling(op, AVERAGE, 0, inside and requested_products().is_faster)


def _is_supported(op: Pooling, data: Value) -> bool:
    return is_f32(data) and 1 <= len(op.kernel) <= 3


@dataclass(frozen=True)
class _Pooling(KernelTemplate):
    """The kernel of a pooling operation over one, two or three spatial axes.

    Args:
        op: the operation.
        form: `MAX` or `AVERAGE`.
        fill: the padding value.
        bf16: whether the result may be stored in bf16 if there are two spatial axes.
        other: the second output, which nothing reads, if any.
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
        """Return a kernel that stores its result in bf16, or ``None`` if it cannot."""
        return replace(self, rounds=True) if self.bf16 and len(self.op.kernel) == 2 else None

    @cached_property
    def _kernel(self) -> Kernel:
        op, form, fill, other = self.op, self.form, self.fill, self.other
        pool = pool_maps(op, form, fill, self.rounds) if len(op.kernel) == 2 else _pool(op, form, fill)
        return Kernel(pool if other is None else lambda x: (pool(x), other), replay=replayed())

    def prepare(self) -> Kernel:
        """Return the kernel."""
        return self._kernel


def pool_maps(op: Pooling, form: int, fill: float, rounds: bool) -> Callable[[Array], Array]:
    """Return a function that pools over two spatial axes; the result is bf16 if ``rounds``, else f32."""
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
        out = images, windows["out_height"], windows["out_width"], channels
        job = PoolJob.fill(
            **windows, rows=images * out[1], mode=form, fill_values=fillers[size], start_values=start,
            factor=factor, data_size=size, result_size=stored.itemsize,
        )  # fmt: skip
        return job, out

    def pool(x: Array) -> Array:
        lead = x.shape[:2]
        if is_merged := are_better_channels(x):
            x = x.reshape(1, math.prod(lead), *x.shape[2:])
        job, shape = job_for(len(x), x.shape[2:], x.shape[1], x.itemsize)
        shared = threads_for(computed=math.prod((*shape, *op.kernel)))
        y = empty(shape, stored)
        parallel_for(task.address, job, y, contiguous(channels_last(x)), UNUSED, UNUSED, shared)
        result = channels_first(y)
        return result.reshape(*lead, *result.shape[2:]) if is_merged else result

    return pool


# Maximum number of channel vectors that are summed at a time.
MAX_VECTORS = 4


def vectors_abreast(channels: int) -> int:
    """Return the number of channel vectors to sum at a time: the largest of 4, 2 and 1 that ``channels`` fill."""
    return next(n for n in (MAX_VECTORS, 2, 1) if channels >= n * LANES)


def _rectangle_mean(
    abreast: int, size: int = 4, load_vector: Callable[[Emit, ir.Value], ir.Value] = Emit.load
) -> Instruction:
    """Return an instruction that sums a rectangle of pixels row by row and scales the sums.

    Args:
        abreast: the number of channel vectors to sum at a time.
        size: the size of an element in bytes.
        load_vector: loads a vector as f32.
    """

    def write(
        emit: Emit, x: ir.Value, down: ir.Value, right: ir.Value, rows: ir.Value, columns: ir.Value, y:
        ir.Value, factor: ir.Value,
    ) -> None:  # fmt: skip
        zeros = [emit.constant(0)] * abreast
        with emit.loop(rows, [x, *zeros]) as (_, (begin, *totals), below):
            with emit.loop(columns, [begin, *zeros]) as (_, (place, *sums), following):
                loaded = [load_vector(emit, emit.at(place, size * LANES * i)) for i in range(abreast)]
                sums = [emit.add(a, b) for a, b in zip(sums, loaded, strict=True)]
                following += [emit.at(place, right), *sums]
            totals = [emit.add(a, b) for a, b in zip(totals, following[1:], strict=True)]
            below += [emit.at(begin, down), *totals]
        same = emit.splat(factor)
        for i, total in enumerate(below[1:]):
            emit.store(emit.multiply(total, same), emit.at(y, 4 * LANES * i))

    return instruction(*[types.int64] * 6, types.float32)(write)


_mean_wide, _mean_double, _mean_single = (
    _rectangle_mean(MAX_VECTORS),
    _rectangle_mean(2),
    _rectangle_mean(1),
)
_bf16_mean = _rectangle_mean(1, 2, load_bf16)


@device
def channel_means(  # noqa: PLR0913 (values in registers)
    x: int, size: int, down: int, right: int, rows: int, columns: int, y: int, vectors: int, factor: np.float32
) -> None:  # fmt: skip
    """Store the sums over a rectangle of pixels, times a factor, for several channel vectors.

    Args:
        x: the address of the first pixel.
        size: the size of an element in bytes: 4 for f32, 2 for bf16.
        down: the bytes between lines.
        right: the bytes between pixels of a line.
        rows: the number of lines.
        columns: the number of pixels per line.
        y: the address of the result, f32.
        vectors: the number of channel vectors, as from `vectors_abreast`.
        factor: multiplies the sums.
    """
    if size < F32_SIZE:
        for i in range(vectors):
            at = i * LANES
            _bf16_mean(x + size * at, down, right, rows, columns, y + F32_SIZE * at, factor)
    elif vectors == MAX_VECTORS:
        _mean_wide(x, down, right, rows, columns, y, factor)
    elif vectors == 2:
        _mean_double(x, down, right, rows, columns, y, factor)
    else:
        _mean_single(x, down, right, rows, columns, y, factor)


# Elements of a part of a map.
PART_SIZE = 1 << 13


class SpatialMeanJob(Descriptor):
    """Parameters of `spatial_mean_task`: maps, parts per map, lines per part, and channel vectors summed at a time."""

    images: i64
    height: i64
    width: i64
    channels: i64
    parts: i64
    part_lines: i64
    vectors: i64
    data_size: i64


@Task
def spatial_mean_task(call: int, job: SpatialMeanJob, y: int, x: int, sums: int) -> None:
    """Sum the parts of each map, then add the partial sums.

    A work unit of the first step is a part, one of the second several channels of a map.
    """
    counter = shared_counters(call)
    images, height, width, channels = job.images, job.height, job.width, job.channels
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


@backend.accelerates(ReduceMean)
def spatial_mean(op: ReduceMean, data: Value, axes: Value) -> KernelTemplate | None:
    """Return a ReduceMean kernel for f32 over height and width, the two axes after the channels."""
    reduced = axes.ints()
    if not is_f32(data) or data.shape.rank != 4 or reduced is None or {a % 4 for a in reduced} != {2, 3}:
        return None
    REDUCE.prepare()
    return _SpatialMean(op, np.array(reduced), requested_products().is_faster)


@dataclass(frozen=True)
class _SpatialMean(KernelTemplate):
    """The kernel of f32 means over the two axes after the channels; with ``bf16``, the data may be bf16."""

    op: ReduceMean
    axes: Array
    bf16: bool

    def reads_bf16(self, place: int) -> bool:
        """Return whether an input may be stored in bf16."""
        return self.bf16 and place == 0

    def prepare(self) -> Kernel:
        """Return the kernel."""
        return Kernel(self._means, replay=replayed())

    def _means(self, *arrays: Array) -> Array:
        """Compute the means of the first input."""
        x = arrays[0]
        if not x.size:
            return self.op.evaluate(x, self.axes)
        means = spatial_means(x)
        return means if self.op.keep_dims else means[:, :, 0, 0]


def spatial_means(x: Array) -> Array:
    """Return the means of a nonempty f32 or bf16 ``x[N, C, height, width]`` as f32 ``[N, C, 1, 1]``."""
    if x.itemsize == F32_SIZE and x.flags.c_contiguous and x.shape[1] > 1:
        return _channels_first_means(x)
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
    parallel_for(spatial_mean_task.address, job, y, contiguous(rows), sums, UNUSED, shared)
    return channels_first(drop_padding(y, x.shape[1]))


def _channels_first_means(x: Array) -> Array:
    """Return the spatial means of channels-first maps."""
    images, channels, height, width = x.shape
    y = empty((images, channels, 1, 1), np.float32)
    reduce_columns(x, y, (images * channels, height * width, 1), Reduction.MEAN, height * width)
    return y


class AdaptivePoolJob(Descriptor):
    """Parameters of `_adaptive_mean`; a work unit is ``vectors`` channel vectors of a result pixel."""

    height: i64
    width: i64
    channels: i64
    out_height: i64
    out_width: i64
    units: i64
    vectors: i64
    data_size: i64


@Task
def _adaptive_mean(call: int, job: AdaptivePoolJob, y: int, x: int) -> None:
    """Compute means over nearly equal windows; a work unit is several channels of a result pixel."""
    height, width, channels, lines, columns = (
        job.height, job.width, job.channels, job.out_height, job.out_width,
    )  # fmt: skip
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


@backend.accelerates(AdaptiveAvgPool)
def adaptive(op: AdaptiveAvgPool, data: Value, output_size: Value) -> Kernel | None:
    """Return an AdaptiveAvgPool kernel for f32 over two spatial axes, with a constant output size."""
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
    parallel_for(_adaptive_mean.address, job, y, contiguous(rows), UNUSED, UNUSED, shared)
    return channels_first(drop_padding(y, x.shape[1]))


class _Axis(NamedTuple):
    """A spatial axis: its length, its number of windows, and their kernel, stride, dilation and leading padding."""

    length: int
    windows: int
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0


class _Pass(NamedTuple):
    """One pass of the 2-D kernel: its job, and the shape of its result."""

    job: Array
    shape: tuple[int, ...]


def _whole_vectors(plane: int, channels: int) -> tuple[_Axis, int]:
    """Return the axis of a plane, with windows of one pixel, and its channels, regrouped to whole vectors if possible.

    Pooling across planes treats all elements of a plane alike, whatever their pixel and channel.
    """
    if channels < LANES and plane * channels % LANES == 0:
        plane, channels = plane * channels // LANES, LANES
    return _Axis(plane, plane), channels


def _pool(op: Pooling, form: int, fill: float) -> Callable[[Array], Array]:
    filler = np.full(LANES, fill, np.float32)
    POOL.prepare()
    pool_planes = _plane_pool(op, form, fill)

    def one_pass(images: int, down: _Axis, across: _Axis, channels: int, counts_padding: bool) -> _Pass:
        pairs = [n for pair in zip(down, across, strict=True) for n in pair]
        windows = dict(zip(SlidingWindows.dtype.names or (), [*pairs[:2], channels, *pairs[2:]], strict=True))
        job = PoolJob.fill(
            **windows, rows=images * down.windows, mode=form, fill_values=filler,
            start_values=filler, data_size=F32_SIZE, result_size=F32_SIZE,
            factor=1 / (down.kernel * across.kernel) if counts_padding else 0.0,
        )  # fmt: skip
        return _Pass(job, (images, down.windows, across.windows, channels))

    @lru_cache(maxsize=16)
    def passes(images: int, lengths: tuple[int, ...], channels: int) -> tuple[list[_Pass], tuple[int, ...]]:
        """Return the passes, and the number of windows along each axis."""
        pads, counts = op.pads(lengths, op.kernel), op.windows(lengths, op.kernel)
        before = [begin for begin, _ in pads]
        settings = zip(lengths, counts, op.kernel, op.strides, op.spread(), before, strict=True)
        *ahead, down, across = [_Axis(1, 1), *(_Axis(*map(int, setting)) for setting in settings)]
        counted = isinstance(op, AvgPoolBase) and not op.exclude_pad and any(map(any, pads))
        steps = []
        if len(lengths) == 3:
            steps.append(
                one_pass(images, ahead[-1], *_whole_vectors(down.length * across.length, channels), counted)
            )
            images *= ahead[-1].windows
        return [*steps, one_pass(images, down, across, channels, counted)], counts

    def pool(x: Array) -> Array:
        if pool_planes is not None and (maps := _view_as_maps(op, x)) is not None:
            return _view_as_volumes(pool_planes(maps), x.shape)
        current, (steps, counts) = contiguous(channels_last(x)), passes(len(x), x.shape[2:], x.shape[1])
        for job, shape in steps:
            y = empty(shape, np.float32)
            shared = threads_for(computed=y.size * math.prod(op.kernel))
            parallel_for(POOL.address, job, y, current, UNUSED, UNUSED, shared)
            current = y
        return channels_first(current.reshape(len(x), *counts, x.shape[1]))

    return pool


def _plane_pool(op: Pooling, form: int, fill: float) -> Callable[[Array], Array] | None:
    """Return a function that pools the planes of volumes as maps.

    Returns ``None`` if windows span several planes, if padding adds planes, or if there are not three spatial axes.
    """
    if len(op.kernel) != 3 or op.kernel[0] != 1 or op.pads_begin[0] or op.pads_end[0]:
        return None
    fields = ["kernel", "strides", "pads_begin", "pads_end"]
    if getattr(op, "dilations", ()):
        fields.append("dilations")
    return pool_maps(op.replace(**{name: getattr(op, name)[1:] for name in fields}), form, fill, False)


def _view_as_maps(op: Pooling, x: Array) -> Array | None:
    """View the planes of volumes as channels or as images of maps.

    Returns ``None`` if both need a copy, if ``x`` is empty, or if there is not one window per plane.
    """
    if not x.size:
        return None
    count = op.windows(x.shape[2:], op.kernel)[0]
    x = x[:, :, :: op.strides[0]]
    images, channels, planes = x.shape[:3]
    if planes != count:
        return None
    if channels == 1 or x.strides[1] == planes * x.strides[2]:
        return x.reshape(images, channels * planes, *x.shape[3:])
    if images == 1 or x.strides[0] == planes * x.strides[2]:
        return x.swapaxes(1, 2).reshape(images * planes, channels, *x.shape[3:])
    return None


def _view_as_volumes(y: Array, shape: tuple[int, ...]) -> Array:
    """View pooled maps as the volumes from which `_view_as_maps` made them; ``shape`` is that of the data."""
    images, channels = shape[:2]
    if len(y) == images and y.shape[1] % channels == 0:
        return y.reshape(images, channels, -1, *y.shape[2:])
    return y.reshape(images, -1, *y.shape[1:]).swapaxes(1, 2)
