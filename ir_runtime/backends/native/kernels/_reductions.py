"""Reductions and softmax over rows and columns of f32: loops with several accumulators, and tasks."""

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
    "widen",
    "REDUCE",
    "SOFTMAX_COLUMNS",
    "reduce_columns",
    "softmax_columns",
]

# Independent accumulators of a row's reduction, so that additions do not wait for each other.
ACCUMULATORS = 4


def reduce_row(
    emit: Emit, count: Value, start: Value, step: Callable[[Value, Value, Load, Store], Value],
    join: Callable[[Value, Value], Value],
) -> Value:  # fmt: skip
    """Emit the reduction of a row to one vector.

    Args:
        emit: the code emitter.
        count: the number of elements.
        start: the initial value of the accumulators.
        step: returns the next value of an accumulator; takes the accumulator, the byte offset of a vector in the row, and
            functions that load and store its valid lanes.
        join: combines two accumulators.
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
    """Store the numerators of softmax, ``exp(x * factor + mask - max)``, in ``out``, and their sum and the maximum at ``about``.

    ``mask`` is the address of a row, or 0. Rows with NaN, and rows of minus infinity only, become NaN.
    """
    builder = emit.builder
    times = emit.splat(factor)
    masked = builder.icmp_signed("!=", mask, emit.i64(0))

    def store_scores(add: bool) -> list[Value]:
        def store_score(maximum: Value, at: Value, load: Load, store: Store) -> Value:
            score = emit.multiply(load(emit.at(x, at)), times)
            if add:
                score = emit.add(score, load(emit.at(mask, at)))
            store(score, emit.at(out, at))
            return _larger(emit, maximum, score)

        maxima = reduce_row(
            emit, count, emit.constant(float("-inf")), store_score, lambda a, b: _larger(emit, a, b)
        )
        return [emit.reduce(maxima, lambda a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))]

    (most,) = emit.if_else(masked, lambda: store_scores(True), lambda: store_scores(False))
    top = emit.splat(most)

    def store_power(total: Value, at: Value, load: Load, store: Store) -> Value:
        place = emit.at(out, at)
        power = exp(emit, emit.subtract(load(place), top))
        store(power, place)
        return emit.add(total, power)

    sum = emit.reduce_add(reduce_row(emit, count, emit.constant(0), store_power, emit.add))
    emit.store(sum, about)
    emit.store(most, emit.at(about, 4))


def _update_row(combine: Callable[[Emit, Value, Value], Value]) -> Instruction:
    """Return an instruction ``(row, count, number)`` that combines each element of a row with a number, in place."""

    def write(emit: Emit, out: Value, count: Value, other: Value) -> None:
        same = emit.splat(other)

        for offset, load, store in emit.vectors(count):
            place = emit.at(out, offset)
            store(combine(emit, load(place), same), place)

    return instruction(*[types.int64] * 2, types.float32)(write)


scale_row, shift_row = _update_row(Emit.multiply), _update_row(Emit.add)
"""Multiply the elements of a row by a number, or add a number to them, in place: ``(row, count, number)``."""


@instruction(*[types.int64] * 3)
def sum_row(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Store the sum of ``count`` elements of a row at ``out``."""
    sums = reduce_row(
        emit, count, emit.constant(0), lambda sum, at, load, _: emit.add(sum, load(emit.at(x, at))), emit.add
    )
    emit.store(emit.reduce_add(sums), out)


@instruction(*[types.int64] * 3, types.float32)
def sum_squares(emit: Emit, x: Value, count: Value, out: Value, mean: Value) -> None:
    """Store the sum of the squared deviations of a row's elements from ``mean`` at ``out``."""
    middle = emit.splat(mean)

    def step(sum: Value, at: Value, load: Load, _: Store) -> Value:
        deviation = emit.subtract(load(emit.at(x, at)), middle)
        return emit.fma(deviation, deviation, sum)

    emit.store(emit.reduce_add(reduce_row(emit, count, emit.constant(0), step, emit.add)), out)


@instruction(*[types.int64] * 5, types.float32, types.float32)
def normalize_row(
    emit: Emit, x: Value, count: Value, scale: Value, shift: Value, out: Value, mean: Value, factor: Value
) -> None:
    """Store ``(x - mean) * factor * scale + shift`` of a row; ``scale`` and ``shift`` are addresses of rows, or 0 to omit."""
    builder = emit.builder
    middle, times = emit.splat(mean), emit.splat(factor)

    def go(scales: bool, shifts: bool) -> None:
        for offset, load, store in emit.vectors(count):
            value = emit.multiply(emit.subtract(load(emit.at(x, offset)), middle), times)
            if scales:
                value = emit.multiply(value, load(emit.at(scale, offset)))
            if shifts:
                value = emit.add(value, load(emit.at(shift, offset)))
            store(value, emit.at(out, offset))

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
    """Compute the square root of an f32."""
    return emit.intrinsic("llvm.sqrt", x)


@instruction(types.float32, returns=types.float32)
def log(emit: Emit, x: Value) -> Value:
    """Compute the natural logarithm of an f32 by the C library."""
    return call_host(emit, "log", F32, x)


# Sums and products are accumulated in f64; for sums, the reference does the same.
F64 = ir.F64
DOUBLES = ir.VectorType(F64, LANES)


class Reduction(IntEnum):
    """Kinds of reductions, as numbered in kernels."""

    MEAN = 0
    """The sum divided by the job's divisor, which is 1 for ReduceSum."""
    MAXIMUM = 1
    """The maximum, or the lowest finite f32 if that is larger; NaN is ignored."""
    MINIMUM = 2
    """The minimum; NaN is ignored."""
    L1 = 3
    """The sum of absolute values."""
    L2 = 4
    """The square root of the sum of squares."""
    PRODUCT = 5
    """The product."""


class Steps(NamedTuple):
    """The operations of a reduction on accumulators of f32, or f64 for sums and products.

    Args:
        start: the initial vector of accumulators.
        step: returns the accumulators after a vector of f32 data.
        join: combines two vectors of accumulators, or two accumulators.
        finish: returns the result for a vector of accumulators, or for one accumulator, given the divisor.
    """

    start: Value
    step: Callable[[Emit, Value, Value], Value]
    join: Callable[[Emit, Value, Value], Value]
    finish: Callable[[Emit, Value, Value], Value]


def doubles(x: float) -> Value:
    """Return a vector constant with the same f64 in every lane."""
    return ir.Constant(DOUBLES, [x] * LANES)


def widen(emit: Emit, x: Value) -> Value:
    """Widen a vector of f32 to f64."""
    return emit.builder.fpext(x, DOUBLES)


def larger(emit: Emit, so_far: Value, x: Value) -> Value:
    """Return the larger of ``so_far`` and ``x`` in each lane; ``so_far`` if either is NaN."""
    return _extreme(">", emit, so_far, x)


def _extreme(sign: str, emit: Emit, so_far: Value, x: Value) -> Value:
    return emit.builder.select(emit.builder.fcmp_ordered(sign, x, so_far), x, so_far)


def _square(emit: Emit, so_far: Value, x: Value) -> Value:
    wide = widen(emit, x)
    return emit.builder.fadd(so_far, emit.builder.fmul(wide, wide))  # squares of f32 are exact


def _sum(emit: Emit, a: Value, b: Value) -> Value:
    return emit.builder.fadd(a, b)


def _product(emit: Emit, a: Value, b: Value) -> Value:
    return emit.builder.fmul(a, b)


def _identity(emit: Emit, total: Value, divisor: Value) -> Value:
    return total


def _quotient(emit: Emit, total: Value, divisor: Value) -> Value:
    parts = emit.builder.sitofp(divisor, F64)
    return emit.builder.fdiv(total, spread(emit, parts) if total.type == DOUBLES else parts)


def spread(emit: Emit, x: Value) -> Value:
    """Broadcast an f64 to every lane."""
    return emit.splat(x)


def square_root(emit: Emit, x: Value) -> Value:
    """Compute the square root of an f64 or of each lane of a vector of f64."""
    return emit.intrinsic("llvm.sqrt", x)


def _root(emit: Emit, total: Value, divisor: Value) -> Value:
    return square_root(emit, total)


def _wide(step: Callable[[Emit, Value, Value], Value]) -> Callable[[Emit, Value, Value], Value]:
    return lambda emit, so_far, x: step(emit, so_far, widen(emit, x))


_LOWEST = ir.Constant(ir.VectorType(F32, LANES), [float(np.finfo(np.float32).min)] * LANES)
_INFINITE = ir.Constant(ir.VectorType(F32, LANES), [float("inf")] * LANES)
_LARGER, _SMALLER = partial(_extreme, ">"), partial(_extreme, "<")

STEPS: dict[Reduction, Steps] = {
    Reduction.MEAN: Steps(doubles(0), _wide(_sum), _sum, _quotient),
    Reduction.MAXIMUM: Steps(_LOWEST, _LARGER, _LARGER, _identity),
    Reduction.MINIMUM: Steps(_INFINITE, _SMALLER, _SMALLER, _identity),
    Reduction.L1: Steps(
        doubles(0), lambda emit, so_far, x: _wide(_sum)(emit, so_far, emit.absolute(x)), _sum, _identity
    ),
    Reduction.L2: Steps(doubles(0), _square, _sum, _root),
    Reduction.PRODUCT: Steps(doubles(1), _wide(_product), _product, _identity),
}


class ReductionJob(ColumnsJob):
    """Parameters of `REDUCE`; ``code`` is a `Reduction`, and means are sums divided by ``divisor``."""

    code: i64
    divisor: i64


@instruction(*[types.int64] * 7)
def _reduce_columns(
    emit: Emit, code: Value, x: Value, stride: Value, length: Value, count: Value, out: Value, divisor: Value
) -> None:  # fmt: skip
    """Reduce ``count`` columns of ``length`` elements, whose rows are ``stride`` bytes apart."""

    def go(steps: Steps) -> None:
        for offset, access in emit.strips(count, ABREAST):
            start = [steps.start] * len(access)
            with emit.loop(length, [emit.at(x, offset), *start]) as (_, (at, *so_far), following):
                following.append(emit.at(at, stride))
                for j, (load, _) in enumerate(access):
                    following.append(steps.step(emit, so_far[j], load(emit.at(at, 4 * LANES * j))))
            for j, (_, store) in enumerate(access):
                result = _narrow(emit, steps.finish(emit, following[1 + j], divisor), VECTOR)
                store(result, emit.at(emit.at(out, offset), 4 * LANES * j))

    emit.switch(code, {code: partial(go, steps) for code, steps in STEPS.items()})


@instruction(*[types.int64] * 5)
def _reduce_row(emit: Emit, code: Value, x: Value, count: Value, out: Value, divisor: Value) -> None:
    """Reduce a row of ``count`` contiguous elements to one."""

    def go(steps: Steps) -> None:
        def step(so_far: Value, offset: Value, load: Load, _: Store) -> Value:
            return steps.step(emit, so_far, load(emit.at(x, offset)))

        join = partial(steps.join, emit)
        total = emit.reduce(reduce_row(emit, count, steps.start, step, join), join)
        emit.store(_narrow(emit, steps.finish(emit, total, divisor), F32), out)

    emit.switch(code, {code: partial(go, steps) for code, steps in STEPS.items()})


def _narrow(emit: Emit, value: Value, kind: ir.Type) -> Value:
    return value if value.type == kind else emit.builder.fptrunc(value, kind)


@instruction(*[types.int64] * 5)
def _softmax_columns(emit: Emit, x: Value, stride: Value, length: Value, count: Value, out: Value) -> None:
    """Compute softmax along ``count`` columns of ``length`` elements, whose rows are ``stride`` bytes apart."""
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
                emit.builder.fadd(sum, widen(emit, power)),
            ]
        factor = emit.divide(emit.constant(1), emit.builder.fptrunc(following[2], VECTOR))
        with emit.loop(length, [target]) as (_, (to,), following):
            store(emit.multiply(load(to), factor), to)
            following.append(emit.at(to, stride))


@device
def _reduce_block(job: ReductionJob, x: int, out: int, row: int, column: int) -> None:
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


REDUCE = columns_task("reduce", _reduce_block, _reduce_rows)
"""Reduce A ``[outer, length, inner]`` to ``[outer, inner]``."""


@device
def _softmax_block(job: ColumnsJob, x: int, out: int, row: int, column: int) -> None:
    _, length, inner, block = load_sizes(job)
    at = 4 * (row * length * inner + column)
    _softmax_columns(x + at, 4 * inner, length, min(block, inner - column), out + at)


SOFTMAX_COLUMNS = columns_task("softmax", _softmax_block)
"""Compute softmax of A ``[outer, length, inner]`` along the middle axis."""


def reduce_columns(x: Array, out: Array, sizes: Sizes, code: int, divisor: int) -> None:
    """Reduce the middle axis of a contiguous f32 array of ``sizes`` ``[outer, length, inner]``.

    ``code`` is a `Reduction`; means are sums divided by ``divisor``.
    """
    run_columns(REDUCE, x, out, ReductionJob.fill(**column_sizes(sizes), code=code, divisor=divisor))


def softmax_columns(x: Array, out: Array, sizes: Sizes) -> None:
    """Compute softmax along the middle axis of a contiguous array ``[outer, length, inner]`` of f32."""
    run_columns(SOFTMAX_COLUMNS, x, out, ColumnsJob.fill(**column_sizes(sizes)))
