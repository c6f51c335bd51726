"""Winograd transforms of F(4x4, 3x3), for input tiles and output tiles."""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.language import instruction, types
from ..codegen.vectors import I64, LANES, Emit, Value

__all__ = ["TILE_ELEMENTS", "transform_input", "transform_output"]

TILE_ELEMENTS = 36
"""Elements of a tile."""


def _input_transform(emit: Emit, d: Sequence[Value]) -> list[Value]:
    four, five, two = emit.constant(-4), emit.constant(-5), emit.constant(2)
    even, odd = emit.fma(d[2], four, d[4]), emit.fma(d[1], four, d[3])
    wide, narrow = emit.subtract(d[4], d[2]), emit.multiply(emit.subtract(d[3], d[1]), two)
    return [
        emit.fma(d[0], emit.constant(4), emit.fma(d[2], five, d[4])),
        emit.add(even, odd),
        emit.subtract(even, odd),
        emit.add(wide, narrow),
        emit.subtract(wide, narrow),
        emit.fma(d[1], emit.constant(4), emit.fma(d[3], five, d[5])),
    ]


def _output_transform(emit: Emit, m: Sequence[Value]) -> list[Value]:
    near, far = emit.add(m[1], m[2]), emit.add(m[3], m[4])
    across, along = emit.subtract(m[1], m[2]), emit.subtract(m[3], m[4])
    return [
        emit.add(m[0], emit.add(near, far)),
        emit.fma(along, emit.constant(2), across),
        emit.fma(far, emit.constant(4), near),
        emit.add(emit.fma(along, emit.constant(8), across), m[5]),
    ]


@instruction(*[types.int64] * 4)
def transform_input(emit: Emit, places: Value, count: Value, out: Value, apart: Value) -> None:
    """Transform ``count`` vectors of an input tile; ``places`` is a table of element addresses."""
    builder = emit.builder
    addresses = [emit.load(emit.at(places, 8 * i), I64) for i in range(TILE_ELEMENTS)]
    with emit.loop(count) as (i, _, _following):
        offset = builder.mul(i, emit.i64(4 * LANES))
        data = [emit.load(emit.at(address, offset)) for address in addresses]
        columns = [_input_transform(emit, data[j::6]) for j in range(6)]
        for a in range(6):
            for b, value in enumerate(_input_transform(emit, [column[a] for column in columns])):
                place = builder.mul(apart, emit.i64(6 * a + b))
                emit.store(value, emit.at(emit.at(out, place), offset))


@instruction(*[types.int64] * 7, types.float32, types.float32)
def transform_output(  # noqa: PLR0913 (values in registers)
    emit: Emit, x: Value, apart: Value, places: Value, others: Value, bias: Value, count: Value, check: Value,
    low: Value, high: Value,
) -> None:  # fmt: skip
    """Transform ``count`` vectors of an output tile, and store the results at the addresses in a table.

    ``others`` is a table of residual addresses, or 0. Stores 0 at ``check``, or NaN if a result is not
    finite.
    """
    builder = emit.builder
    bounds = emit.splat(low), emit.splat(high)
    with emit.loop(count, [emit.constant(0)]) as (i, (odd,), following):
        offset = builder.mul(i, emit.i64(4 * LANES))
        data = [
            emit.load(emit.at(emit.at(x, builder.mul(apart, emit.i64(n))), offset))
            for n in range(TILE_ELEMENTS)
        ]
        columns = [_output_transform(emit, data[j::6]) for j in range(6)]
        shift = emit.load(emit.at(bias, offset))
        found = [v for a in range(4) for v in _output_transform(emit, [column[a] for column in columns])]
        for value in found:
            odd = emit.fma(value, emit.constant(0), odd)
        found = [emit.add(value, shift) for value in found]
        following.append(odd)

        def place(table: Value, n: int) -> Value:
            return emit.at(emit.load(emit.at(table, 8 * n), I64), offset)

        def added() -> list[Value]:
            return [emit.add(value, emit.load(place(others, n))) for n, value in enumerate(found)]

        summed = builder.icmp_signed("!=", others, emit.i64(0))
        for n, value in enumerate(emit.if_else(summed, added, lambda: found)):
            kept = emit.minimum(emit.maximum(value, bounds[0]), bounds[1])
            emit.store(kept, place(places, n))
    emit.store(emit.reduce_add(following[0]), check)
