"""Depthwise convolution in NHWC layout."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from llvmlite import ir

from ....ir.tensor import Array, Value
from ....ops.convolution.forward import GroupConvolution
from ... import Kernel
from ...common.layout import as_rows, channels_first, channels_last, is_f32
from ...core.lengths import filter_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device
from ..codegen.memory import fetch_add, load_i64
from ..codegen.vectors import LANES, Emit
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args
from ._epilogue import Epilogue, FusedKernel
from ._packed_epilogue import PackedEpilogue, apply_epilogue
from ._windows import (
    F32_SIZE,
    FEW_WINDOWS,
    WINDOWS,
    SlidingWindows,
    fixed_width_window,
    general_window,
    geometry,
    pad_channels,
    sliding_window,
    window_range,
)
from .contiguous import contiguous

__all__: list[str] = []

# Multiplications from which on several threads are faster.
MIN_PARALLEL_WORK = 1 << 18
# Channels and rows of the result of a block, whose data and weights stay in the L1 cache.
CHANNEL_BLOCK = 8 * LANES
ROW_BLOCK = 8

# Kernels of a fixed width, by width and stride; add `_PADDED` where windows reach into padding.
_FIXED_WIDTHS = {(3, 1): 1, (3, 2): 2, (5, 1): 3, (5, 2): 4, (7, 1): 5}
_PADDED = 10
# All other kernels, by how many windows are computed at a time.
_GENERAL, _GENERAL_FEW, _GENERAL_ONE = 7, 8, 9


def _multiply_add(emit: Emit, sum: ir.Value, x: ir.Value, w: ir.Value) -> ir.Value:
    return emit.fma(x, w, sum)


_slide = sliding_window({
    **{form: fixed_width_window(*shape, False) for shape, form in _FIXED_WIDTHS.items()},
    **{form + _PADDED: fixed_width_window(*shape, True) for shape, form in _FIXED_WIDTHS.items()},
    _GENERAL: general_window(_multiply_add, WINDOWS), _GENERAL_FEW: general_window(_multiply_add, FEW_WINDOWS), _GENERAL_ONE: general_window(_multiply_add, 1),
})  # fmt: skip


class DepthwiseJob(SlidingWindows):
    """The job of `DEPTHWISE`; ``out_height`` counts the rows of all images."""

    units: i64
    rows_per_unit: i64
    way: i64
    weights: i64
    bias: i64
    fill_values: i64
    epilogue_words: i64
    epilogue_numbers: i64
    row_table: i64


class RowWindow(Descriptor):
    """The window of a row of the result: the first row of data, its row of the kernel, and the number of rows."""

    data_row: i64
    kernel_row: i64
    rows: i64


@device
def _rows_of_windows(  # noqa: PLR0913 (values in registers)
    form: int, x: int, row: int, down: int, step: int, weights: int, lane: int, apart: int, table: int, y: int,
    pitch: int, start: int, stop: int, bias: int, first: int, width: int, filler: int, kernel: int,
    dilation: int, stride: int, begin: int, end: int, channels: int,
) -> None:  # fmt: skip
    """Compute neighbouring windows for some rows and channels."""
    for index in range(start, stop):
        entry = table + 8 * RowWindow.words * index
        data, out, rows = (
            x + load_i64(entry, RowWindow.data_row) * row,
            y + index * pitch,
            load_i64(entry, RowWindow.rows),
        )
        w = weights + load_i64(entry, RowWindow.kernel_row) * lane
        for c in range(begin, end, LANES):
            at = F32_SIZE * min(c, channels - LANES)
            _slide(
                form, data + at, down, step, w, rows, out + at, step, bias + at, first, width, filler, kernel, dilation,
                stride,
            )  # fmt: skip
            w += apart


def _depthwise(call: int) -> None:
    job, y, x, partner, second, counter = load_args(call)
    width, channels, lines, columns = (
        load_i64(job, DepthwiseJob.width),
        load_i64(job, DepthwiseJob.channels),
        load_i64(job, DepthwiseJob.out_height),
        load_i64(job, DepthwiseJob.out_width),
    )
    tall, wide, along, spread = (
        load_i64(job, DepthwiseJob.kernel_height),
        load_i64(job, DepthwiseJob.kernel_width),
        load_i64(job, DepthwiseJob.stride_across),
        load_i64(job, DepthwiseJob.dilation_down),
    )
    apart, before, units, several = (
        load_i64(job, DepthwiseJob.dilation_across),
        load_i64(job, DepthwiseJob.pad_left),
        load_i64(job, DepthwiseJob.units),
        load_i64(job, DepthwiseJob.rows_per_unit),
    )
    form, weights, bias, filler = (
        load_i64(job, DepthwiseJob.way),
        load_i64(job, DepthwiseJob.weights),
        load_i64(job, DepthwiseJob.bias),
        load_i64(job, DepthwiseJob.fill_values),
    )
    words, numbers, table = (
        load_i64(job, DepthwiseJob.epilogue_words),
        load_i64(job, DepthwiseJob.epilogue_numbers),
        load_i64(job, DepthwiseJob.row_table),
    )
    beside = WINDOWS if columns >= WINDOWS else (FEW_WINDOWS if columns >= FEW_WINDOWS else 1)
    other = _GENERAL if beside == WINDOWS else (_GENERAL_FEW if beside == FEW_WINDOWS else _GENERAL_ONE)
    step = F32_SIZE * channels
    row, lane, vector = step * width, F32_SIZE * LANES * wide, F32_SIZE * LANES * tall * wide
    unit = fetch_add(counter)
    while unit < units:
        start, end = unit * several, min(unit * several + several, lines)
        for place in range(0, columns, beside):
            column = min(place, columns - beside)
            first = column * along - before
            last = first + (beside - 1) * along + (wide - 1) * apart
            chosen = other
            if form > 0 and beside == WINDOWS:
                chosen = form if first >= 0 and last < width else form + _PADDED
            for c in range(0, channels, CHANNEL_BLOCK):
                _rows_of_windows(
                    chosen, x + first * step, row, row * spread, step, weights + c // LANES * vector, lane, vector,
                    table, y + column * step, columns * step, start, end, bias, first, width, filler, wide, apart,
                    along, c, min(c + CHANNEL_BLOCK, channels), channels,
                )  # fmt: skip
            following = min(place + beside, columns - beside) if place + beside < columns else columns
            for index in range(start, end):
                at = (index * columns + column) * step
                apply_epilogue(words, numbers, partner, second, y, at, 0, following - column, channels, step)
        unit = fetch_add(counter)


DEPTHWISE = Task(_depthwise)
"""Compute several rows of the result; the same columns of all rows first, so that their data stay in the L1 cache."""


@backend.accelerates(GroupConvolution)
def depthwise(op: GroupConvolution, data: Value, filters: Value) -> Kernel | None:
    """Constant f32 filters ``[C, 1, 1, kernel...]`` over one or two spatial axes."""
    w = filters.known()
    if w is None or not is_f32(data, filters) or w.ndim not in (4, 5) or w.shape[1:3] != (1, 1):
        return None
    if not w.size or not np.isfinite(w).all():
        return None
    extents = [op.extent(axis, length) for axis, length in enumerate(w.shape[3:])]
    return FusedKernel(lambda epilogue: _kernel(op, w, epilogue), 1, accepts=filter_lengths(len(w), extents))


def _kernel(op: GroupConvolution, w: Array, epilogue: Epilogue) -> Kernel:
    flat = w.ndim == 4
    if flat:
        op = _with_height(op)
    kernel, channels = (1, *w.shape[3:])[-2:], len(w)
    weights = w.reshape(channels, *kernel)
    if epilogue.scale is not None:
        weights = weights * epilogue.scale[:, None, None]
    short = max(LANES - channels, 0)
    packed = _pack_weights(pad_channels(weights, 0))
    bias = np.zeros(channels + short, np.float32)
    if epilogue.shift is not None:
        bias[:channels] = epilogue.shift
    post_ops = PackedEpilogue.of(epilogue, channels + short)
    form = _FIXED_WIDTHS.get((kernel[1], op.strides[1]), 0) if op.dilations[1] == 1 else 0
    fill_values = np.zeros(LANES, np.float32)

    @lru_cache(maxsize=16)
    def job_for(images: int, lengths: tuple[int, ...]) -> tuple[Array, Array, tuple[int, ...]]:
        windows = geometry(op, lengths, channels + short, kernel, op.dilations)
        table = _row_table(images, windows)
        out = (images, windows["out_height"], windows["out_width"], channels + short)
        large = math.prod(out) * math.prod(kernel) >= MIN_PARALLEL_WORK
        several = max(min(out[1] // 4, ROW_BLOCK), 1) if large else ROW_BLOCK
        windows["out_height"] *= images
        job = DepthwiseJob.fill(
            **windows, units=-(-windows["out_height"] // several), rows_per_unit=several, way=form,
            weights=packed.ctypes.data, bias=bias.ctypes.data, fill_values=fill_values.ctypes.data,
            epilogue_words=post_ops.words.ctypes.data, epilogue_numbers=post_ops.numbers.ctypes.data,
            row_table=table.ctypes.data,
        )  # fmt: skip
        return job, table, out

    def compute(x: Array, _: Array, *extras: Array) -> Array:
        if flat:
            x = x[:, :, None]
        job, _, shape = job_for(len(x), x.shape[2:])
        y = np.empty(shape, np.float32)
        shared = threads() if y.size * math.prod(kernel) >= MIN_PARALLEL_WORK else 1
        source = contiguous(pad_channels(channels_last(x)))
        partners = [contiguous(as_rows(pad_channels(extras[index], 1), 1)) for index in post_ops.extras]
        first, second = (*partners, UNUSED, UNUSED)[:2]
        parallel_for(DEPTHWISE.address, job, y, source, first, second, shared)
        found = channels_first(np.ascontiguousarray(y[..., :channels]) if short else y)
        return found[:, :, 0] if flat else found

    return compute


def _row_table(images: int, windows: Mapping[str, int]) -> Array:
    """Return a `RowWindow` for each row of the result."""
    height, lines, tall = windows["height"], windows["out_height"], windows["kernel_height"]
    across, spread, above = windows["stride_down"], windows["dilation_down"], windows["pad_top"]
    rows = [
        (top, *window_range(top, height, spread, tall))
        for top in range(-above, lines * across - above, across)
    ]
    once = np.array([(top + low * spread, low, high - low) for top, low, high in rows], np.int64).reshape(
        -1, 3
    )
    shift = np.zeros((images, 1, 3), np.int64)
    shift[:, 0, 0] = np.arange(images) * height
    return (once + shift).reshape(-1, 3)


def _with_height(op: GroupConvolution) -> GroupConvolution:
    """Return the same convolution for data with an axis of length 1 before the only spatial one."""
    return GroupConvolution(
        strides=(1, *op.strides),
        dilations=(1, *op.dilations),
        pads_begin=(0, *op.pads_begin),
        pads_end=(0, *op.pads_end),
        auto_pad=op.auto_pad,
    )


def _pack_weights(w: Array) -> Array:
    """Pack weights ``[C, height, width]`` as ``[vector, height, width, lane]``; the last vector overlaps."""
    places = np.minimum(np.arange(0, len(w), LANES), len(w) - LANES)
    channels = places[:, None] + np.arange(LANES)
    return np.ascontiguousarray(np.moveaxis(w[channels], 1, -1))
