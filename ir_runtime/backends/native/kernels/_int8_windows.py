"""Depthwise convolution and max pooling of 8-bit levels: sliding windows over maps with borders.

Sums of products of levels and weights are integers below 2^24, exact in f32, so depthwise convolutions use FMA. If possible,
3 by 3 convolutions use dot products of four bytes instead: four neighbouring pixels of 64 channels, interleaved twice,
become four vectors whose 32-bit lanes hold four levels of one channel. With stride 1, these vectors serve two neighbouring
results, with the weights ``(a, b, c, 0)`` and ``(0, a, b, c)``. Interleaving puts channels in `column_order`, which storing
undoes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

import numpy as np

from ....ir.tensor import Array
from ..codegen import ir
from ..codegen.descriptor import i64
from ..codegen.language import device, instruction, types
from ..codegen.levels import GROUP, LEVEL_SIZE, dot, load_levels, max_levels, no_levels, store_levels
from ..codegen.vectors import I32, INTS, LANES, VECTOR, Emit, Value
from ..threading.task import Task, shared_counters
from ._int8_gemm import CAN_PACK, column_order, load_bounds, requantize, store_rows
from ._int8_maps import MapJob, fill_borders, first_share, line_address, share_of_lines, take_units

__all__ = [
    "BLOCK",
    "TALL",
    "are_interleaved",
    "pack_blocks",
    "pack_row",
    "FORMS",
    "levels_windows",
    "MAXIMUM",
    "LevelsWindowsJob",
    "pack_depthwise",
]

BLOCK = 4
"""The number of channel vectors computed together."""
TALL = 2
"""The number of result rows computed together, if that many remain."""
TAPS, PLACES, STRIDES = 3, 2, (1, 2)
PER_BLOCK = TAPS * PLACES * BLOCK * LANES * GROUP
"""The bytes of the weights of a block."""

_PART = 16


def are_interleaved(kernel: Sequence[int], stride: int, width: int, vectors: int) -> bool:
    """Return whether `interleaved_windows` computes a depthwise convolution.

    Args:
        kernel: the height and width of a window.
        stride: the stride of the windows.
        width: the columns of the result.
        vectors: the number of channel vectors.
    """
    is_supported = tuple(kernel) == (TAPS, TAPS) and stride in STRIDES
    return CAN_PACK and is_supported and width >= PLACES and vectors >= BLOCK


def _interleave(emit: Emit, a: Value, b: Value, size: int, high: bool) -> Value:
    """Interleave the elements of ``size`` bytes in the low or high half of each 128-bit part of ``a`` and ``b``."""
    count, whole = _PART // size, BLOCK * LANES // size
    kind = ir.VectorType(ir.IntType(8 * size), whole)
    first = count // 2 if high else 0
    order = [
        part * count + first + i + side * whole
        for part in range(whole // count)
        for i in range(count // 2)
        for side in range(2)
    ]
    mask = ir.Constant(ir.VectorType(I32, whole), order)
    return emit.builder.shuffle_vector(emit.builder.bitcast(a, kind), emit.builder.bitcast(b, kind), mask)


def _group_pixels(emit: Emit, pixels: Sequence[Value]) -> list[Value]:
    """Interleave four vectors of 64 channels to four vectors whose 32-bit lanes hold one channel of the four pixels."""
    groups = []
    for high in (False, True):
        left, right = (_interleave(emit, pixels[i], pixels[i + 1], 1, high) for i in (0, 2))
        groups += [
            emit.builder.bitcast(_interleave(emit, left, right, 2, half), INTS) for half in (False, True)
        ]
    return groups


def _depthwise_windows(  # noqa: PLR0913 (values in registers)
    emit: Emit, stride: int, tall: int, x: Value, line: Value, pixel: Value, weights: Value, scale: Value, bias: Value,
    bounds: Value, out: Value, out_line: Value, step: Value,
) -> None:  # fmt: skip
    """Emit the windows of ``tall`` result rows at one column, or, with stride 1, at two neighbouring columns."""
    builder, wide = emit.builder, PLACES if stride == 1 else 1
    kind = ir.VectorType(ir.I8, BLOCK * LANES)
    sums: dict[tuple[int, int, int], Value] = dict.fromkeys(
        product(range(tall), range(wide), range(BLOCK)), ir.Constant(INTS, None)
    )
    for row in range((tall - 1) * stride + TAPS):
        begin = emit.at(x, builder.mul(line, emit.i64(row)))
        pixels = [
            emit.load(emit.at(begin, builder.mul(pixel, emit.i64(i))), kind) for i in range(TAPS + wide - 1)
        ]
        levels = _group_pixels(emit, [*pixels, pixels[-1]][:GROUP])
        for y, place, q in sums:
            if 0 <= (tap := row - y * stride) < TAPS:
                factor = emit.load(emit.at(weights, 4 * LANES * ((tap * PLACES + place) * BLOCK + q)), INTS)
                sums[y, place, q] = dot(emit, sums[y, place, q], levels[q], factor)
    low, high, *_ = load_bounds(emit, bounds)
    columns = [[emit.load(emit.at(row, 4 * LANES * q)) for row in (scale, bias)] for q in range(BLOCK)]
    values = [emit.fma(builder.sitofp(total, VECTOR), *columns[q]) for (_, _, q), total in sums.items()]
    places = [
        emit.at(out, builder.add(builder.mul(out_line, emit.i64(y)), builder.mul(step, emit.i64(place))))
        for y, place in product(range(tall), range(wide))
    ]
    store_rows(emit, values, places, low, high)


@instruction(*[types.int64] * 12)
def interleaved_windows(  # noqa: PLR0913 (values in registers)
    emit: Emit, stride: Value, tall: Value, x: Value, line: Value, pixel: Value, weights: Value, scale: Value,
    bias: Value, bounds: Value, out: Value, out_line: Value, step: Value,
) -> None:  # fmt: skip
    """Compute 3 by 3 depthwise windows of `BLOCK` channel vectors, in one or `TALL` result rows.

    ``line`` and ``pixel`` are byte strides of the data, ``out_line`` and ``step`` those of the result.
    """
    if not CAN_PACK:
        return
    arguments = x, line, pixel, weights, scale, bias, bounds, out, out_line, step
    cases = {
        across * (TALL + 1) + rows: partial(_depthwise_windows, emit, across, rows, *arguments)
        for across in STRIDES
        for rows in (1, TALL)
    }
    case = emit.builder.add(emit.builder.mul(stride, emit.i64(TALL + 1)), tall)
    emit.switch(case, cases)


def _block_channels(stored: int) -> Array:
    """Return the channel that each lane of a block holds, ``[blocks, BLOCK * LANES]``; a block can start at any vector."""
    starts = np.arange(stored // LANES - BLOCK + 1) * LANES
    return starts[:, None] + column_order(BLOCK)


def pack_blocks(w: Array, stored: int) -> Array:
    """Pack weights ``[channels, 3, 3]`` for `interleaved_windows`, as i8 ``[first vector, row, place, vector, lane, 4]``.

    There is one block for each vector that a block can start at. ``place`` is the first or second of two neighbouring
    results.

    Args:
        w: the weights.
        stored: the number of channels with padding.
    """
    full = np.zeros((stored, TAPS, TAPS), np.int8)
    full[: len(w)] = w
    taps = full[_block_channels(stored)].transpose(0, 2, 1, 3)
    blocks = np.zeros((len(taps), TAPS, PLACES, BLOCK * LANES, GROUP), np.int8)
    for place in range(PLACES):
        blocks[:, :, place, :, place : place + TAPS] = taps
    return blocks


def pack_row(row: Array) -> Array:
    """Pack a row of one value per stored channel for the blocks of `pack_blocks`, as ``[first vector, vector, lane]``."""
    return np.ascontiguousarray(row[_block_channels(len(row))])


# Neighbouring result pixels that are computed together.
WIDE = 4
FORMS = {(3, 1): 0, (3, 2): 1, (5, 1): 2, (5, 2): 3}
"""The kernel variants of depthwise convolutions, by kernel width and stride; add `_SINGLE` to compute one pixel at a time."""
MAXIMUM = 20
"""The kernel variant of max pooling, of any kernel and stride; add `_SEVERAL` to compute `_VECTORS` vectors at a time."""
_SINGLE, _SEVERAL, _VECTORS = 10, 1, 4


class LevelsWindowsJob(MapJob):
    """Parameters of `levels_windows`.

    ``form`` is the kernel variant. The strides of the data are those of pixels, without the stride of windows.
    ``blocks`` has the weights from `pack_blocks` if `interleaved_windows` is used, else 0; ``block_scale`` and
    ``block_bias`` are rows from `pack_row`.
    """

    lines: i64
    vectors: i64
    form: i64
    kernel_height: i64
    kernel_width: i64
    stride_down: i64
    stride_across: i64
    weights: i64
    by_channel: i64
    shares: i64
    starts: i64
    chunk: i64
    blocks: i64
    block_scale: i64
    block_bias: i64


def _depthwise(  # noqa: PLR0913 (values in registers)
    emit: Emit, taps: int, stride: int, wide: int, x: Value, line: Value, pixel: Value, height: Value,
    weights: Value, scale: Value, bias: Value, bounds: Value, out: Value, step: Value,
) -> None:  # fmt: skip
    """Emit ``wide`` neighbouring result pixels of a depthwise convolution for one channel vector."""
    places = [emit.builder.mul(pixel, emit.i64(i)) for i in range((wide - 1) * stride + taps)]
    with emit.loop(height, [x, weights, *[emit.constant(0)] * wide]) as (_, (row, w, *sums), following):
        columns = [load_levels(emit, emit.at(row, place)) for place in places]
        for tap in range(taps):
            factor = emit.load(emit.at(w, 4 * LANES * tap))
            for i in range(wide):
                sums[i] = emit.fma(columns[i * stride + tap], factor, sums[i])
        following += [emit.at(row, line), emit.at(w, 4 * LANES * taps), *sums]
    limits, s, b = load_bounds(emit, bounds), emit.load(scale), emit.load(bias)
    for i, total in enumerate(following[2:]):
        place = emit.at(out, emit.builder.mul(step, emit.i64(i)))
        store_levels(emit, requantize(emit, total, s, b, limits), place)


def _maximum(
    emit: Emit, vectors: int, x: Value, line: Value, pixel: Value, height: Value, width: Value, out: Value
) -> None:  # fmt: skip
    """Emit the maximum over one window for ``vectors`` channel vectors."""
    with emit.loop(height, [x, no_levels(vectors)]) as (_, (row, before), following):
        with emit.loop(width, [row, before]) as (_, (place, largest), after):
            after += [emit.at(place, pixel), max_levels(emit, largest, place)]
        following += [emit.at(row, line), after[1]]
    emit.store(following[1], out)


@instruction(*[types.int64] * 12)
def _windows(  # noqa: PLR0913 (values in registers)
    emit: Emit, form: Value, x: Value, line: Value, pixel: Value, height: Value, width: Value, weights: Value,
    scale: Value, bias: Value, bounds: Value, out: Value, step: Value,
) -> None:  # fmt: skip
    """Compute neighbouring result pixels by kernel variant ``form``."""
    arguments = x, line, pixel, height, weights, scale, bias, bounds, out, step
    branches = {
        number + single * _SINGLE: partial(_depthwise, emit, *shape, 1 if single else WIDE, *arguments)
        for shape, number in FORMS.items()
        for single in (False, True)
    }
    for number, vectors in ((MAXIMUM, 1), (MAXIMUM + _SEVERAL, _VECTORS)):
        branches[number] = partial(_maximum, emit, vectors, x, line, pixel, height, width, out)
    emit.switch(form, branches)


@device
def _row(job: LevelsWindowsJob, x: int, out: int, first: int, count: int) -> None:
    """Compute ``count`` channel vectors of one result row, starting with vector ``first``."""
    form, columns = job.form, job.width
    pixel, step = job.x_pixel, job.y_pixel
    tall, across = job.kernel_height, job.kernel_width
    along, weights = job.stride_across, job.weights
    beside = WIDE if form < _SINGLE and columns >= WIDE else 1
    chosen = form + _SINGLE if form < _SINGLE and beside == 1 else form
    for place in range(0, columns, beside):
        column = min(place, columns - beside)
        vector = first
        while vector < first + count:
            is_wide = form == MAXIMUM and first + count - vector >= _VECTORS
            channel = vector * LANES
            at = channel * LEVEL_SIZE
            _windows(
                chosen + _SEVERAL if is_wide else chosen, x + column * along * pixel + at,
                job.x_line, pixel, tall, across,
                weights + 4 * channel * tall * across, job.scale + 4 * channel,
                job.bias + 4 * channel, job.bounds,
                out + column * step + at, step,
            )  # fmt: skip
            vector += _VECTORS if is_wide else 1


@device
def _block_rows(job: LevelsWindowsJob, x: int, out: int, rows: int, first: int, count: int) -> None:
    """Compute ``count`` channel vectors of ``rows`` result rows in blocks, the last of which may overlap the previous one."""
    stride, columns = job.stride_across, job.width
    pixel, line = job.x_pixel, job.x_line
    step, out_line = job.y_pixel, job.y_line
    bounds, beside = job.bounds, 2 if stride == 1 else 1
    for block in range(0, count, BLOCK):
        vector = first + min(block, count - BLOCK)
        at, numbers = vector * LANES * LEVEL_SIZE, 4 * LANES * BLOCK * vector
        weights = job.blocks + PER_BLOCK * vector
        scale = job.block_scale + numbers
        bias = job.block_bias + numbers
        for place in range(0, columns, beside):
            column = min(place, columns - beside)
            interleaved_windows(
                stride, rows, x + column * stride * pixel + at, line, pixel, weights, scale, bias, bounds,
                out + column * step + at, out_line, step,
            )  # fmt: skip


@device
def _rows_together(job: LevelsWindowsJob, unit: int, last: int, count: int) -> int:
    """Return how many result rows to compute next by `_block_rows`: 0 (use `_row`), 1 or `TALL`.

    ``unit`` is the next row, ``last`` the end of the rows to compute, and ``count`` the number of channel vectors.
    """
    if job.blocks == 0 or count < BLOCK:
        return 0
    down, height = job.stride_down, job.plane
    whole = unit + TALL <= last and unit % height + TALL <= height
    return TALL if whole and down == job.stride_across else 1


@Task
def levels_windows(call: int, job: LevelsWindowsJob, out: int, x: int) -> None:
    """Compute a depthwise convolution or a max pooling of the map A; a unit of work is one result row, or one channel vector.

    The job's ``plane`` is the number of rows of an image.
    """
    counter = shared_counters(call)
    lines, height = job.lines, job.plane
    map_start = out
    x, out = x + job.x_offset, out + job.y_offset
    down = job.stride_down * job.x_line
    by_channel, vectors = job.by_channel != 0, job.vectors
    starts, shares = job.starts, job.shares
    share, empty = first_share(call, shares), 0
    while True:
        first, count, share, empty = take_units(counter, starts, job.chunk, shares, share, empty)
        if count == 0:
            break
        line, last = (0, lines) if by_channel else (first, first + count)
        begin, size = share_of_lines(lines, first, count, vectors) if by_channel else (first, count)
        fill_borders(job.borders, map_start, begin, size)
        channel, channels = (first, count) if by_channel else (0, vectors)
        unit = line
        while unit < last:
            source = line_address(x, unit, height, job.x_image, down)
            target = line_address(out, unit, height, job.y_image, job.y_line)
            together = _rows_together(job, unit, last, channels)
            if together > 0:
                _block_rows(job, source, target, together, channel, channels)
            else:
                _row(job, source, target, channel, channels)
            unit += max(together, 1)


def pack_depthwise(w: Array, stored: int) -> Array:
    """Pack weights ``[channels, height, width]`` as f32 ``[vector, height, width, lane]``, with ``stored`` padded channels."""
    full = np.zeros((stored, *w.shape[1:]), np.float32)
    full[: len(w)] = w
    return np.ascontiguousarray(np.moveaxis(full.reshape(-1, LANES, *w.shape[1:]), 1, -1))
