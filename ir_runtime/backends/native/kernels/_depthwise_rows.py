"""The kernels of depthwise convolutions: rows of the result, in blocks of columns and channels that stay in the L1 cache."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..codegen import ir
from ..codegen.bf16 import as_bf16, load_bf16, store_bf16
from ..codegen.language import Device, Instruction, device, types
from ..codegen.memory import load_i64, scratch_memory
from ..codegen.vectors import LANES, Emit, Value
from ..threading.task import Task, each_unit, load_args
from ._bf16_tile import round_row
from ._depthwise_job import DepthwiseJob, RowWindow
from ._grouped_windows import GROUP_CHANNELS, fixed_width_groups, general_groups
from ._packed_epilogue import Bounds, EpilogueHeader, apply_epilogue, apply_post_ops
from ._spread_windows import spread_window
from ._windows import (
    F32_SIZE,
    FEW_WINDOWS,
    WINDOWS,
    Memory,
    fixed_width_window,
    general_window,
    sliding_window,
)

__all__ = [
 "BF16_DEPTHWISE", "BF16_SIZE", "DEPTHWISE", "FIXED_WIDTHS", "GROUPED", "GROUPED_WIDTHS", "GROUP_WAYS", "SPREAD",
]  # fmt: skip

FIXED_WIDTHS = {(3, 1): 1, (3, 2): 2, (5, 1): 3, (5, 2): 4, (7, 1): 5}
"""Kernels of a fixed width, by width and stride; add `_PADDED` where windows reach into padding."""
_PADDED = 10
# All other kernels, by how many windows are computed at a time.
_GENERAL, _GENERAL_FEW, _GENERAL_ONE = 7, 8, 9
SPREAD = 6
"""Windows of any width and dilation, of stride 1, that are a dilation apart."""
BF16_SIZE = 2
GROUPED_WIDTHS = ((3, 1), (3, 2))
"""Kernels of a fixed width over groups."""
GROUP_WAYS = {channels: 20 * index for index, channels in enumerate(GROUP_CHANNELS)}
"""What is added to the way for groups of some numbers of channels."""


def _multiply_add(emit: Emit, sum: ir.Value, x: ir.Value, w: ir.Value) -> ir.Value:
    return emit.fma(x, w, sum)


def _store_clamped(emit: Emit, value: Value, address: Value, low: Value, high: Value, _: Value) -> None:
    emit.store(emit.minimum(emit.maximum(value, emit.splat(low)), emit.splat(high)), address)


def _store_rounded(emit: Emit, value: Value, address: Value, low: Value, high: Value, size: Value) -> None:
    """Store numbers of 4 bytes, or of 2: those are bf16."""
    clamped = emit.minimum(emit.maximum(value, emit.splat(low)), emit.splat(high))
    with emit.builder.if_else(emit.builder.icmp_signed("==", size, emit.i64(2))) as (rounded, exact):
        with rounded:
            store_bf16(emit, as_bf16(emit, clamped), address)
        with exact:
            emit.store(clamped, address)


def _ways(memory: Memory) -> dict[int, Callable[..., None]]:
    fixed = {
        form + more: fixed_width_window(*shape, bool(more), memory)
        for more in (0, _PADDED)
        for shape, form in FIXED_WIDTHS.items()
    }
    fixed |= {SPREAD + more: spread_window(bool(more), memory) for more in (0, _PADDED)}
    counts = {_GENERAL: WINDOWS, _GENERAL_FEW: FEW_WINDOWS, _GENERAL_ONE: 1}
    return fixed | {form: general_window(_multiply_add, count, memory) for form, count in counts.items()}


def _grouped_ways(channels: int) -> dict[int, Callable[..., None]]:
    memory = Memory(store=_store_clamped)
    fixed = {
        FIXED_WIDTHS[shape] + more: fixed_width_groups(channels, *shape, bool(more), memory)
        for more in (0, _PADDED)
        for shape in GROUPED_WIDTHS
    }
    counts = {_GENERAL: WINDOWS, _GENERAL_FEW: FEW_WINDOWS, _GENERAL_ONE: 1}
    return fixed | {form: general_groups(channels, count, memory) for form, count in counts.items()}


_MORE = (types.float32, types.float32, types.int64)
_slide = sliding_window(_ways(Memory(store=_store_clamped)), _MORE)
_slide_groups = sliding_window(
    {
        form + more: way
        for channels, more in GROUP_WAYS.items()
        for form, way in _grouped_ways(channels).items()
    },
    _MORE,
)
_slide_bf16 = sliding_window(_ways(Memory(load_bf16, _store_rounded)), _MORE)


def _windows_of(slide: Instruction) -> Device[..., None]:
    """Return a function that computes the same columns and channels of some rows of the result."""

    def compute(  # noqa: PLR0913 (values in registers)
        form: int, job: DepthwiseJob, x: int, y: int, right: int, pitch: int, start: int, stop: int, first: int, begin: int, end: int,
        size: int,
    ) -> None:  # fmt: skip
        channels, width = job.channels, job.width
        wide, bytes_of = job.kernel_width, job.data_size
        dilation, stride = (
            job.dilation_across,
            job.stride_across,
        )
        weights, bias = job.weights, job.bias
        filler, table = job.fill_values, job.row_table
        low, high = _bounds(job)
        lane = F32_SIZE * LANES * wide * job.group_channels
        step, row = bytes_of * channels, bytes_of * channels * width
        down, behind = (
            row * job.dilation_down,
            row * job.plane_rows,
        )
        further = lane * job.kernel_height
        apart = further * job.kernel_depth
        source = x + first * step
        for index in range(start, stop):
            entry = RowWindow.at(table + 8 * RowWindow.words * index)
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
    """Return the bounds of results; none if they are those of a sum with the residual."""
    words, numbers = EpilogueHeader.at(job.epilogue_words), Bounds.at(job.epilogue_numbers)
    low, high = numbers.low, numbers.high
    if words.has_residual != 0:
        low, high = np.float32(-np.inf), np.float32(np.inf)
    return low, high


@device
def _apply(job: DepthwiseJob, partner: int, second: int, y: int, at: int, columns: int) -> None:
    """Apply the rest of the epilogue to some columns of a row of the result."""
    words, numbers = EpilogueHeader.at(job.epilogue_words), job.epilogue_numbers
    channels = job.channels
    if words.has_residual != 0:
        apply_epilogue(words, numbers, partner, second, y, at, 0, columns, channels, F32_SIZE * channels)
    elif words.post_ops > 0:
        apply_post_ops(words, numbers, partner, second, y, at, 0, columns, channels, F32_SIZE * channels)


@device
def _apply_rows(
    job: DepthwiseJob, partner: int, second: int, y: int, start: int, end: int, column: int, count: int
) -> None:
    """Apply the rest of the epilogue to ``count`` columns of some rows of the result."""
    pixel, columns = F32_SIZE * job.channels, job.out_width
    for index in range(start, end):
        _apply(job, partner, second, y, (index * columns + column) * pixel, count)


@device
def _next_column(place: int, several: int, columns: int) -> int:
    """Return the first column that is computed after ``several``, the last of which reach back over those before."""
    following: int = min(place + several, columns - several) if place + several < columns else columns
    return following


@device
def _form(job: DepthwiseJob, beside: int, first: int) -> int:
    """Return the way in which windows are computed, the first of which begins at column ``first``."""
    form, wide = job.way, job.kernel_width
    more = job.more
    if form == 0 or beside < WINDOWS:
        other = _GENERAL if beside == WINDOWS else (_GENERAL_FEW if beside == FEW_WINDOWS else _GENERAL_ONE)
        general: int = other + more
        return general
    last = first + (beside - 1) * job.stride_across * job.spread
    last += (wide - 1) * job.dilation_across
    inside: bool = first >= 0 and last < job.width
    found: int = form + more + (0 if inside else _PADDED)
    return found


@device
def _round_block(job: DepthwiseJob, block: int, y: int, rows: int, columns: int, pitch: int) -> None:
    """Apply the epilogue to a block of f32, and store it as bf16."""
    words, numbers = job.epilogue_words, job.epilogue_numbers
    channels = job.channels
    apply_post_ops(words, numbers, 0, 0, block, 0, 0, rows * columns, channels, F32_SIZE * channels)
    for row in range(rows):
        round_row(
            block + row * columns * F32_SIZE * channels,
            columns * channels,
            y + row * pitch,
            columns * channels,
        )


def depthwise_task(name: str, slide: Instruction) -> Task:
    """Return the task of depthwise convolutions.

    Args:
        name: of its function.
        slide: computes neighbouring windows.
    """
    compute = _windows_of(slide)

    def depthwise(call: int) -> None:
        address, y, x, partner, second, _ = load_args(call)
        job = DepthwiseJob.at(address)
        channels, lines, columns = (
            job.channels,
            job.out_height,
            job.out_width,
        )
        units, several, size = (
            job.units,
            job.rows_per_unit,
            job.result_size,
        )
        stages = load_i64(job.epilogue_words, EpilogueHeader.post_ops)
        is_staged = size == BF16_SIZE and (stages > 0 or job.data_size == F32_SIZE)
        beside = WINDOWS if columns >= WINDOWS else (FEW_WINDOWS if columns >= FEW_WINDOWS else 1)
        spread = job.spread
        step, wide, several_columns = size * channels, F32_SIZE * channels, beside * spread
        block = scratch_memory(wide * several * several_columns if is_staged else 0)
        together = job.channel_block
        for unit in each_unit(call, units):
            start, end = unit * several, min(unit * several + several, lines)
            for place in range(0, columns, several_columns):
                column = min(place, columns - several_columns)
                target = y + (start * columns + column) * step
                for phase in range(spread):
                    first = (column + phase) * job.stride_across - job.pad_left
                    form = _form(job, beside, first)
                    for c in range(0, channels, together):
                        stop = min(c + together, channels)
                        if is_staged:
                            compute(
                                form, job, x, block + phase * wide, spread * wide, several_columns * wide, start,
                                end, first, c, stop, F32_SIZE,
                            )  # fmt: skip
                        else:
                            compute(
                                form, job, x, target + phase * step, spread * step, columns * step, start, end,
                                first, c, stop, size,
                            )  # fmt: skip
                if is_staged:
                    _round_block(job, block, target, end - start, several_columns, columns * step)
                elif size == F32_SIZE:
                    count = _next_column(place, several_columns, columns) - column
                    _apply_rows(job, partner, second, y, start, end, column, count)

    depthwise.__qualname__ = name
    return Task(depthwise)


DEPTHWISE = depthwise_task("_depthwise", _slide)
"""Compute several rows of the result; the same columns of all rows first, so that their data stay in the L1 cache.

The data are f32, and so are results before they are rounded, if they are.
"""
GROUPED = depthwise_task("_grouped", _slide_groups)
"""The same for groups of `GROUP_CHANNELS`."""
BF16_DEPTHWISE = depthwise_task("_bf16_depthwise", _slide_bf16)
"""The same for data that are bf16. Sums are f32, as are weights."""
