"""Winograd transforms of levels, F(4x4, 3x3), in integers (Lavin and Gray 2016, arXiv:1509.09308).

Filters are transformed without the denominators of the transform, so transformed levels and weights are integers of 16 bits,
and results are 24 * 24 times as large. Sums may wrap around: they are exact modulo 2^32, and the results of a division by 9
and by 64 are exact modulo 2^26, where all sums of the layer have room.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ..codegen.language import instruction, types
from ..codegen.levels import LEVEL_SIZE, dot_pairs, load_levels, store_levels, to_levels
from ..codegen.vectors import I32, INTS, LANES, VECTOR, Emit, Value
from ._gemm_tile import WIDE, WIDE_ROWS
from ._int8_tile import bounds_at, emit_even_tiles
from ._winograd_transforms import TILE_ELEMENTS

__all__ = ["COLUMNS", "SUM_BITS", "multiply_tiles", "transform_levels", "transform_sums"]

COLUMNS = LANES * WIDE
"""Output channels of a panel."""
SUM_BITS = 26
"""Bits of the sums of a layer, with their sign."""

_LINE = 64  # bytes of a cache line
_LEVELS = ir.VectorType(ir.IntType(8 * LEVEL_SIZE), 2 * LANES)
_SHORTS = ir.VectorType(ir.IntType(16), 2 * LANES)
# The inverse of 9 modulo 2^32.
_NINTH = pow(9, -1, 1 << 32)


def _shifted(emit: Emit, x: Value, bits: int) -> Value:
    return emit.builder.shl(x, ir.Constant(x.type, [bits] * x.type.count))


def _input_transform(emit: Emit, d: Sequence[Value]) -> list[Value]:
    add, sub = emit.builder.add, emit.builder.sub
    even, odd = sub(d[4], _shifted(emit, d[2], 2)), sub(d[3], _shifted(emit, d[1], 2))
    wide, narrow = sub(d[4], d[2]), _shifted(emit, sub(d[3], d[1]), 1)
    return [
        add(_shifted(emit, sub(d[0], d[2]), 2), wide),
        add(even, odd),
        sub(even, odd),
        add(wide, narrow),
        sub(wide, narrow),
        sub(sub(d[5], d[3]), _shifted(emit, narrow, 1)),
    ]


def _output_transform(emit: Emit, m: Sequence[Value]) -> list[Value]:
    """Return 24 times the results; sums were multiplied by 4, 6, 6, 24, 24 and 1."""
    add, sub = emit.builder.add, emit.builder.sub
    near, far = _shifted(emit, add(m[1], m[2]), 2), add(m[3], m[4])
    across, along = _shifted(emit, sub(m[1], m[2]), 2), _shifted(emit, sub(m[3], m[4]), 1)
    first, last = (_shifted(emit, add(x, _shifted(emit, x, 1)), n) for x, n in ((m[0], 1), (m[5], 3)))
    return [
        add(first, add(near, far)),
        add(across, along),
        add(near, _shifted(emit, far, 2)),
        add(add(across, _shifted(emit, along, 2)), last),
    ]


@instruction(*[types.int64] * 6)
def transform_levels(
    emit: Emit, x: Value, line: Value, pixel: Value, pairs: Value, out: Value, apart: Value
) -> None:  # fmt: skip
    """Transform a tile of levels.

    Args:
        emit: the emitter.
        x: its first pixel.
        line: bytes between its rows.
        pixel: bytes between its columns.
        pairs: pairs of vectors of channels.
        out: the first of the transformed elements, which are i16.
        apart: bytes between them.
    """
    builder = emit.builder
    rows = [emit.at(x, builder.mul(line, emit.i64(a))) for a in range(6)]
    columns = [builder.mul(pixel, emit.i64(b)) for b in range(6)]
    with emit.loop(pairs) as (i, _, _following):
        offset = builder.mul(i, emit.i64(2 * LANES * LEVEL_SIZE))
        done = []
        for column in columns:
            places = [emit.at(emit.at(row, column), offset) for row in rows]
            levels = [emit.load(place, _LEVELS) for place in places]
            done.append(_input_transform(emit, [builder.zext(each, _SHORTS) for each in levels]))
        target = emit.at(out, builder.mul(i, emit.i64(4 * LANES)))
        for a in range(6):
            for b, value in enumerate(_input_transform(emit, [column[a] for column in done])):
                emit.store(value, emit.at(target, builder.mul(apart, emit.i64(6 * a + b))))


@instruction(*[types.int64] * 6)
def multiply_tiles(
    emit: Emit, count: Value, x: Value, step: Value, depth: Value, panel: Value, out: Value
) -> None:  # fmt: skip
    """Multiply one element of some tiles by a panel, and prefetch the next one.

    Args:
        emit: the emitter.
        count: of tiles.
        x: the element of the first tile.
        step: bytes between tiles.
        depth: pairs of channels.
        panel: the packed weights, `COLUMNS` pairs for each pair of channels.
        out: the sums, `COLUMNS` i32 for each tile.
    """
    builder = emit.builder

    def tile(rows: int, addresses: list[Value]) -> list[Value]:
        start, target, ahead = addresses
        lines = [emit.at(start, builder.mul(step, emit.i64(i))) for i in range(rows)]
        none = [ir.Constant(INTS, None)] * (rows * WIDE)
        with emit.loop(depth, [panel, ahead, *none]) as (k, (place, line, *sums), after):
            emit.prefetch(line)
            weights = [emit.load(emit.at(place, 4 * LANES * j), INTS) for j in range(WIDE)]
            along = builder.mul(k, emit.i64(4))
            for i in range(rows):
                pair = emit.splat_word(emit.load(emit.at(lines[i], along), I32))
                for j in range(WIDE):
                    sums[i * WIDE + j] = dot_pairs(emit, sums[i * WIDE + j], pair, weights[j])
            after += [emit.at(place, 4 * COLUMNS), emit.at(line, _LINE), *sums]
        for n, total in enumerate(after[2:]):
            emit.store(total, emit.at(target, 4 * LANES * n))
        following = emit.at(start, builder.mul(step, emit.i64(rows)))
        return [following, emit.at(target, 4 * COLUMNS * rows), after[1]]

    ahead = emit.at(panel, builder.mul(depth, emit.i64(4 * COLUMNS)))
    emit_even_tiles(emit, WIDE_ROWS, count, [x, out, ahead], tile)


@instruction(*[types.int64] * 11)
def transform_sums(  # noqa: PLR0913 (values in registers)
    emit: Emit, x: Value, apart: Value, out: Value, line: Value, pixel: Value, other: Value, other_line: Value,
    other_pixel: Value, scale: Value, bias: Value, bounds: Value,
) -> None:  # fmt: skip
    """Transform the sums of a tile, requantize them, and store `COLUMNS` levels of each pixel.

    Args:
        emit: the emitter.
        x: the first of its elements.
        apart: bytes between those.
        out: the first pixel of the result.
        line: bytes between rows of the result.
        pixel: bytes between columns of the result.
        other: the first pixel of the residual, or 0.
        other_line: bytes between rows of the residual.
        other_pixel: bytes between columns of the residual.
        scale: a factor for each column.
        bias: is added to each column.
        bounds: `LevelBounds`.
    """
    builder = emit.builder
    with emit.loop(emit.i64(WIDE)) as (j, _, _following):
        offset, at = (builder.mul(j, emit.i64(size * LANES)) for size in (4, LEVEL_SIZE))
        elements = [
            emit.at(emit.at(x, builder.mul(apart, emit.i64(n))), offset) for n in range(TILE_ELEMENTS)
        ]
        columns = [
            _output_transform(emit, [emit.load(place, INTS) for place in elements[b::6]]) for b in range(6)
        ]
        sums = [total for a in range(4) for total in _output_transform(emit, [each[a] for each in columns])]
        factors = [emit.load(emit.at(place, offset)) for place in (scale, bias)]
        values = [emit.fma(builder.sitofp(_divided(emit, total), VECTOR), *factors) for total in sums]

        def pixels(start: Value, across: Value, down: Value, at: Value = at) -> list[Value]:
            start = emit.at(start, at)
            rows = [emit.at(start, builder.mul(down, emit.i64(a))) for a in range(4)]
            return [emit.at(row, builder.mul(across, emit.i64(b))) for row in rows for b in range(4)]

        def added(values: list[Value] = values) -> list[Value]:
            held, found = bounds_at(emit, bounds), []
            for value, place in zip(values, pixels(other, other_pixel, other_line), strict=True):
                first = to_levels(emit, value, held[0], held[1])
                residual = emit.fma(load_levels(emit, place), held[3], held[4])
                found.append(to_levels(emit, emit.fma(first, held[2], residual), held[5], held[6]))
            return found

        def plain(values: list[Value] = values) -> list[Value]:
            low, high, *_ = bounds_at(emit, bounds)
            return [to_levels(emit, value, low, high) for value in values]

        levels = emit.if_else(builder.icmp_signed("!=", other, emit.i64(0)), added, plain)
        for level, place in zip(levels, pixels(out, pixel, line), strict=True):
            store_levels(emit, level, place)


def _divided(emit: Emit, total: Value) -> Value:
    """Divide by 24 * 24: by 9 with its inverse, then by 64."""
    ninth = emit.builder.mul(total, ir.Constant(INTS, [_NINTH] * LANES))
    return emit.builder.ashr(ninth, ir.Constant(INTS, [32 - SUM_BITS] * LANES))
