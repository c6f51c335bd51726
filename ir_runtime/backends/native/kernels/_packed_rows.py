"""Rows of a cache in 8 bits: packing, unpacking, dot products and weighted sums (see `ir.quantized_cache`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....ir.quantized_cache import PREFIX
from ..codegen import ir
from ..codegen.language import instruction, types
from ..codegen.vectors import F32, I32, INTS, LANES, VECTOR, Emit, Value

__all__ = ["add_weighted_packed", "dot_packed", "pack_row", "unpack_row"]

_CODES = ir.VectorType(ir.I8, LANES)
_MOST = 255.0


@instruction(*[types.int64] * 3)
def pack_row(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Pack a row of ``count`` numbers."""
    builder = emit.builder
    low, high, wrong = _extremes(emit, x, count)
    scale = builder.fdiv(builder.fsub(high, low), ir.Constant(F32, _MOST))
    _store(emit, scale, out)
    # A scale that is no number makes the row NaN: its difference from itself is NaN.
    _store(emit, builder.fadd(builder.fadd(low, wrong), builder.fsub(scale, scale)), emit.at(out, 4))
    is_usable = builder.and_(
        builder.fcmp_ordered(">", scale, ir.Constant(F32, 0.0)),
        builder.fcmp_ordered("<", builder.fadd(scale, wrong), ir.Constant(F32, float("inf"))),
    )
    kept = emit.splat(builder.sext(is_usable, I32))
    first, step = emit.splat(low), emit.splat(builder.select(is_usable, scale, ir.Constant(F32, 1.0)))
    codes = emit.at(out, PREFIX)

    def body(done: Value, mask: Value | None) -> None:
        found = _numbers(emit, emit.at(x, builder.mul(done, emit.i64(4))), mask)
        found = emit.round(builder.fdiv(emit.subtract(found, first), step))
        found = builder.bitcast(emit.minimum(found, emit.constant(_MOST)), INTS)
        found = builder.fptosi(builder.bitcast(builder.and_(found, kept), VECTOR), INTS)
        _store_codes(emit, builder.trunc(found, _CODES), emit.at(codes, done), mask)

    _each_vector(emit, count, body)


@instruction(*[types.int64] * 3)
def unpack_row(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Unpack a row of ``count`` numbers."""
    scale, low = (emit.splat(side) for side in _sides(emit, x))

    def body(done: Value, mask: Value | None) -> None:
        found = emit.add(emit.multiply(_codes(emit, emit.at(emit.at(x, PREFIX), done), mask), scale), low)
        place = emit.at(out, emit.builder.mul(done, emit.i64(4)))
        if mask is None:
            emit.store(found, place)
        else:
            emit.masked_store(found, place, mask)

    _each_vector(emit, count, body)


@instruction(*[types.int64] * 6, types.float32)
def dot_packed(
    emit: Emit, x: Value, y: Value, stride: Value, rows: Value, count: Value, out: Value, total: Value
) -> None:  # fmt: skip
    """Compute the dot products of a row, whose numbers sum up to ``total``, with packed rows ``stride`` bytes apart."""
    builder = emit.builder
    at_once = 4

    def of(rows_here: int, start: Value, target: Value) -> None:
        places = [emit.at(start, builder.mul(stride, emit.i64(r))) for r in range(rows_here)]
        sums = [emit.constant(0)] * rows_here

        def body(done: Value, mask: Value | None, sums: Sequence[Value]) -> list[Value]:
            factor = _numbers(emit, emit.at(x, builder.mul(done, emit.i64(4))), mask)
            others = (_codes(emit, emit.at(emit.at(place, PREFIX), done), mask) for place in places)
            return [emit.fma(factor, other, sum) for other, sum in zip(others, sums, strict=True)]

        for r, (place, sum) in enumerate(zip(places, _reduced(emit, count, sums, body), strict=True)):
            scale, low = _sides(emit, place)
            found = builder.fadd(builder.fmul(emit.reduce_add(sum), scale), builder.fmul(total, low))
            emit.store(found, emit.at(target, 4 * r))

    many = builder.sdiv(rows, emit.i64(at_once))
    with emit.loop(many, [y, out]) as (_, (start, target), following):
        of(at_once, start, target)
        following += [emit.at(start, builder.mul(stride, emit.i64(at_once))), emit.at(target, 4 * at_once)]
    left = builder.sub(rows, builder.mul(many, emit.i64(at_once)))
    with emit.loop(left, list(following)) as (_, (start, target), after):
        of(1, start, target)
        after += [emit.at(start, stride), emit.at(target, 4)]


@instruction(*[types.int64] * 6)
def add_weighted_packed(
    emit: Emit, weights: Value, y: Value, stride: Value, rows: Value, count: Value, out: Value
) -> None:
    """Add the weighted sum of ``rows`` packed rows, which are ``stride`` bytes apart, to ``out``."""
    builder = emit.builder

    def block(vectors: int, done: Value, mask: Value | None) -> None:
        target = emit.at(out, builder.mul(done, emit.i64(4)))
        places = [emit.at(target, 4 * LANES * j) for j in range(vectors)]
        now = [y, weights, ir.Constant(F32, 0.0), *(_numbers(emit, place, mask) for place in places)]
        with emit.loop(rows, now) as (_, (at, weight, lows, *sums), following):
            scale, low = _sides(emit, at)
            number = emit.load(weight, F32)
            factor = emit.splat(builder.fmul(number, scale))
            codes = emit.at(emit.at(at, PREFIX), done)
            following += [
                emit.at(at, stride),
                emit.at(weight, 4),
                builder.fadd(lows, builder.fmul(number, low)),
            ]
            following += [
                emit.fma(factor, _codes(emit, emit.at(codes, LANES * j), mask), sum)
                for j, sum in enumerate(sums)
            ]
        lowest = emit.splat(following[2])
        for place, sum in zip(places, following[3:], strict=True):
            found = emit.add(sum, lowest)
            if mask is None:
                emit.store(found, place)
            else:
                emit.masked_store(found, place, mask)

    wide = 8
    many = builder.sdiv(count, emit.i64(wide * LANES))
    with emit.loop(many) as (i, _, _following):
        block(wide, builder.mul(i, emit.i64(wide * LANES)), None)
    first = builder.mul(many, emit.i64(wide * LANES))
    whole = builder.sdiv(builder.sub(count, first), emit.i64(LANES))
    half = builder.sdiv(whole, emit.i64(4))
    with emit.loop(half) as (i, _, _following):
        block(4, builder.add(first, builder.mul(i, emit.i64(4 * LANES))), None)
    first = builder.add(first, builder.mul(half, emit.i64(4 * LANES)))
    whole = builder.sub(whole, builder.mul(half, emit.i64(4)))
    with emit.loop(whole) as (i, _, _following):
        block(1, builder.add(first, builder.mul(i, emit.i64(LANES))), None)
    first = builder.add(first, builder.mul(whole, emit.i64(LANES)))
    rest = builder.sub(count, first)
    with builder.if_then(builder.icmp_signed(">", rest, emit.i64(0))):
        block(1, first, emit.lane_mask(rest))


def _each_vector(emit: Emit, count: Value, body: Callable[[Value, Value | None], None]) -> None:
    """Call ``body`` with the numbers that are done, and a mask at the end."""

    def step(done: Value, mask: Value | None, none: Sequence[Value]) -> list[Value]:
        body(done, mask)
        return []

    _reduced(emit, count, [], step)


def _reduced(
    emit: Emit, count: Value, start: Sequence[Value],
    step: Callable[[Value, Value | None, Sequence[Value]], list[Value]],
) -> list[Value]:  # fmt: skip
    """Return what ``step`` makes of values, vector by vector; the last one has a mask."""
    builder = emit.builder
    whole = builder.sdiv(count, emit.i64(LANES))
    with emit.loop(whole, start) as (i, now, following):
        following += step(builder.mul(i, emit.i64(LANES)), None, now)
    done = builder.mul(whole, emit.i64(LANES))
    rest = builder.sub(count, done)
    return emit.if_else(
        builder.icmp_signed(">", rest, emit.i64(0)),
        lambda: step(done, emit.lane_mask(rest), following),
        lambda: following,
    )


def _extremes(emit: Emit, x: Value, count: Value) -> tuple[Value, Value, Value]:
    """Return the smallest and the largest number of a row, and 0, or NaN where one is not finite."""
    builder = emit.builder

    def smaller(a: Value, b: Value) -> Value:
        return builder.select(builder.fcmp_ordered("<", b, a), b, a)

    def larger(a: Value, b: Value) -> Value:
        return builder.select(builder.fcmp_ordered(">", b, a), b, a)

    def step(done: Value, mask: Value | None, now: Sequence[Value]) -> list[Value]:
        found = _numbers(emit, emit.at(x, builder.mul(done, emit.i64(4))), mask)
        low, high = smaller(now[0], found), larger(now[1], found)
        if mask is not None:
            low, high = builder.select(mask, low, now[0]), builder.select(mask, high, now[1])
        return [low, high, emit.fma(found, emit.constant(0), now[2])]

    start = [emit.constant(float("inf")), emit.constant(float("-inf")), emit.constant(0)]
    low, high, wrong = _reduced(emit, count, start, step)
    return emit.reduce(low, smaller), emit.reduce(high, larger), emit.reduce_add(wrong)


def _numbers(emit: Emit, address: Value, mask: Value | None) -> Value:
    return emit.load(address) if mask is None else emit.masked_load(address, mask)


def _codes(emit: Emit, address: Value, mask: Value | None) -> Value:
    """Return a vector of codes as f32; 0 where the mask is not set."""
    codes = emit.load(address, _CODES, 1) if mask is None else emit.masked_load(address, mask, _CODES, 1)
    return emit.builder.sitofp(emit.builder.zext(codes, INTS), VECTOR)


def _store_codes(emit: Emit, codes: Value, address: Value, mask: Value | None) -> None:
    if mask is None:
        emit.store(codes, address, 1)
    else:
        emit.masked_store(codes, address, mask, 1)


def _sides(emit: Emit, row: Value) -> tuple[Value, Value]:
    """Return the scale and the lowest number of a packed row."""
    return emit.load(row, F32, 1), emit.load(emit.at(row, 4), F32, 1)


def _store(emit: Emit, number: Value, address: Value) -> None:
    """Store an f32, which need not be aligned."""
    emit.store(number, address, 1)
