"""Reductions and softmax over rows and columns: their steps, loops with several accumulators, and tasks."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ..codegen import ir
from ..codegen.descriptor import i64
from ..codegen.language import Instruction, device, instruction, types
from ..codegen.memory import call_host
from ..codegen.vectors import F32, LANES, VECTOR, Emit, Load, Store, Value
from ._columns import ABREAST, ColumnsJob, Sizes, column_sizes, columns_task, load_sizes, run_columns
from ._elementwise_code import exp

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
    "DOUBLES",
    "F64",
    "STEPS",
    "Reduction",
    "doubles",
    "spread",
    "square_root",
    "widened",
    "REDUCE",
    "SOFTMAX_COLUMNS",
    "reduce_columns",
    "softmax_columns",
]

# Accumulators of a reduction.
ACCUMULATORS = 4


def reduce_row(
    emit: Emit, count: Value, start: Value, step: Callable[[Value, Value, Load, Store], Value],
    join: Callable[[Value, Value], Value],
) -> Value:  # fmt: skip
    """Reduce ``count`` elements; ``step`` takes an accumulator, a byte offset, and load and store functions.

    Returns the joined accumulators. In the last step, lanes beyond the row keep their values.
    """
    sums = [start] * ACCUMULATORS
    for offset, access in emit.strips(count, ACCUMULATORS, sums=sums, join=join):
        for j, (load, store) in enumerate(access):
            sums[j] = step(sums[j], emit.at(offset, 4 * LANES * j), load, store)
    return sums[0]


def _larger(emit: Emit, a: Value, b: Value) -> Value:
    return emit.builder.select(emit.builder.fcmp_ordered(">", b, a), b, a)


@instruction(*[types.int64] * 5, types.float32)
def softmax_terms(
    emit: Emit, x: Value, mask: Value, count: Value, out: Value, about: Value, factor: Value
) -> None:
    """Store the terms of softmax, ``exp(x * factor + mask - max)``, and at ``about`` their sum and the maximum.

    ``mask`` is 0 for none. Rows of minus infinity, and rows with NaN, become NaN.
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
    """Return an instruction ``(out, count, number)`` that updates a row in place."""

    def write(emit: Emit, out: Value, count: Value, other: Value) -> None:
        same = emit.splat(other)

        for offset, load, store in emit.vectors(count):
            place = emit.at(out, offset)
            store(how(emit, load(place), same), place)

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
    """Compute ``(x - mean) * factor * scale + shift``; ``scale`` and ``shift`` are rows, or 0 for none."""
    builder = emit.builder
    middle, times = emit.splat(mean), emit.splat(factor)

    def go(scales: bool, shifts: bool) -> None:
        for offset, load, store in emit.vectors(count):
            found = emit.multiply(emit.subtract(load(emit.at(x, offset)), middle), times)
            if scales:
                found = emit.multiply(found, load(emit.at(scale, offset)))
            if shifts:
                found = emit.add(found, load(emit.at(shift, offset)))
            store(found, emit.at(out, offset))

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


# Sums and products are accumulated in f64, the sums as in the reference.
F64 = ir.F64
DOUBLES = ir.VectorType(F64, LANES)


class Reduction(IntEnum):
    """Reduction operations."""

    MEAN = 0
    """The sum divided by a number, which is 1 for sums."""
    MAXIMUM = 1
    """The maximum, at least the lowest finite number; NaN is ignored."""
    MINIMUM = 2
    """The minimum; NaN is ignored."""
    L1 = 3
    """The sum of absolute values."""
    L2 = 4
    """The square root of the sum of squares."""
    PRODUCT = 5
    """The product."""


class Steps(NamedTuple):
    """The vector operations of a reduction.

    Args:
        start: the initial accumulator.
        step: adds a vector of f32 to an accumulator.
        join: combines two accumulators, or two numbers of them.
        finish: returns the result of an accumulator, or of one number of it, given the divisor; wide
            accumulators are f64.
    """

    start: Value
    step: Callable[[Emit, Value, Value], Value]
    join: Callable[[Emit, Value, Value], Value]
    finish: Callable[[Emit, Value, Value], Value]


def doubles(x: float) -> Value:
    """Return a vector constant with the same f64 in every lane."""
    return ir.Constant(DOUBLES, [x] * LANES)


def widened(emit: Emit, x: Value) -> Value:
    """Widen a vector of f32 to f64."""
    return emit.builder.fpext(x, DOUBLES)


def larger(emit: Emit, so_far: Value, x: Value) -> Value:
    """Return the larger of two numbers; the first if the second is NaN."""
    return _extreme(">", emit, so_far, x)


def _extreme(sign: str, emit: Emit, so_far: Value, x: Value) -> Value:
    return emit.builder.select(emit.builder.fcmp_ordered(sign, x, so_far), x, so_far)


def _square(emit: Emit, so_far: Value, x: Value) -> Value:
    wide = widened(emit, x)
    return emit.builder.fadd(so_far, emit.builder.fmul(wide, wide))  # squares of f32 are exact


def _sum(emit: Emit, a: Value, b: Value) -> Value:
    return emit.builder.fadd(a, b)


def _product(emit: Emit, a: Value, b: Value) -> Value:
    return emit.builder.fmul(a, b)


def _unchanged(emit: Emit, found: Value, divisor: Value) -> Value:
    return found


def _quotient(emit: Emit, found: Value, divisor: Value) -> Value:
    parts = emit.builder.sitofp(divisor, F64)
    return emit.builder.fdiv(found, spread(emit, parts) if found.type == DOUBLES else parts)


def spread(emit: Emit, x: Value) -> Value:
    """Broadcast an f64 to every lane."""
    return emit.splat(x)


def square_root(emit: Emit, x: Value) -> Value:
    """Compute the square root of an f64 or a vector of f64."""
    return emit.intrinsic("llvm.sqrt", x)


def _root(emit: Emit, found: Value, divisor: Value) -> Value:
    return square_root(emit, found)


def _wide(step: Callable[[Emit, Value, Value], Value]) -> Callable[[Emit, Value, Value], Value]:
    return lambda emit, so_far, x: step(emit, so_far, widened(emit, x))


_LOWEST = ir.Constant(ir.VectorType(F32, LANES), [float(np.finfo(np.float32).min)] * LANES)
_INFINITE = ir.Constant(ir.VectorType(F32, LANES), [float("inf")] * LANES)
_LARGER, _SMALLER = partial(_extreme, ">"), partial(_extreme, "<")

STEPS: dict[Reduction, Steps] = {
    Reduction.MEAN: Steps(doubles(0), _wide(_sum), _sum, _quotient),
    Reduction.MAXIMUM: Steps(_LOWEST, _LARGER, _LARGER, _unchanged),
    Reduction.MINIMUM: Steps(_INFINITE, _SMALLER, _SMALLER, _unchanged),
    Reduction.L1: Steps(
        doubles(0), lambda emit, so_far, x: _wide(_sum)(emit, so_far, emit.absolute(x)), _sum, _unchanged
    ),
    Reduction.L2: Steps(doubles(0), _square, _sum, _root),
    Reduction.PRODUCT: Steps(doubles(1), _wide(_product), _product, _unchanged),
}


class ReductionJob(ColumnsJob):
    """The job of `REDUCE`; ``code`` is a `Reduction`."""

    code: i64
    divisor: i64


@instruction(*[types.int64] * 7)
def _reduce_columns(
    emit: Emit, code: Value, x: Value, stride: Value, length: Value, count: Value, out: Value, divisor: Value
) -> None:  # fmt: skip
    """Reduce ``count`` columns of ``length`` elements with a stride of ``stride`` bytes."""

    def go(steps: Steps) -> None:
        for offset, access in emit.strips(count, ABREAST):
            start = [steps.start] * len(access)
            with emit.loop(length, [emit.at(x, offset), *start]) as (_, (at, *so_far), following):
                following.append(emit.at(at, stride))
                for j, (load, _) in enumerate(access):
                    following.append(steps.step(emit, so_far[j], load(emit.at(at, 4 * LANES * j))))
            for j, (_, store) in enumerate(access):
                found = _narrowed(emit, steps.finish(emit, following[1 + j], divisor), VECTOR)
                store(found, emit.at(emit.at(out, offset), 4 * LANES * j))

    emit.switch(code, {code: partial(go, steps) for code, steps in STEPS.items()})


@instruction(*[types.int64] * 5)
def _reduce_row(emit: Emit, code: Value, x: Value, count: Value, out: Value, divisor: Value) -> None:
    """Reduce ``count`` contiguous elements."""

    def go(steps: Steps) -> None:
        def step(so_far: Value, offset: Value, load: Load, _: Store) -> Value:
            return steps.step(emit, so_far, load(emit.at(x, offset)))

        join = partial(steps.join, emit)
        found = emit.reduce(reduce_row(emit, count, steps.start, step, join), join)
        emit.store(_narrowed(emit, steps.finish(emit, found, divisor), F32), out)

    emit.switch(code, {code: partial(go, steps) for code, steps in STEPS.items()})


def _narrowed(emit: Emit, found: Value, kind: ir.Type) -> Value:
    return found if found.type == kind else emit.builder.fptrunc(found, kind)


@instruction(*[types.int64] * 5)
def _softmax_columns(emit: Emit, x: Value, stride: Value, length: Value, count: Value, out: Value) -> None:
    """Compute softmax along ``count`` columns of ``length`` elements with a stride of ``stride`` bytes."""
    for offset, load, store in emit.vectors(count):
        source, target = emit.at(x, offset), emit.at(out, offset)
        with emit.loop(length, [source, emit.constant(float("-inf"))]) as (_, (at, so_far), following):
            following += [emit.at(at, stride), larger(emit, so_far, load(at))]
        top = following[1]
        with emit.loop(length, [source, target, doubles(0)]) as (_, (at, to, sum), following):
            power = exp(emit, emit.subtract(load(at), top))
            store(power, to)
            following += [
                emit.at(at, stride),
                emit.at(to, stride),
                emit.builder.fadd(sum, widened(emit, power)),
            ]
        factor = emit.divide(emit.constant(1), emit.builder.fptrunc(following[2], VECTOR))
        with emit.loop(length, [target]) as (_, (to,), following):
            store(emit.multiply(load(to), factor), to)
            following.append(emit.at(to, stride))


@device
def _reduce_some(job: ReductionJob, x: int, out: int, row: int, column: int) -> None:
    _, length, inner, block = load_sizes(job)
    code, divisor = job.code, job.divisor
    _reduce_columns(
        code, x + 4 * (row * length * inner + column), 4 * inner, length, min(block, inner - column),
        out + 4 * (row * inner + column), divisor,
    )  # fmt: skip


@device
def _reduce_rows(job: ReductionJob, x: int, out: int, first: int, end: int) -> None:
    length = job.length
    code, divisor = job.code, job.divisor
    for row in range(first, end):
        _reduce_row(code, x + 4 * length * row, length, out + 4 * row, divisor)


REDUCE = columns_task("reduce", _reduce_some, _reduce_rows)
"""Reduce A ``[outer, length, inner]`` to ``[outer, inner]``."""


@device
def _softmax_some(job: ColumnsJob, x: int, out: int, row: int, column: int) -> None:
    _, length, inner, block = load_sizes(job)
    at = 4 * (row * length * inner + column)
    _softmax_columns(x + at, 4 * inner, length, min(block, inner - column), out + at)


SOFTMAX_COLUMNS = columns_task("softmax", _softmax_some)
"""Compute softmax of A ``[outer, length, inner]`` along the middle axis."""


def reduce_columns(x: Array, out: Array, sizes: Sizes, code: int, divisor: int) -> None:
    """Reduce the middle axis of a contiguous array ``[outer, length, inner]``; see `Reduction`."""
    run_columns(REDUCE, x, out, ReductionJob.fill(**column_sizes(sizes), code=code, divisor=divisor))


def softmax_columns(x: Array, out: Array, sizes: Sizes) -> None:
    """Compute softmax along the middle axis of a contiguous array ``[outer, length, inner]``."""
    run_columns(SOFTMAX_COLUMNS, x, out, ColumnsJob.fill(**column_sizes(sizes)))
