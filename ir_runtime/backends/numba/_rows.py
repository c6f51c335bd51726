"""Work on rows of numbers: their largest, their sums, exponentials, products with each other, and turning them.

Sums have several accumulators. What follows goes over a row that is in the first cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ._curves import exponential
from ._language import instruction, types
from ._vectors import F32, I32, LANES, VECTOR, Emit

__all__ = [
    "centred", "copied", "dots", "mixed", "root", "scaled", "shifted", "softened", "squares", "total", "turned",
]  # fmt: skip

Value = Any
# Accumulators of a sum.
CHAINS = 4


def _fold(
    emit: Emit, count: Value, start: float, step: Callable[[Value, Value, Callable[..., Value], Callable[..., None]], Value],
    join: Callable[[Value, Value], Value],
) -> Value:  # fmt: skip
    """Go over ``count`` numbers with accumulators; ``step`` gets one, an offset in bytes, and how to load and store.

    Gives the accumulators as one vector. In the last step, lanes beyond the row keep what they had.
    """
    builder = emit.builder
    none = emit.constant(start)
    block = CHAINS * LANES
    many = builder.sdiv(count, emit.number(block))
    with emit.loop(many, [emit.number(0), *[none] * CHAINS]) as (_, (offset, *now), following):
        made = [
            step(total, emit.at(offset, 4 * LANES * j), emit.load, emit.store) for j, total in enumerate(now)
        ]
        following += [emit.at(offset, 4 * block), *made]
    offset, total = following[0], following[1]
    for other in following[2:]:
        total = join(total, other)
    left = builder.sub(count, builder.mul(many, emit.number(block)))
    whole = builder.sdiv(left, emit.number(LANES))
    with emit.loop(whole, [offset, total]) as (_, (at, now_one), after):
        after += [emit.at(at, 4 * LANES), step(now_one, at, emit.load, emit.store)]
    offset, total = after
    rest = builder.sub(left, builder.mul(whole, emit.number(LANES)))
    before = builder.block
    with builder.if_then(builder.icmp_signed(">", rest, emit.number(0))):
        mask = emit.first(rest)
        made_last = step(
            total, offset, lambda address: emit.masked_load(address, mask),
            lambda value, address: emit.masked_store(value, address, mask),
        )  # fmt: skip
        kept = builder.select(mask, made_last, total)
        inside = builder.block
    found = builder.phi(VECTOR)
    found.add_incoming(kept, inside)
    found.add_incoming(total, before)
    return found


def _larger(emit: Emit, a: Value, b: Value) -> Value:
    return emit.builder.select(emit.builder.fcmp_ordered(">", b, a), b, a)


@instruction(*[types.int64] * 5, types.float32)
def softened(
    emit: Emit, x: Value, mask: Value, count: Value, out: Value, about: Value, factor: Value
) -> None:
    """``e ** (x * factor + mask - largest)``, and elsewhere their sum and what was the largest.

    Arguments: numbers; what is added to them, or 0; how many; where to put them; where to put sum and
    largest; the factor. A row in which everything is minus infinity becomes NaN, and so does one with NaN.
    """
    builder = emit.builder
    times = emit.splat(factor)
    masked = builder.icmp_signed("!=", mask, emit.number(0))

    def raised(add: bool) -> Value:
        def largest(total: Value, at: Value, load: Callable[..., Value], store: Callable[..., None]) -> Value:
            score = emit.multiply(load(emit.at(x, at)), times)
            if add:
                score = emit.add(score, load(emit.at(mask, at)))
            store(score, emit.at(out, at))
            return _larger(emit, total, score)

        found = _fold(emit, count, float("-inf"), largest, lambda a, b: _larger(emit, a, b))
        return emit._across(found, lambda a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))

    with builder.if_else(masked) as (then, otherwise):
        with then:
            with_mask, first = raised(True), builder.block
        with otherwise:
            without, second = raised(False), builder.block
    most = builder.phi(F32)
    most.add_incoming(with_mask, first)
    most.add_incoming(without, second)
    top = emit.splat(most)

    def power(total: Value, at: Value, load: Callable[..., Value], store: Callable[..., None]) -> Value:
        place = emit.at(out, at)
        found = exponential(emit, emit.subtract(load(place), top))
        store(found, place)
        return emit.add(total, found)

    sum = emit.sum(_fold(emit, count, 0, power, emit.add))
    emit.store(sum, about)
    emit.store(most, emit.at(about, 4))


@instruction(*[types.int64] * 2, types.float32)
def scaled(emit: Emit, out: Value, count: Value, factor: Value) -> None:
    """Multiply numbers in place."""
    times = emit.splat(factor)

    def body(offset: Value, load: Callable[..., Value], store: Callable[..., None]) -> None:
        place = emit.at(out, offset)
        store(emit.multiply(load(place), times), place)

    emit.over(count, body)


@instruction(*[types.int64] * 2, types.float32)
def shifted(emit: Emit, out: Value, count: Value, other: Value) -> None:
    """Add one number to others in place."""
    more = emit.splat(other)

    def body(offset: Value, load: Callable[..., Value], store: Callable[..., None]) -> None:
        place = emit.at(out, offset)
        store(emit.add(load(place), more), place)

    emit.over(count, body)


@instruction(*[types.int64] * 3)
def total(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """The sum of numbers."""
    found = _fold(emit, count, 0, lambda sum, at, load, _: emit.add(sum, load(emit.at(x, at))), emit.add)
    emit.store(emit.sum(found), out)


@instruction(*[types.int64] * 3, types.float32)
def squares(emit: Emit, x: Value, count: Value, out: Value, mean: Value) -> None:
    """The sum of the squares of what numbers have more than a mean."""
    middle = emit.splat(mean)

    def step(sum: Value, at: Value, load: Callable[..., Value], _: Any) -> Value:
        more = emit.subtract(load(emit.at(x, at)), middle)
        return emit.fma(more, more, sum)

    emit.store(emit.sum(_fold(emit, count, 0, step, emit.add)), out)


@instruction(*[types.int64] * 5, types.float32, types.float32)
def centred(
    emit: Emit, x: Value, count: Value, scale: Value, shift: Value, out: Value, mean: Value, factor: Value
) -> None:
    """``(x - mean) * factor * scale + shift``; scale and shift are rows, too, or 0 for none."""
    builder = emit.builder
    middle, times = emit.splat(mean), emit.splat(factor)

    def go(scales: bool, shifts: bool) -> None:
        def body(offset: Value, load: Callable[..., Value], store: Callable[..., None]) -> None:
            found = emit.multiply(emit.subtract(load(emit.at(x, offset)), middle), times)
            if scales:
                found = emit.multiply(found, load(emit.at(scale, offset)))
            if shifts:
                found = emit.add(found, load(emit.at(shift, offset)))
            store(found, emit.at(out, offset))

        emit.over(count, body)

    zero = emit.number(0)
    with builder.if_else(builder.icmp_signed("!=", scale, zero)) as (with_scale, without):
        with with_scale, builder.if_else(builder.icmp_signed("!=", shift, zero)) as (both, one):
            with both:
                go(True, True)
            with one:
                go(True, False)
        with without, builder.if_else(builder.icmp_signed("!=", shift, zero)) as (one, none):
            with one:
                go(False, True)
            with none:
                go(False, False)


@instruction(*[types.int64] * 3)
def copied(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Copy numbers."""

    def body(offset: Value, load: Callable[..., Value], store: Callable[..., None]) -> None:
        store(load(emit.at(x, offset)), emit.at(out, offset))

    emit.over(count, body)


@instruction(*[types.int64] * 6)
def dots(emit: Emit, x: Value, y: Value, stride: Value, rows: Value, count: Value, out: Value) -> None:
    """The products of one row with each of ``rows`` others, which are ``stride`` bytes apart."""
    builder = emit.builder
    at_once = 4
    steps = [builder.mul(stride, emit.number(i)) for i in range(at_once)]

    def of(rows_here: int, start: Value, target: Value) -> None:
        whole = builder.sdiv(count, emit.number(LANES))
        with emit.loop(whole, [emit.constant(0)] * rows_here) as (i, now, following):
            offset = builder.mul(i, emit.number(4 * LANES))
            factor = emit.load(emit.at(x, offset))
            for r in range(rows_here):
                other = emit.load(emit.at(emit.at(start, steps[r]), offset))
                following.append(emit.fma(factor, other, now[r]))
        done = builder.mul(whole, emit.number(LANES))
        rest = builder.sub(count, done)
        mask = emit.first(rest)
        offset = builder.mul(done, emit.number(4))
        before = builder.block
        with builder.if_then(builder.icmp_signed(">", rest, emit.number(0))):
            factor = emit.masked_load(emit.at(x, offset), mask)
            more = [
                emit.fma(
                    factor, emit.masked_load(emit.at(emit.at(start, steps[r]), offset), mask), following[r]
                )
                for r in range(rows_here)
            ]
            inside = builder.block
        found = []
        for a, b in zip(more, following, strict=True):
            phi = builder.phi(VECTOR)
            phi.add_incoming(a, inside)
            phi.add_incoming(b, before)
            found.append(phi)
        for r, one in enumerate(found):
            emit.store(emit.sum(one), emit.at(target, 4 * r))

    many = builder.sdiv(rows, emit.number(at_once))
    with emit.loop(many, [y, out]) as (_, (start, target), following):
        of(at_once, start, target)
        following += [emit.at(start, builder.mul(stride, emit.number(at_once))), emit.at(target, 4 * at_once)]
    start, target = following
    with emit.loop(builder.sub(rows, builder.mul(many, emit.number(at_once))), [start, target]) as (
        _,
        now,
        after,
    ):
        of(1, now[0], now[1])
        after += [emit.at(now[0], stride), emit.at(now[1], 4)]


@instruction(*[types.int64] * 6)
def mixed(emit: Emit, weights: Value, y: Value, stride: Value, rows: Value, count: Value, out: Value) -> None:
    """Add ``rows`` rows, which are ``stride`` bytes apart, each times its weight, to what is there."""
    builder = emit.builder
    wide = 8

    def block(vectors: int, offset: Value, access: list[tuple[Any, Any]]) -> None:
        start = [load(emit.at(out, emit.at(offset, 4 * LANES * j))) for j, (load, _) in enumerate(access)]
        with emit.loop(rows, [emit.at(y, offset), weights, *start]) as (_, (at, weight, *now), following):
            factor = emit.splat(emit.load(weight, F32))
            made = [
                emit.fma(factor, load(emit.at(at, 4 * LANES * j)), now[j])
                for j, (load, _) in enumerate(access)
            ]
            following += [emit.at(at, stride), emit.at(weight, 4), *made]
        for j, (_, store) in enumerate(access):
            store(following[2 + j], emit.at(out, emit.at(offset, 4 * LANES * j)))

    plain = (emit.load, emit.store)
    many = builder.sdiv(count, emit.number(wide * LANES))
    with emit.loop(many, [emit.number(0)]) as (_, (offset,), following):
        block(wide, offset, [plain] * wide)
        following.append(emit.at(offset, 4 * wide * LANES))
    left = builder.sub(count, builder.mul(many, emit.number(wide * LANES)))
    whole = builder.sdiv(left, emit.number(LANES))
    with emit.loop(whole, [following[0]]) as (_, (offset,), after):
        block(1, offset, [plain])
        after.append(emit.at(offset, 4 * LANES))
    rest = builder.sub(left, builder.mul(whole, emit.number(LANES)))
    with builder.if_then(builder.icmp_signed(">", rest, emit.number(0))):
        mask = emit.first(rest)
        block(1, after[0], [(
            lambda address: emit.masked_load(address, mask),
            lambda value, address: emit.masked_store(value, address, mask),
        )])  # fmt: skip


@instruction(*[types.int64] * 4)
def turned(emit: Emit, x: Value, stride: Value, out: Value, width: Value) -> None:
    """A square of `LANES` rows, ``stride`` bytes apart, as columns of rows that are ``width`` bytes apart."""
    builder = emit.builder
    rows = [emit.load(emit.at(x, builder.mul(stride, emit.number(i)))) for i in range(LANES)]
    step = 1
    while step < LANES:
        low, high = _halves(step)
        for i in range(LANES):
            if not i & step:
                a, b = rows[i], rows[i + step]
                rows[i] = builder.shuffle_vector(a, b, low)
                rows[i + step] = builder.shuffle_vector(a, b, high)
        step *= 2
    for i, row in enumerate(rows):
        emit.store(row, emit.at(out, builder.mul(width, emit.number(i))))


def _halves(step: int) -> tuple[Value, Value]:
    """Which lanes of two vectors change places where squares of that size are turned."""
    low = [j if not j & step else LANES + j - step for j in range(LANES)]
    high = [j + step if not j & step else LANES + j for j in range(LANES)]
    kind = ir.VectorType(I32, LANES)
    return ir.Constant(kind, low), ir.Constant(kind, high)


@instruction(types.float32, gives=types.float32)
def root(emit: Emit, x: Value) -> Value:
    """The square root of one number."""
    return emit.builder.call(emit.function("llvm.sqrt.f32", F32, F32), [x])
