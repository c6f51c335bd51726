"""What elements are reduced to: where accumulators start, what an element does to them, how they are joined and finished."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import NamedTuple

import numpy as np

from ..codegen import ir
from ..codegen.vectors import F32, LANES, Emit, Value

__all__ = [
    "DOUBLES",
    "F64",
    "STEPS",
    "Reduction",
    "Steps",
    "doubles",
    "larger",
    "spread",
    "square_root",
    "widened",
]

# Sums and products are accumulated in f64, the sums as in the reference.
F64 = ir.F64
DOUBLES = ir.VectorType(F64, LANES)


class Reduction(IntEnum):
    """What columns are reduced to."""

    MEAN = 0
    """The sum, divided by a number: for sums 1."""
    MAXIMUM = 1
    """The maximum, at least the lowest finite number; NaN is passed over."""
    MINIMUM = 2
    """The minimum; NaN is passed over."""
    L1 = 3
    """The sum of absolute values."""
    L2 = 4
    """The square root of the sum of squares."""
    PRODUCT = 5
    """The product."""


class Steps(NamedTuple):
    """How vectors are reduced.

    Args:
        start: a vector that accumulators are at first.
        step: returns an accumulator with a vector of f32 added to it.
        join: returns two accumulators, or two numbers of them, as one.
        finish: returns the result of an accumulator, or a number of it, as f64 where it is wide; it also takes the divisor.
    """

    start: Value
    step: Callable[[Emit, Value, Value], Value]
    join: Callable[[Emit, Value, Value], Value]
    finish: Callable[[Emit, Value, Value], Value]


def doubles(x: float) -> Value:
    """Return a vector constant with the same f64 in every lane."""
    return ir.Constant(DOUBLES, [x] * LANES)


def widened(emit: Emit, x: Value) -> Value:
    """Return a vector of f32 as f64."""
    return emit.builder.fpext(x, DOUBLES)


def larger(emit: Emit, so_far: Value, x: Value) -> Value:
    """Return the larger of two numbers, the first where the second is NaN."""
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
    """Compute the square root of an f64, or of a vector of them."""
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
