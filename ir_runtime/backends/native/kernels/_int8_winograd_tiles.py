"""Winograd transforms of levels, F(4x4, 3x3), in integers (Lavin and Gray 2016, arXiv:1509.09308).

Filters are transformed without the denominators of the transform, so transformed levels and weights are integers of 16 bits,
and results are 24 * 24 times as large. Sums may wrap around: they are exact modulo 2^32, and the results of a division by 9
and by 64 are exact modulo 2^26, where all sums of the layer have room.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen import ir
from ..codegen.language import instruction, types
from ..codegen.levels import LEVEL_SIZE, dot_pairs, load_levels, to_levels
from ..codegen.vectors import I32, INTS, LANES, VECTOR, Emit, Value
from ._gemm_tile import WIDE, WIDE_ROWS
from ._int8_rows import store_rows
from ._int8_tile import bounds_at, emit_even_tiles
from ._winograd_transforms import TILE_ELEMENTS

__all__ = ["COLUMNS", "FILTER_FACTORS", "SUM_BITS", "multiply_tiles", "transform_levels", "transform_sums"]

COLUMNS = LANES * WIDE
"""Output channels of a panel."""
SUM_BITS = 26
"""Bits of the sums of a layer, with their sign."""

_LINE = 64  # bytes of a cache line
_LEVELS = ir.VectorType(ir.IntType(8 * LEVEL_SIZE), 2 * LANES)
_SHORTS = ir.VectorType(ir.IntType(16), 2 * LANES)
# What elements of a filter are multiplied by beyond their denominators, so that the output transform adds rather than multiplies.
FILTER_FACTORS = 6, 4, 4, 1, 1, 12
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
    """Return 24 times the results; `FILTER_FACTORS` are in the sums."""
    add, sub = emit.builder.add, emit.builder.sub
    near, far, across = add(m[1], m[2]), add(m[3], m[4]), sub(m[1], m[2])
    along = _shifted(emit, sub(m[3], m[4]), 1)
    return [
        add(add(m[0], near), far),
        add(across, along),
        add(near, _shifted(emit, far, 2)),
        add(across, _shifted(emit, add(m[5], _shifted(emit, along, 1)), 1)),
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
        out: the sums of the first tile, `COLUMNS` i32 for each element of each tile.
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
                pair = emit.splat(emit.load(emit.at(lines[i], along), I32))
                for j in range(WIDE):
                    sums[i * WIDE + j] = dot_pairs(emit, sums[i * WIDE + j], pair, weights[j])
            after += [emit.at(place, 4 * COLUMNS), emit.at(line, _LINE), *sums]
        for n, total in enumerate(after[2:]):
            row = emit.at(target, TILE_ELEMENTS * 4 * COLUMNS * (n // WIDE))
            emit.store(total, emit.at(row, 4 * LANES * (n % WIDE)))
        following = emit.at(start, builder.mul(step, emit.i64(rows)))
        return [following, emit.at(target, TILE_ELEMENTS * 4 * COLUMNS * rows), after[1]]

    ahead = emit.at(panel, builder.mul(depth, emit.i64(4 * COLUMNS)))
    emit_even_tiles(emit, WIDE_ROWS, count, [x, out, ahead], tile)


@instruction(*[types.int64] * 10)
def transform_sums(  # noqa: PLR0913 (values in registers)
    emit: Emit, x: Value, out: Value, line: Value, pixel: Value, other: Value, other_line: Value,
    other_pixel: Value, scale: Value, bias: Value, bounds: Value,
) -> None:  # fmt: skip
    """Transform the sums of a tile, requantize them, and store `COLUMNS` levels of each pixel.

    Args:
        emit: the emitter.
        x: the first of its elements.
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
    builder, held = emit.builder, bounds_at(emit, bounds)
    with builder.if_else(builder.icmp_signed("!=", other, emit.i64(0))) as branches:
        for branch, (low, high), has_other in zip(
            branches, (held[5:7], held[:2]), (True, False), strict=True
        ):
            with branch, emit.loop(emit.i64(WIDE)) as (j, _, _following):
                offset, at = (builder.mul(j, emit.i64(size * LANES)) for size in (4, LEVEL_SIZE))
                factors = [emit.load(emit.at(place, offset)) for place in (scale, bias)]
                for a, totals in enumerate(_results(emit, emit.at(x, offset))):
                    values = [
                        emit.fma(builder.sitofp(_divided(emit, each), VECTOR), *factors) for each in totals
                    ]
                    if has_other:
                        others = _row_pixels(emit, emit.at(other, at), other_line, other_pixel, a)
                        values = [_added(emit, *each, held) for each in zip(values, others, strict=True)]
                    places = _row_pixels(emit, emit.at(out, at), line, pixel, a)
                    store_rows(emit, values, places, low, high)


def _results(emit: Emit, x: Value) -> list[list[Value]]:
    """Return the rows of results of a tile, for one vector of columns."""
    elements = [emit.load(emit.at(x, 4 * COLUMNS * n), INTS) for n in range(TILE_ELEMENTS)]
    columns = [_output_transform(emit, elements[b::6]) for b in range(6)]
    return [_output_transform(emit, [column[a] for column in columns]) for a in range(4)]


def _row_pixels(emit: Emit, start: Value, line: Value, pixel: Value, row: int) -> list[Value]:
    """Return the addresses of the pixels of a row of a tile."""
    first = emit.at(start, emit.builder.mul(line, emit.i64(row)))
    return [emit.at(first, emit.builder.mul(pixel, emit.i64(b))) for b in range(4)]


def _added(emit: Emit, value: Value, place: Value, bounds: Sequence[Value]) -> Value:
    """Return the sum of a result and the levels of the residual at an address, before it is rounded."""
    residual = emit.fma(load_levels(emit, place), bounds[3], bounds[4])
    return emit.fma(to_levels(emit, value, bounds[0], bounds[1]), bounds[2], residual)


def _divided(emit: Emit, total: Value) -> Value:
    """Divide by 24 * 24: by 9 with its inverse, then by 64."""
    ninth = emit.builder.mul(total, ir.Constant(INTS, [_NINTH] * LANES))
    return emit.builder.ashr(ninth, ir.Constant(INTS, [32 - SUM_BITS] * LANES))
