"""Rows of levels of a tile: sums are rounded, clamped and stored for several vectors at once.

With AVX-512, the vectors of a row are narrowed to bytes by two levels of packing instructions, which interleave them by parts
of 128 bits. So columns are interleaved beforehand: their weights and all that is per column are in `column_order`, and the
stored levels in the usual one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....ir.tensor import Array
from ..codegen import ir
from ..codegen.levels import GROUP, LEVEL_SIZE, at_most, load_levels, store_levels, to_levels
from ..codegen.target import TARGET
from ..codegen.vectors import I32, I64, INTS, LANES, VECTOR, Emit, Value, splat_bits

__all__ = ["CAN_PACK", "column_order", "load_row", "store_rows"]

CAN_PACK = GROUP == 4 and LANES == 16 and TARGET.has("avx512bw")
"""Whether vectors are narrowed to bytes by packing."""

# Parts of 128 bits of a vector, words of each, and bytes of a vector.
_PARTS, _WORDS, _BYTES = 4, 4, 64
_LEVELS, _SHORTS, _LONGS = (
    ir.VectorType(ir.I8, _BYTES),
    ir.VectorType(ir.IntType(16), _BYTES // 2),
    ir.VectorType(I64, _BYTES // 8),
)


def column_order(vectors: int) -> Array:
    """Return the column of a panel that each lane of its vectors has."""
    count = vectors * LANES
    if not CAN_PACK:
        return np.arange(count)
    return np.arange(count).reshape(_PARTS, vectors, _WORDS).swapaxes(0, 1).reshape(-1)


def load_row(emit: Emit, address: Value, vectors: int) -> list[Value]:
    """Load the levels of a row as f32, in `column_order`."""
    if not CAN_PACK or vectors == 1:
        return [load_levels(emit, emit.at(address, LEVEL_SIZE * LANES * j)) for j in range(vectors)]
    builder = emit.builder
    if vectors == _WORDS:
        row = emit.load(address, _LEVELS)
    else:  # half of each part is used
        half = emit.load(address, ir.VectorType(I64, _PARTS))
        row = builder.bitcast(_shuffled(emit, half, [n // 2 for n in range(2 * _PARTS)]), _LEVELS)
    return [builder.uitofp(_spread(emit, row, j), VECTOR) for j in range(vectors)]


def _spread(emit: Emit, row: Value, j: int) -> Value:
    """Return word ``j`` of each part, a byte in each lane."""
    order = [
        16 * part + 4 * j + i if byte == 0 else _BYTES
        for part in range(_PARTS)
        for i in range(_WORDS)
        for byte in range(4)
    ]
    mask = ir.Constant(ir.VectorType(I32, _BYTES), order)
    return emit.builder.bitcast(emit.builder.shuffle_vector(row, ir.Constant(_LEVELS, None), mask), INTS)


def _shuffled(emit: Emit, value: Value, order: Sequence[int]) -> Value:
    mask = ir.Constant(ir.VectorType(I32, len(order)), list(order))
    return emit.builder.shuffle_vector(value, ir.Constant(value.type, ir.UNDEFINED), mask)


def store_rows(emit: Emit, values: Sequence[Value], places: Sequence[Value], low: Value, high: Value) -> None:
    """Round numbers to levels between two, which are given in all lanes, and store a row of vectors at each place."""
    vectors = len(values) // len(places)
    if CAN_PACK:
        _store_packed(emit, values, places, vectors, low, high)
        return
    for i, place in enumerate(places):
        for j in range(vectors):
            level = to_levels(emit, values[i * vectors + j], low, high)
            store_levels(emit, level, emit.at(place, LEVEL_SIZE * LANES * j))


def _store_packed(
    emit: Emit, values: Sequence[Value], places: Sequence[Value], vectors: int, low: Value, high: Value
) -> None:
    """Store as many rows together as fill a vector of bytes."""
    beside, builder = _WORDS // vectors, emit.builder
    whole = builder.fptoui(low, ir.VectorType(ir.I32, LANES))
    lowest = builder.bitcast(builder.mul(whole, splat_bits(0x01010101)), _LEVELS)
    kind = ir.VectorType(I64, 2 * vectors)
    for first in range(0, len(places), beside):
        rows = [min(first + n, len(places) - 1) for n in range(beside)]
        given = [values[row * vectors + j] for row in rows for j in range(vectors)]
        levels = _packed(emit, [_rounded(emit, at_most(emit, value, high)) for value in given])
        levels = builder.select(builder.icmp_unsigned(">", levels, lowest), levels, lowest)
        words = builder.bitcast(levels, INTS)
        order = np.arange(LANES).reshape(_PARTS, beside, vectors).swapaxes(0, 1).reshape(beside, -1)
        for n, lanes in enumerate(order[: len(places) - first].tolist()):
            row = words if beside == 1 else _shuffled(emit, words, lanes)
            emit.store(builder.bitcast(row, kind), places[first + n])


def _rounded(emit: Emit, value: Value) -> Value:
    """Return the nearest integers, halves to even; numbers that i32 does not hold become the lowest one."""
    kinds = VECTOR, INTS, ir.IntType(16), I32
    function = emit.function("llvm.x86.avx512.mask.cvtps2dq.512", INTS, *kinds)
    current = ir.Constant(I32, 4)  # the rounding mode of the processor
    return emit.builder.call(
        function, [value, ir.Constant(INTS, None), ir.Constant(ir.IntType(16), -1), current]
    )


def _packed(emit: Emit, vectors: Sequence[Value]) -> Value:
    """Narrow four vectors to bytes, with saturation."""
    shorts = emit.function("llvm.x86.avx512.packssdw.512", _SHORTS, INTS, INTS)
    levels = emit.function("llvm.x86.avx512.packuswb.512", _LEVELS, _SHORTS, _SHORTS)
    pairs = [emit.builder.call(shorts, vectors[i : i + 2]) for i in (0, 2)]
    return emit.builder.call(levels, pairs)
