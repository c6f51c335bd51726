"""The best elements of `LANES` columns at once, which are held sorted in memory, and a look at a vector of a row.

What is held are ``kept`` vectors of elements, then as many of indices, i32.
"""

from __future__ import annotations

from functools import partial

from ..codegen import ir
from ..codegen.language import instruction, types
from ..codegen.vectors import F32, I64, INTS, LANES, VECTOR, Emit, Load, Value, splat_bits

__all__ = ["WIDTH", "better_lanes", "hold_best", "order_by_index", "store_held"]

WIDTH = 4 * LANES
"""Bytes of a vector."""
# How many are held in registers: the next of these numbers.
REGISTERS = (1, 4, 8)
_MASK = ir.VectorType(ir.I1, LANES)
_NO_LANES = ir.Constant(_MASK, [0] * LANES)


def _bits(emit: Emit, mask: Value) -> Value:
    return emit.builder.zext(emit.builder.bitcast(mask, ir.IntType(LANES)), I64)


def _better(emit: Emit, largest: bool, x: Value, other: Value) -> Value:
    """Return where ``x`` is better, or one of both is NaN."""
    return emit.builder.fcmp_unordered(">" if largest else "<", x, other)


@instruction(*[types.int64] * 7, returns=types.int64)
def hold_best(
    emit: Emit, x: Value, stride: Value, length: Value, count: Value, held: Value, kept: Value, largest: Value
) -> Value:  # fmt: skip
    """Hold the best of ``length`` vectors, ``stride`` bytes apart, of which ``count`` lanes are read; return where NaN was."""
    builder = emit.builder

    def in_registers(width: int, largest: bool, load: Load) -> list[Value]:
        """Hold ``width``, of which the best ``kept`` are stored; every vector is inserted."""
        nothing = [emit.constant(float("nan"))] * width + [splat_bits(0)] * width
        with emit.loop(length, [x, splat_bits(0), _NO_LANES, *nothing]) as (_, now, following):
            at, index, is_nan, *found = now
            value = load(at)
            is_nan = builder.or_(is_nan, builder.fcmp_unordered("uno", value, value))
            following += [emit.at(at, stride), builder.add(index, splat_bits(1)), is_nan]
            following += _inserted(emit, value, index, found, largest)
        for place, vector in enumerate(following[3:]):
            slot = place % width
            with builder.if_then(builder.icmp_signed(">", kept, emit.i64(slot))):
                skipped = emit.i64(slot) if place < width else builder.add(kept, emit.i64(slot))
                emit.store(vector, emit.at(held, builder.mul(skipped, emit.i64(WIDTH))))
        return [_bits(emit, following[2])]

    def go(largest: bool, load: Load, widths: tuple[int, ...] = REGISTERS) -> list[Value]:
        if not widths:
            return several(largest, load)
        fits = builder.icmp_signed("<=", kept, emit.i64(widths[0]))
        return emit.if_else(
            fits, partial(in_registers, widths[0], largest, load), partial(go, largest, load, widths[1:])
        )

    def several(largest: bool, load: Load) -> list[Value]:
        with emit.loop(kept, [held]) as (_, (place,), following):
            emit.store(emit.constant(float("nan")), place)  # anything is better
            following.append(emit.at(place, WIDTH))
        worst = emit.at(following[0], -WIDTH)
        start = [x, splat_bits(0), _NO_LANES]
        with emit.loop(length, start) as (_, (at, index, is_nan), following):
            value = load(at)
            is_better = _better(emit, largest, value, emit.load(worst))
            some = builder.icmp_unsigned("!=", _bits(emit, is_better), emit.i64(0))
            with builder.if_then(some):
                _insert(emit, value, index, held, kept, largest)
            is_nan = builder.or_(is_nan, builder.fcmp_unordered("uno", value, value))
            following += [emit.at(at, stride), builder.add(index, splat_bits(1)), is_nan]
        return [_bits(emit, following[2])]

    def either(load: Load) -> list[Value]:
        is_largest = builder.icmp_signed("!=", largest, emit.i64(0))
        return emit.if_else(is_largest, partial(go, True, load), partial(go, False, load))

    is_whole = builder.icmp_signed(">=", count, emit.i64(LANES))
    return emit.if_else(
        is_whole, lambda: either(emit.load), lambda: either(emit.masked_access(count)[0])
    )[0]  # fmt: skip


def _inserted(emit: Emit, value: Value, index: Value, found: list[Value], largest: bool) -> list[Value]:
    """Return sorted vectors, and then their indices, with one more, and without the last."""
    count = len(found) // 2
    vectors, numbers = found[:count], found[count:]
    is_better = [_better(emit, largest, value, old) for old in vectors]

    def shifted(new: Value, held: list[Value]) -> list[Value]:
        select = emit.builder.select
        before = [new, *map(select, is_better, held, [new] * count)]  # the one before, where that moves
        return [*map(select, is_better, before, held)]

    return shifted(value, vectors) + shifted(index, numbers)


def _insert(emit: Emit, value: Value, index: Value, held: Value, kept: Value, largest: bool) -> None:
    """Insert a vector behind what is not worse, lane by lane: from there on, each takes the place of the next.

    What is held is sorted, so each lane is compared with the new one, and none waits for those before it.
    """
    builder, indices = emit.builder, emit.builder.mul(kept, emit.i64(WIDTH))
    with emit.loop(kept, [held, value, index, _NO_LANES]) as (_, (place, before, number, moved), following):
        at = emit.at(place, indices)
        old, old_number = emit.load(place), emit.load(at, INTS)
        is_better = _better(emit, largest, value, old)
        new, new_number = builder.select(moved, before, value), builder.select(moved, number, index)
        emit.store(builder.select(is_better, new, old), place)
        emit.store(builder.select(is_better, new_number, old_number), at)
        following += [emit.at(place, WIDTH), old, old_number, is_better]


@instruction(*[types.int64] * 2)
def order_by_index(emit: Emit, held: Value, kept: Value) -> None:
    """Sort what is held by indices, lane by lane, by exchanges of neighbours: there are few."""
    builder, indices = emit.builder, emit.builder.mul(kept, emit.i64(WIDTH))
    pairs = builder.sub(kept, emit.i64(1))
    with emit.loop(pairs), emit.loop(pairs, [held]) as (_, (place,), following):
        at = emit.at(place, indices)
        first, second = emit.load(at, INTS), emit.load(emit.at(at, WIDTH), INTS)
        is_later = builder.icmp_signed(">", first, second)
        _exchange(emit, is_later, at, first, second)
        _exchange(emit, is_later, place, emit.load(place), emit.load(emit.at(place, WIDTH)))
        following.append(emit.at(place, WIDTH))


def _exchange(emit: Emit, where: Value, place: Value, first: Value, second: Value) -> None:
    emit.store(emit.builder.select(where, second, first), place)
    emit.store(emit.builder.select(where, first, second), emit.at(place, WIDTH))


@instruction(*[types.int64] * 7)
def store_held(
    emit: Emit, held: Value, kept: Value, values: Value, indices: Value, apart: Value, count: Value, size: Value
) -> None:  # fmt: skip
    """Store ``count`` lanes of what is held as rows, ``apart`` elements from each other; indices have ``size`` bytes."""
    builder, (_, store) = emit.builder, emit.masked_access(count)
    twice = builder.mul(count, emit.i64(2))
    _, store_low = emit.masked_access(twice)
    _, store_high = emit.masked_access(builder.sub(twice, emit.i64(LANES)))
    with emit.loop(kept, [held, values, indices]) as (_, (place, value, index), following):
        store(emit.load(place), value)
        found = emit.load(emit.at(place, builder.mul(kept, emit.i64(WIDTH))), INTS)

        def narrow(found: Value = found, index: Value = index) -> None:
            store(builder.bitcast(found, VECTOR), index)

        def wide(found: Value = found, index: Value = index) -> None:
            words = builder.sext(found, ir.VectorType(I64, LANES))
            both = builder.bitcast(words, ir.VectorType(F32, 2 * LANES))
            low, high = (
                builder.shuffle_vector(both, both, ir.Constant(INTS, list(range(first, first + LANES))))
                for first in (0, LANES)
            )
            store_low(low, index)
            store_high(high, emit.at(index, WIDTH))

        emit.switch(size, {4: narrow, 8: wide})
        following += [
            emit.at(place, WIDTH),
            emit.at(value, builder.mul(apart, emit.i64(4))),
            emit.at(index, builder.mul(apart, size)),
        ]


@instruction(types.int64, types.float32, types.int64, returns=types.int64)
def better_lanes(emit: Emit, x: Value, worst: Value, largest: Value) -> Value:
    """Return a bit for each element of a vector that is better than a number, or NaN."""
    value, other = emit.load(x), emit.splat(worst)
    found = (_bits(emit, _better(emit, is_largest, value, other)) for is_largest in (True, False))
    return emit.builder.select(emit.builder.icmp_signed("!=", largest, emit.i64(0)), *found)
