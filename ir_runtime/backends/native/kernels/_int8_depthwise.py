"""Depthwise convolution of levels by dot products of four neighbours of a row.

Four pixels of 64 channels, interleaved twice, are four vectors whose 32-bit lanes hold the levels of one channel; so one
instruction multiplies a row of a window, of 16 channels. With stride 1, the same vectors serve two neighbouring results: the
weights of a row are ``(a, b, c, 0)`` for one and ``(0, a, b, c)`` for the other. Channels are in `column_order`, which
storing undoes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

import numpy as np

from ....ir.tensor import Array
from ..codegen import ir
from ..codegen.language import instruction, types
from ..codegen.levels import GROUP, dot
from ..codegen.vectors import I32, INTS, LANES, VECTOR, Emit, Value
from ._int8_rows import CAN_PACK, column_order, store_rows
from ._int8_tile import bounds_at

__all__ = ["BLOCK", "PER_BLOCK", "TALL", "are_interleaved", "interleaved_windows", "pack_blocks", "pack_row"]

BLOCK = 4
"""Vectors of channels that are computed together."""
TALL = 2
"""Rows of the result that are computed together, where there are as many."""
TAPS, PLACES, STRIDES = 3, 2, (1, 2)
PER_BLOCK = TAPS * PLACES * BLOCK * LANES * GROUP
"""Bytes of the weights of a block."""

_PART = 16


def are_interleaved(kernel: Sequence[int], stride: int, width: int, vectors: int) -> bool:
    """Return whether windows are computed so: for a result of this width, and this many vectors of channels."""
    known = tuple(kernel) == (TAPS, TAPS) and stride in STRIDES
    return CAN_PACK and known and width >= PLACES and vectors >= BLOCK


def _interleaved(emit: Emit, a: Value, b: Value, size: int, high: bool) -> Value:
    """Interleave elements of ``size`` bytes within one half of each 128 bits."""
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


def _neighbours(emit: Emit, pixels: Sequence[Value]) -> list[Value]:
    """Return vectors whose lanes have the levels of a channel of four pixels."""
    found = []
    for high in (False, True):
        left, right = (_interleaved(emit, pixels[i], pixels[i + 1], 1, high) for i in (0, 2))
        found += [
            emit.builder.bitcast(_interleaved(emit, left, right, 2, half), INTS) for half in (False, True)
        ]
    return found


def _windows(  # noqa: PLR0913 (values in registers)
    emit: Emit, stride: int, tall: int, x: Value, line: Value, pixel: Value, weights: Value, scale: Value, bias: Value,
    bounds: Value, out: Value, out_line: Value, step: Value,
) -> None:  # fmt: skip
    """Compute windows of ``tall`` rows, at stride 1 two neighbours of each."""
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
        levels = _neighbours(emit, [*pixels, pixels[-1]][:GROUP])
        for y, place, q in sums:
            if 0 <= (tap := row - y * stride) < TAPS:
                factor = emit.load(emit.at(weights, 4 * LANES * ((tap * PLACES + place) * BLOCK + q)), INTS)
                sums[y, place, q] = dot(emit, sums[y, place, q], levels[q], factor)
    low, high, *_ = bounds_at(emit, bounds)
    columns = [[emit.load(emit.at(each, 4 * LANES * q)) for each in (scale, bias)] for q in range(BLOCK)]
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
    """Compute windows of one row or `TALL` rows, of a `BLOCK`; strides of the data are those of pixels and lines."""
    if not CAN_PACK:
        return
    given = x, line, pixel, weights, scale, bias, bounds, out, out_line, step
    cases = {
        across * (TALL + 1) + rows: partial(_windows, emit, across, rows, *given)
        for across in STRIDES
        for rows in (1, TALL)
    }
    case = emit.builder.add(emit.builder.mul(stride, emit.i64(TALL + 1)), tall)
    emit.switch(case, cases)


def _block_channels(stored: int) -> Array:
    """Return the channel of each lane of the blocks that begin at each vector, ``[vectors - BLOCK + 1, BLOCK * LANES]``."""
    starts = np.arange(stored // LANES - BLOCK + 1) * LANES
    return starts[:, None] + column_order(BLOCK)


def pack_blocks(w: Array, stored: int) -> Array:
    """Pack weights ``[channels, 3, 3]`` as ``[first vector, row, place, vector, lane, 4]`` of i8."""
    full = np.zeros((stored, TAPS, TAPS), np.int8)
    full[: len(w)] = w
    taps = full[_block_channels(stored)].transpose(0, 2, 1, 3)
    found = np.zeros((len(taps), TAPS, PLACES, BLOCK * LANES, GROUP), np.int8)
    for place in range(PLACES):
        found[:, :, place, :, place : place + TAPS] = taps
    return found


def pack_row(row: Array) -> Array:
    """Pack a number for each stored channel as ``[first vector, vector, lane]``."""
    return np.ascontiguousarray(row[_block_channels(len(row))])
