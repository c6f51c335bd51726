"""Depthwise convolution, and convolution in groups of few channels, by sliding windows in NHWC layout.

A task computes result rows in blocks of columns and channels that stay in the L1 cache. Windows that are one dilation apart
share loaded columns. In groups of several channels, vector lanes are result channels; they are multiplied by one broadcast
element of the data, or, if a vector holds several groups, by a permuted vector of the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.convolution import GroupConvolution
from ... import Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import as_rows, channels_first, channels_last, is_f32
from ...core.kernel import filter_lengths
from .._backend import backend
from ..codegen import ir
from ..codegen.bf16 import as_bf16, load_bf16, store_bf16
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Device, Instruction, device, types
from ..codegen.memory import scratch_memory
from ..codegen.vectors import F32, INTS, LANES, VECTOR, Emit
from ..codegen.vectors import Value as Register
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, pays_to_share, threads, threads_for
from ..threading.task import UNUSED, Task, each_unit
from ._copy import contiguous
from ._epilogue import (
    Bf16Tensors,
    Epilogue,
    EpilogueField,
    FusedKernel,
    PackedEpilogue,
    apply_epilogue,
    apply_post_ops,
)
from ._gemm_kernel import F32_PRODUCTS, requested_products
from ._gemm_tile import round_row
from ._windows import (
    F32_SIZE,
    FEW_WINDOWS,
    WINDOWS,
    Emitter,
    Lines,
    Memory,
    SlidingWindows,
    add_lines,
    address_or_fill,
    fixed_width_window,
    general_window,
    geometry,
    pad_channels,
    sliding_window,
    store_windows,
    window_range,
)

__all__ = ["GROUP_CHANNELS", "DEPTHWISE"]


class DepthwiseJob(SlidingWindows):
    """Parameters of a `depthwise_task`.

    ``out_height`` counts the rows of all images. Windows have up to ``kernel_depth`` planes, which are ``plane_rows`` data
    rows apart. Groups have ``group_channels`` channels; the data and weights of ``channel_block`` channels fit the L1
    cache. ``way`` is the kernel variant, 0 for the general one; ``more`` is added to it for groups. Windows computed
    together are ``spread`` result columns apart. ``data_size`` and ``result_size`` are the bytes of an element.
    """

    group_channels: i64
    channel_block: i64
    spread: i64

    kernel_depth: i64
    plane_rows: i64
    units: i64
    rows_per_unit: i64
    way: i64
    more: i64
    weights: i64
    bias: i64
    fill_values: i64
    epilogue: EpilogueField
    row_table: i64
    data_size: i64
    result_size: i64


class RowWindow(Descriptor):
    """The part of a result row's windows inside the data: its first data row and kernel row, its rows and its planes."""

    data_row: i64
    kernel_row: i64
    rows: i64
    planes: i64


TAPS = 3
"""The number of kernel elements added per iteration."""

AddTaps = Callable[[int, Register, Register, Register, list[Register]], list[Register]]
"""Returns the sums after consecutive elements of a kernel row; takes the number of elements, the address and the column of the
data, the address of the weights, and the sums."""


def spread_window(padded: bool, memory: Memory) -> Emitter:
    """Return an emitter of `WINDOWS` windows of stride 1 that are one dilation apart, for any kernel width.

    Unless ``padded``, all windows must lie inside the data.
    """

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, x: Register, down: Register, right: Register, w: Register, rows: Register, planes: Register, behind: Register,
        further: Register, y: Register, step: Register, start: Register, first: Register, width: Register, filler: Register, kernel: Register,
        dilation: Register, _stride: Register, *more: Register,
    ) -> None:  # fmt: skip
        across = emit.builder.mul(right, dilation)
        address_of = address_or_fill(emit, first, width, filler) if padded else lambda address, _: address
        low, count = _inside(emit, first, width, kernel, dilation) if padded else (emit.i64(0), kernel)

        def add_taps(
            n: int, line: Register, column: Register, weights: Register, sums: list[Register]
        ) -> list[Register]:
            taps = [emit.load(emit.at(weights, 4 * LANES * b)) for b in range(n)]
            for place in range(WINDOWS + n - 1):
                along = emit.builder.add(column, emit.builder.mul(dilation, emit.i64(place)))
                address = address_of(emit.at(line, emit.builder.mul(across, emit.i64(place))), along)
                data = memory.load(emit, address)
                for b in range(n):
                    if 0 <= place - b < WINDOWS:
                        sums[place - b] = emit.fma(data, taps[b], sums[place - b])
            return sums

        def add_line(line: Register, weights: Register, sums: list[Register]) -> list[Register]:
            begin = [emit.at(line, emit.builder.mul(low, across)), emit.builder.mul(low, dilation)]
            begin.append(emit.at(weights, emit.builder.mul(low, emit.i64(4 * LANES))))
            totals = _add_row(emit, count, across, dilation, [*begin, *sums], add_taps)
            return [emit.at(weights, emit.builder.mul(kernel, emit.i64(4 * LANES))), *totals]

        lines = Lines(x, down, rows, w, planes, behind, further)
        sums = add_lines(emit, lines, [emit.load(start)] * WINDOWS, add_line)
        store_windows(emit, sums, y, step, memory, more)

    return write


def _inside(
    emit: Emit, first: Register, width: Register, kernel: Register, dilation: Register
) -> tuple[Register, Register]:
    """Return the first element of a kernel row that lies inside the data in any of the windows, and their number.

    With a dilation, return all elements: the exact range would take divisions.
    """
    builder, none = emit.builder, emit.i64(0)

    def at_least(value: Register, least: Register) -> Register:
        return builder.select(builder.icmp_signed(">", value, least), value, least)

    is_dense = builder.icmp_signed("==", dilation, emit.i64(1))
    low = at_least(builder.sub(emit.i64(1 - WINDOWS), first), none)
    after = at_least(builder.sub(width, first), none)
    high = builder.select(builder.icmp_signed("<", after, kernel), after, kernel)
    low = builder.select(is_dense, builder.select(builder.icmp_signed("<", low, high), low, high), none)
    return low, builder.sub(builder.select(is_dense, high, kernel), low)


def _add_row(
    emit: Emit, count: Register, across: Register, dilation: Register, begin: Sequence[Register], add_taps:
    AddTaps,
) -> list[Register]:  # fmt: skip
    """Emit the accumulation of ``count`` elements of a kernel row by ``add_taps``, up to `TAPS` at a time, and return the sums.

    ``begin`` holds the initial values: the address and the column of the first data element, the address of its weights, and
    the sums. The data of consecutive kernel elements is ``across`` bytes and ``dilation`` columns apart.
    """
    builder, now = emit.builder, list(begin)
    many = builder.sdiv(count, emit.i64(TAPS))
    rest = builder.sub(count, builder.mul(many, emit.i64(TAPS)))
    for n, times in ((TAPS, many), (1, rest)):
        with emit.loop(times, now) as (_, (line, column, weights, *sums), following):
            after = add_taps(n, line, column, weights, list(sums))
            following += [
                emit.at(line, builder.mul(across, emit.i64(n))),
                builder.add(column, builder.mul(dilation, emit.i64(n))),
                emit.at(weights, 4 * LANES * n),
                *after,
            ]
        now = list(following)
    return now[3:]


GROUP_CHANNELS = tuple(2**power for power in range(1, LANES.bit_length()))
"""The supported channels per group: the powers of two from 2 to `LANES`."""

Factors = Callable[[Register], Register]
"""Returns the factor of each lane, given the address of a pixel."""
AddChannel = Callable[[Register, Factors, list[Register]], list[Register]]
"""Returns the sums after an input channel; takes the byte offset of its weights, its factors, and the sums."""


def _permute_groups(emit: Emit, channels: int, channel: int) -> Factors:
    """Return the factors of an input channel if a vector holds several groups: each group's channel ``channel``."""
    order = ir.Constant(INTS, [lane // channels * channels + channel for lane in range(LANES)])
    none = ir.Constant(VECTOR, ir.UNDEFINED)
    return lambda address: emit.builder.shuffle_vector(emit.load(address), none, order)


def _add_channels(
    emit: Emit, channels: int, sums: Sequence[Register], add_channel: AddChannel
) -> list[Register]:
    """Emit ``add_channel`` for all input channels of a group, and return the sums."""
    if channels < LANES:
        for channel in range(channels):
            weights = emit.i64(4 * LANES * channel)
            sums = add_channel(weights, _permute_groups(emit, channels, channel), list(sums))
        return list(sums)

    def broadcast(address: Register) -> Register:
        return emit.splat(emit.load(emit.at(address, offset), F32))

    with emit.loop(emit.i64(channels), sums) as (index, before, after):
        offset = emit.builder.mul(index, emit.i64(4))
        after += add_channel(emit.builder.mul(offset, emit.i64(LANES)), broadcast, list(before))
    return after


def fixed_width_groups(channels: int, kernel: int, stride: int, padded: bool, memory: Memory) -> Emitter:
    """Return an emitter of `WINDOWS` grouped windows with a constant kernel width, constant stride and no dilation.

    Windows share loaded factors.

    Args:
        channels: the channels per group.
        kernel: the width of the kernel.
        stride: the stride of the windows.
        padded: whether windows may reach into padding.
        memory: the store function.
    """
    beside, columns, size = WINDOWS, (WINDOWS - 1) * stride + kernel, 4 * LANES * channels

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, x: Register, down: Register, right: Register, w: Register, rows: Register, planes: Register, behind: Register,
        further: Register, y: Register, step: Register, start: Register, first: Register, width: Register, filler: Register, _kernel: Register,
        _dilation: Register, _stride: Register, *more: Register,
    ) -> None:  # fmt: skip
        address_of = address_or_fill(emit, first, width, filler) if padded else lambda address, _: address

        def add_line(line: Register, weights: Register, sums: list[Register]) -> list[Register]:
            steps = [emit.builder.mul(right, emit.i64(column)) for column in range(columns)]
            places = [address_of(emit.at(line, step), emit.i64(n)) for n, step in enumerate(steps)]
            taps = [emit.at(weights, size * b) for b in range(kernel)]

            def add_channel(offset: Register, factors: Factors, sums: list[Register]) -> list[Register]:
                w = [emit.load(emit.at(tap, offset)) for tap in taps]
                for column, place in enumerate(places):
                    data = factors(place)
                    for b in range(kernel):
                        window, rest = divmod(column - b, stride)
                        if not rest and 0 <= window < beside:
                            sums[window] = emit.fma(data, w[b], sums[window])
                return sums

            return [emit.at(weights, size * kernel), *_add_channels(emit, channels, sums, add_channel)]

        lines = Lines(x, down, rows, w, planes, behind, further)
        sums = add_lines(emit, lines, [emit.load(start)] * beside, add_line)
        store_windows(emit, sums, y, step, memory, more)

    return write


def general_groups(channels: int, beside: int, memory: Memory) -> Emitter:
    """Return an emitter of ``beside`` grouped windows of any size, stride and dilation, with ``channels`` per group."""

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, x: Register, down: Register, right: Register, w: Register, rows: Register, planes: Register, behind: Register,
        further: Register, y: Register, step: Register, start: Register, first: Register, width: Register, filler: Register, kernel: Register,
        dilation: Register, stride: Register, *more: Register,
    ) -> None:  # fmt: skip
        builder, address_of = emit.builder, address_or_fill(emit, first, width, filler)

        def add_line(line: Register, weights: Register, before: list[Register]) -> list[Register]:
            with emit.loop(kernel, [weights, *before]) as (b, (tap, *sums), following):
                places = []
                for place in range(beside):
                    along = builder.add(builder.mul(b, dilation), builder.mul(stride, emit.i64(place)))
                    places.append(address_of(emit.at(line, builder.mul(along, right)), along))

                def add_channel(offset: Register, factors: Factors, sums: list[Register]) -> list[Register]:
                    weight = emit.load(emit.at(tap, offset))
                    return [
                        emit.fma(factors(place), weight, sum) for place, sum in zip(places, sums, strict=True)
                    ]

                after = _add_channels(emit, channels, sums, add_channel)
                following += [emit.at(tap, 4 * LANES * channels), *after]
            return following

        lines = Lines(x, down, rows, w, planes, behind, further)
        sums = add_lines(emit, lines, [emit.load(start)] * beside, add_line)
        store_windows(emit, sums, y, step, memory, more)

    return write


FIXED_WIDTHS = {(3, 1): 1, (3, 2): 2, (5, 1): 3, (5, 2): 4, (7, 1): 5}
"""The kernel variants for a constant kernel width, by width and stride; add `_PADDED` if windows reach into padding."""
_PADDED = 10
# The kernel variants for any other kernel: `WINDOWS`, `FEW_WINDOWS` or one window at a time.
_GENERAL, _GENERAL_FEW, _GENERAL_ONE = 7, 8, 9
SPREAD = 6
"""The kernel variant for windows of stride 1 that are one dilation apart."""
BF16_SIZE = 2
GROUPED_WIDTHS = (3, 1), (3, 2)
"""The widths and strides with a kernel variant for groups."""
GROUP_VARIANTS = {channels: 20 * index for index, channels in enumerate(GROUP_CHANNELS)}
"""The offset of the kernel variants for each supported number of channels per group."""


def _multiply_add(emit: Emit, sum: ir.Value, x: ir.Value, w: ir.Value) -> ir.Value:
    return emit.fma(x, w, sum)


def _store_clamped(
    emit: Emit, value: Register, address: Register, low: Register, high: Register, _: Register
) -> None:
    emit.store(emit.minimum(emit.maximum(value, emit.splat(low)), emit.splat(high)), address)


def _store_rounded(
    emit: Emit, value: Register, address: Register, low: Register, high: Register, size: Register
) -> None:
    """Clamp a vector of f32, and store it as f32, or as bf16 if ``size`` is 2."""
    clamped = emit.minimum(emit.maximum(value, emit.splat(low)), emit.splat(high))
    with emit.builder.if_else(emit.builder.icmp_signed("==", size, emit.i64(2))) as (rounded, exact):
        with rounded:
            store_bf16(emit, as_bf16(emit, clamped), address)
        with exact:
            emit.store(clamped, address)


def _variants(memory: Memory) -> dict[int, Callable[..., None]]:
    """Return the emitter of each kernel variant of a depthwise convolution."""
    fixed = {
        form + padding: fixed_width_window(*shape, bool(padding), memory)
        for padding in (0, _PADDED)
        for shape, form in FIXED_WIDTHS.items()
    }
    fixed |= {SPREAD + padding: spread_window(bool(padding), memory) for padding in (0, _PADDED)}
    counts = {_GENERAL: WINDOWS, _GENERAL_FEW: FEW_WINDOWS, _GENERAL_ONE: 1}
    return fixed | {form: general_window(_multiply_add, count, memory) for form, count in counts.items()}


def _grouped_variants(channels: int) -> dict[int, Callable[..., None]]:
    """Return the emitter of each kernel variant for groups of ``channels`` channels."""
    memory = Memory(store=_store_clamped)
    fixed = {
        FIXED_WIDTHS[shape] + padding: fixed_width_groups(channels, *shape, bool(padding), memory)
        for padding in (0, _PADDED)
        for shape in GROUPED_WIDTHS
    }
    counts = {_GENERAL: WINDOWS, _GENERAL_FEW: FEW_WINDOWS, _GENERAL_ONE: 1}
    return fixed | {form: general_groups(channels, count, memory) for form, count in counts.items()}


_MORE = types.float32, types.float32, types.int64
_slide = sliding_window(_variants(Memory(store=_store_clamped)), _MORE)
_slide_groups = sliding_window(
    {
        form + offset: variant
        for channels, offset in GROUP_VARIANTS.items()
        for form, variant in _grouped_variants(channels).items()
    },
    _MORE,
)
_slide_bf16 = sliding_window(_variants(Memory(load_bf16, _store_rounded)), _MORE)


def _make_compute(slide: Instruction) -> Device[..., None]:
    """Return a function that applies ``slide`` to neighbouring windows, for a range of channels and of result rows."""

    def compute(  # noqa: PLR0913 (values in registers)
        form: int, job: DepthwiseJob, x: int, y: int, right: int, pitch: int, start: int, stop: int, first: int, begin: int, end: int,
        size: int,
    ) -> None:  # fmt: skip
        channels, width = job.channels, job.width
        wide, bytes_of = job.kernel_width, job.data_size
        dilation, stride = job.dilation_across, job.stride_across
        weights, bias = job.weights, job.bias
        filler, table = job.fill_values, job.row_table
        low, high = _bounds(job)
        lane = F32_SIZE * LANES * wide * job.group_channels
        step, row = bytes_of * channels, bytes_of * channels * width
        down, behind = row * job.dilation_down, row * job.plane_rows
        further = lane * job.kernel_height
        apart = further * job.kernel_depth
        source = x + first * step
        for index in range(start, stop):
            entry = RowWindow.at(table, index)
            data, out = source + entry.data_row * row, y + (index - start) * pitch
            rows, planes = entry.rows, entry.planes
            w = weights + begin // LANES * apart + entry.kernel_row * lane
            for c in range(begin, end, LANES):
                at = min(c, channels - LANES)
                slide(
                    form, data + bytes_of * at, down, step, w, rows, planes, behind, further, out + size * at, right,
                    bias + F32_SIZE * at, first, width, filler, wide, dilation, stride, low, high, size,
                )  # fmt: skip
                w += apart

    return device(compute)


@device
def _bounds(job: DepthwiseJob) -> tuple[np.float32, np.float32]:
    """Return the bounds of window sums; infinite if there is a residual, which is added before clamping."""
    low, high = job.epilogue.low, job.epilogue.high
    if job.epilogue.has_residual != 0:
        low, high = np.float32(-np.inf), np.float32(np.inf)
    return low, high


@device
def _apply(job: DepthwiseJob, partner: int, second: int, y: int, at: int, columns: int) -> None:
    """Apply the residual and the post-ops to ``columns`` columns of a result row, at byte offset ``at``."""
    epilogue, channels = job.epilogue, job.channels
    if epilogue.has_residual != 0:
        apply_epilogue(epilogue, partner, second, y, at, 0, columns, channels, F32_SIZE * channels)
    elif epilogue.post_ops > 0:
        apply_post_ops(epilogue, partner, second, y, at, 0, columns, channels, F32_SIZE * channels)


@device
def _apply_rows(
    job: DepthwiseJob, partner: int, second: int, y: int, start: int, end: int, column: int, count: int
) -> None:
    """Apply the residual and the post-ops to ``count`` columns of result rows ``start`` to ``end``."""
    pixel, columns = F32_SIZE * job.channels, job.out_width
    for index in range(start, end):
        _apply(job, partner, second, y, (index * columns + column) * pixel, count)


@device
def _next_column(place: int, size: int, columns: int) -> int:
    """Return where the block of ``size`` columns after that at ``place`` starts; the last block may overlap earlier ones."""
    following: int = min(place + size, columns - size) if place + size < columns else columns
    return following


@device
def _form(job: DepthwiseJob, beside: int, first: int) -> int:
    """Return the kernel variant for ``beside`` windows, the first of which starts at data column ``first``."""
    form, wide = job.way, job.kernel_width
    more = job.more
    if form == 0 or beside < WINDOWS:
        variant = _GENERAL if beside == WINDOWS else (_GENERAL_FEW if beside == FEW_WINDOWS else _GENERAL_ONE)
        general: int = variant + more
        return general
    last = first + (beside - 1) * job.stride_across * job.spread
    last += (wide - 1) * job.dilation_across
    inside: bool = first >= 0 and last < job.width
    return form + more + (0 if inside else _PADDED)


@device
def _round_block(job: DepthwiseJob, block: int, y: int, rows: int, columns: int, pitch: int) -> None:
    """Apply the post-ops to an f32 block of ``rows`` by ``columns`` pixels, and round it to bf16 in the result."""
    channels = job.channels
    apply_post_ops(job.epilogue, 0, 0, block, 0, 0, rows * columns, channels, F32_SIZE * channels)
    for row in range(rows):
        round_row(
            block + row * columns * F32_SIZE * channels,
            columns * channels,
            y + row * pitch,
            columns * channels,
        )


def depthwise_task(name: str, slide: Instruction) -> Task:
    """Return a task that convolves A by sliding windows; B and C are the extra tensors of post-ops.

    Args:
        name: the name of the task.
        slide: the `sliding_window` instruction.
    """
    compute = _make_compute(slide)

    def depthwise(call: int, job: DepthwiseJob, y: int, x: int, partner: int, second: int) -> None:
        channels, lines, columns = job.channels, job.out_height, job.out_width
        units, tall, size = job.units, job.rows_per_unit, job.result_size
        stages = job.epilogue.post_ops
        is_staged = size == BF16_SIZE and (stages > 0 or job.data_size == F32_SIZE)
        beside = WINDOWS if columns >= WINDOWS else (FEW_WINDOWS if columns >= FEW_WINDOWS else 1)
        spread = job.spread
        step, wide, block_columns = size * channels, F32_SIZE * channels, beside * spread
        block = scratch_memory(wide * tall * block_columns if is_staged else 0)
        together = job.channel_block
        for unit in each_unit(call, units):
            start, end = unit * tall, min(unit * tall + tall, lines)
            for place in range(0, columns, block_columns):
                column = min(place, columns - block_columns)
                target = y + (start * columns + column) * step
                for phase in range(spread):
                    first = (column + phase) * job.stride_across - job.pad_left
                    form = _form(job, beside, first)
                    for c in range(0, channels, together):
                        stop = min(c + together, channels)
                        if is_staged:
                            compute(
                                form, job, x, block + phase * wide, spread * wide, block_columns * wide, start,
                                end, first, c, stop, F32_SIZE,
                            )  # fmt: skip
                        else:
                            compute(
                                form, job, x, target + phase * step, spread * step, columns * step, start, end,
                                first, c, stop, size,
                            )  # fmt: skip
                if is_staged:
                    _round_block(job, block, target, end - start, block_columns, columns * step)
                elif size == F32_SIZE:
                    count = _next_column(place, block_columns, columns) - column
                    _apply_rows(job, partner, second, y, start, end, column, count)

    return Task(depthwise, name)


DEPTHWISE = depthwise_task("_depthwise", _slide)
"""Depthwise convolution of f32 data; results are f32, or are rounded to bf16. Several result rows are computed together,
a few columns of all rows at a time, so that their data stays in the L1 cache."""
GROUPED = depthwise_task("_grouped", _slide_groups)
"""Like `DEPTHWISE`, with `GROUP_CHANNELS` per group."""
BF16_DEPTHWISE = depthwise_task("_bf16_depthwise", _slide_bf16)
"""Like `DEPTHWISE`, for bf16 data; weights and sums are f32."""


# The result rows and the vectors of channels of a block, whose data and weights stay in the L1 cache.
ROW_BLOCK, CHANNEL_BLOCK = 8, 8


@backend.accelerates(GroupConvolution)
def depthwise(op: GroupConvolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Return a GroupConvolution kernel for constant f32 filters with one channel per group, or accepted by `is_by_windows`.

    Returns ``None`` for other filters, and for filters that are not finite.
    """
    w = filters.known()
    if w is None or not is_f32(data, filters) or w.ndim not in (4, 5, 6):
        return None
    is_alone = w.shape[1:3] == (1, 1) and bool(w.size) and bool(np.isfinite(w).all())
    if not is_alone and not is_by_windows(w):
        return None
    extents = [op.extent(axis, length) for axis, length in enumerate(w.shape[3:])]
    is_wide = is_alone and requested_products().is_faster and len(w) >= LANES
    return FusedKernel(
        lambda epilogue: _kernel(op, w, epilogue, is_wide), 1,
        accepts=filter_lengths(math.prod(w.shape[:2]), extents), bf16=Bf16Tensors(data=is_wide, result=is_wide),
    )  # fmt: skip


def is_by_windows(w: Array) -> bool:
    """Return whether to compute filters ``w[G, C_out, C_in, ...]`` by sliding windows, like depthwise convolutions."""
    groups, outputs, channels = w.shape[:3]
    fits = channels in GROUP_CHANNELS and outputs == channels and groups * outputs >= LANES
    return fits and bool(np.isfinite(w).all()) and requested_products() is F32_PRODUCTS


def _kernel(op: GroupConvolution, w: Array, epilogue: Epilogue, bf16: bool) -> Kernel:
    """Return the kernel for filters ``w[G, C_out, C_in, ...]``; if ``bf16``, its data may be stored in bf16."""
    spatial, channels, inputs = w.ndim - 3, math.prod(w.shape[:2]), w.shape[2]
    ahead = (1,) * (3 - spatial)
    op, kernel = _prepend_axes(op, ahead), (*ahead, *w.shape[3:])
    weights = w.reshape(channels, inputs, *kernel)
    if epilogue.scale is not None:
        weights = weights * epilogue.scale.reshape(-1, 1, 1, 1, 1)
    short = max(LANES - channels, 0)
    packed = _pack_weights(pad_channels(weights, 0))
    bias = np.zeros(channels + short, np.float32)
    if epilogue.shift is not None:
        bias[:channels] = epilogue.shift
    post_ops = PackedEpilogue.of(epilogue, channels + short)
    shape = kernel[-1], op.strides[-1]
    is_fixed = op.dilations[-1] == 1 and (inputs == 1 or shape in GROUPED_WIDTHS)
    form = FIXED_WIDTHS.get(shape, 0) if is_fixed else 0
    is_shared = inputs == 1 and not form and op.strides[-1] == 1
    more = GROUP_VARIANTS.get(inputs, 0)
    fill_values = np.zeros(LANES, np.float32)
    by_size: dict[int, Task] = {int(F32_SIZE): GROUPED if inputs > 1 else DEPTHWISE}
    if bf16:
        by_size[BF16_SIZE] = BF16_DEPTHWISE
    stored = epilogue.dtype
    for task in by_size.values():
        task.prepare()
    weight = math.prod(kernel) * inputs

    @lru_cache(maxsize=16)
    def job_for(
        images: int, lengths: tuple[int, ...], size: int, sharing: int
    ) -> tuple[Array, tuple[int, ...]]:
        lengths = *ahead, *lengths
        windows = geometry(op, lengths, channels + short, kernel, op.dilations)
        counts, table = op.windows(lengths, kernel), _row_table(op, images, lengths, kernel)
        out = (images, *counts[-spatial:], channels + short)
        most = ROW_BLOCK
        if pays_to_share(computed=math.prod(out) * weight):
            # A few units per thread if there are enough rows; more for groups, whose units take longer.
            per_thread = 2 if inputs == 1 else 4
            most = min(counts[0] * counts[1] // 4, len(table) // (per_thread * sharing), ROW_BLOCK)
        rows_per_unit = max(most, 1)
        windows["out_height"] = len(table)
        is_spread = is_shared and counts[-1] >= WINDOWS * op.dilations[-1]
        job = DepthwiseJob.fill(
            **windows, kernel_depth=kernel[0], plane_rows=lengths[1] * op.dilations[0], group_channels=inputs,
            units=-(-len(table) // rows_per_unit), rows_per_unit=rows_per_unit,
            channel_block=LANES * max(CHANNEL_BLOCK // inputs, 1), way=SPREAD if is_spread else form,
            spread=op.dilations[-1] if is_spread else 1, more=more,
            weights=packed, bias=bias, fill_values=fill_values,
            epilogue=post_ops.record, row_table=table, data_size=size, result_size=stored.itemsize,
        )  # fmt: skip
        return job, out

    def compute(x: Array, _: Array, *extras: Array) -> Array:
        job, shape = job_for(len(x), x.shape[2:], x.itemsize, threads())
        y = empty(shape, stored)
        shared = threads_for(computed=y.size * weight)
        source = contiguous(pad_channels(channels_last(x)))
        partners = [contiguous(as_rows(pad_channels(extras[index], 1), 1)) for index in post_ops.extras]
        first, second = (*partners, UNUSED, UNUSED)[:2]
        parallel_for(by_size[x.itemsize].address, job, y, source, first, second, shared)
        return channels_first(np.ascontiguousarray(y[..., :channels]) if short else y)

    return Kernel(compute, replay=replayed())


def _row_table(op: GroupConvolution, images: int, lengths: tuple[int, ...], kernel: tuple[int, ...]) -> Array:
    """Return a `RowWindow` for each row of the result, for data with the three spatial ``lengths``."""
    planes, rows = (_ranges(op, axis, lengths, kernel) for axis in (0, 1))
    deep, down = planes[:, None], rows[None]
    table = np.empty((images, len(planes), len(rows), RowWindow.words), np.int64)
    image = lengths[0] * np.arange(images).reshape(-1, 1, 1)
    table[..., 0] = (image + deep[..., 0]) * lengths[1] + down[..., 0]
    table[..., 1] = deep[..., 1] * kernel[1] + down[..., 1]
    table[..., 2], table[..., 3] = down[..., 2], deep[..., 2]
    return table.reshape(-1, RowWindow.words)


def _ranges(op: GroupConvolution, axis: int, lengths: tuple[int, ...], kernel: tuple[int, ...]) -> Array:
    """Return the part of each window along an axis that is inside the data: ``[windows, 3]``.

    The columns are the first data element, the first kernel element, and the number of kernel elements.
    """
    stride, spread, (before, _) = op.strides[axis], op.dilations[axis], op.pads(lengths, kernel)[axis]
    ranges = []
    for index in range(op.windows(lengths, kernel)[axis]):
        first = index * stride - before
        low, high = window_range(first, lengths[axis], spread, kernel[axis])
        ranges.append((first + low * spread, low, high - low))
    return np.array(ranges, np.int64).reshape(-1, 3)


def _prepend_axes(op: GroupConvolution, ahead: tuple[int, ...]) -> GroupConvolution:
    """Return the same convolution with leading spatial axes of length 1: one for each element of ``ahead``."""
    zeros = (0,) * len(ahead)
    return GroupConvolution(
        strides=(*ahead, *op.strides), dilations=(*ahead, *op.dilations), pads_begin=(*zeros, *op.pads_begin),
        pads_end=(*zeros, *op.pads_end), auto_pad=op.auto_pad,
    )  # fmt: skip


def _pack_weights(w: Array) -> Array:
    """Pack weights ``[C, inputs, depth, height, width]`` as ``[vector, depth, height, width, input, lane]``.

    The last vector may overlap the previous one.
    """
    places = np.minimum(np.arange(0, len(w), LANES), len(w) - LANES)
    channels = places[:, None] + np.arange(LANES)
    return np.ascontiguousarray(w[channels].transpose(0, 3, 4, 5, 2, 1))
