"""Reductions of rows, and normalization of rows by them: softmax terms, mean subtraction, scaling.

Reductions have several accumulators. The second pass reads a row that is in the L1 cache.
"""

from __future__ import annotations

from collections.abc import Callable

from ..codegen.host import call_host
from ..codegen.language import Instruction, instruction, types
from ..codegen.vectors import F32, LANES, Emit, Load, Store, Value
from ._activation_code import exp

__all__ = [
    "log",
    "normalize_row",
    "reduce_row",
    "sqrt",
    "scale_row",
    "shift_row",
    "softmax_terms",
    "sum_squares",
    "sum_row",
]
# Accumulators of a reduction.
ACCUMULATORS = 4


def reduce_row(
    emit: Emit, count: Value, start: Value, step: Callable[[Value, Value, Load, Store], Value],
    join: Callable[[Value, Value], Value],
) -> Value:  # fmt: skip
    """Reduce ``count`` elements; ``step`` takes an accumulator, a byte offset, and functions to load and store.

    Return the joined accumulators. In the last step, lanes beyond the row keep their values.
    """
    builder = emit.builder
    block = ACCUMULATORS * LANES
    many = builder.sdiv(count, emit.i64(block))
    with emit.loop(many, [emit.i64(0), *[start] * ACCUMULATORS]) as (_, (offset, *now), following):
        made = [
            step(sum_row, emit.at(offset, 4 * LANES * j), emit.load, emit.store)
            for j, sum_row in enumerate(now)
        ]
        following += [emit.at(offset, 4 * block), *made]
    offset, sum_row = following[0], following[1]
    for other in following[2:]:
        sum_row = join(sum_row, other)
    left = builder.sub(count, builder.mul(many, emit.i64(block)))
    whole = builder.sdiv(left, emit.i64(LANES))
    with emit.loop(whole, [offset, sum_row]) as (_, (at, now_one), after):
        after += [emit.at(at, 4 * LANES), step(now_one, at, emit.load, emit.store)]
    offset, sum_row = after
    rest = builder.sub(left, builder.mul(whole, emit.i64(LANES)))

    def last() -> list[Value]:
        return [
            builder.select(emit.lane_mask(rest), step(sum_row, offset, *emit.masked_access(rest)), sum_row)
        ]

    return emit.if_else(builder.icmp_signed(">", rest, emit.i64(0)), last, lambda: [sum_row])[0]


def _larger(emit: Emit, a: Value, b: Value) -> Value:
    return emit.builder.select(emit.builder.fcmp_ordered(">", b, a), b, a)


@instruction(*[types.int64] * 5, types.float32)
def softmax_terms(
    emit: Emit, x: Value, mask: Value, count: Value, out: Value, about: Value, factor: Value
) -> None:
    """Store ``exp(x * factor + mask - max)``, and at ``about`` their sum and the maximum (the terms of softmax).

    ``mask`` is 0 for none. A row of minus infinity, or with NaN, becomes NaN.
    """
    builder = emit.builder
    times = emit.splat(factor)
    masked = builder.icmp_signed("!=", mask, emit.i64(0))

    def raised(add: bool) -> list[Value]:
        def largest(sum_row: Value, at: Value, load: Load, store: Store) -> Value:
            score = emit.multiply(load(emit.at(x, at)), times)
            if add:
                score = emit.add(score, load(emit.at(mask, at)))
            store(score, emit.at(out, at))
            return _larger(emit, sum_row, score)

        found = reduce_row(
            emit, count, emit.constant(float("-inf")), largest, lambda a, b: _larger(emit, a, b)
        )
        return [emit.reduce(found, lambda a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))]

    (most,) = emit.if_else(masked, lambda: raised(True), lambda: raised(False))
    top = emit.splat(most)

    def power(sum_row: Value, at: Value, load: Load, store: Store) -> Value:
        place = emit.at(out, at)
        found = exp(emit, emit.subtract(load(place), top))
        store(found, place)
        return emit.add(sum_row, found)

    sum = emit.reduce_add(reduce_row(emit, count, emit.constant(0), power, emit.add))
    emit.store(sum, about)
    emit.store(most, emit.at(about, 4))


def _in_place(how: Callable[[Emit, Value, Value], Value]) -> Instruction:
    """Return an instruction ``(out, count, number)`` that changes a row in place."""

    def write(emit: Emit, out: Value, count: Value, other: Value) -> None:
        same = emit.splat(other)

        def body(offset: Value, load: Load, store: Store) -> None:
            place = emit.at(out, offset)
            store(how(emit, load(place), same), place)

        emit.vector_loop(count, body)

    return instruction(*[types.int64] * 2, types.float32)(write)


scale_row, shift_row = _in_place(Emit.multiply), _in_place(Emit.add)
"""Multiply a row by a number, or add a number to it."""


@instruction(*[types.int64] * 3)
def sum_row(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Store the sum of a row."""
    found = reduce_row(
        emit, count, emit.constant(0), lambda sum, at, load, _: emit.add(sum, load(emit.at(x, at))), emit.add
    )
    emit.store(emit.reduce_add(found), out)


@instruction(*[types.int64] * 3, types.float32)
def sum_squares(emit: Emit, x: Value, count: Value, out: Value, mean: Value) -> None:
    """Store the sum of squared deviations from a mean."""
    middle = emit.splat(mean)

    def step(sum: Value, at: Value, load: Load, _: Store) -> Value:
        more = emit.subtract(load(emit.at(x, at)), middle)
        return emit.fma(more, more, sum)

    emit.store(emit.reduce_add(reduce_row(emit, count, emit.constant(0), step, emit.add)), out)


@instruction(*[types.int64] * 5, types.float32, types.float32)
def normalize_row(
    emit: Emit, x: Value, count: Value, scale: Value, shift: Value, out: Value, mean: Value, factor: Value
) -> None:
    """Compute ``(x - mean) * factor * scale + shift`` for rows ``scale`` and ``shift``, or 0 for none."""
    builder = emit.builder
    middle, times = emit.splat(mean), emit.splat(factor)

    def go(scales: bool, shifts: bool) -> None:
        def body(offset: Value, load: Load, store: Store) -> None:
            found = emit.multiply(emit.subtract(load(emit.at(x, offset)), middle), times)
            if scales:
                found = emit.multiply(found, load(emit.at(scale, offset)))
            if shifts:
                found = emit.add(found, load(emit.at(shift, offset)))
            store(found, emit.at(out, offset))

        emit.vector_loop(count, body)

    zero = emit.i64(0)
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


@instruction(types.float32, returns=types.float32)
def sqrt(emit: Emit, x: Value) -> Value:
    """Compute the square root of a number."""
    return emit.intrinsic("llvm.sqrt", x)


@instruction(types.float32, returns=types.float32)
def log(emit: Emit, x: Value) -> Value:
    """Compute the natural logarithm of a number."""
    return call_host(emit, "log", F32, x)
