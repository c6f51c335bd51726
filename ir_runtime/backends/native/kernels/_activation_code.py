"""Vectorized f32 activations, in place, accurate to a few ULP.

The exponential and the error function use polynomials from Cephes and Eigen; the others are derived from
them. NaN stays NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from functools import partial

from ..codegen.language import instruction, routine, types
from ..codegen.vectors import INTS, VECTOR, Emit, Value, splat_bits

__all__ = ["ActivationKind", "apply_activation", "exp"]

# exp(x) underflows to subnormal numbers below.
_LEAST = -86.6
# exp(x) is 0 below, also in subnormal numbers.
_LEAST_SUBNORMAL = -104.0
Formula = Callable[[Emit, Value, Value, Value], Value]


class ActivationKind(IntEnum):
    """Activation functions; kernels receive the number."""

    NONE = 0
    CLAMP = 1
    SIGMOID = 2
    SWISH = 3
    TANH = 4
    GELU = 5
    GELU_TANH = 6
    HARD_SIGMOID = 7
    HSWISH = 8
    ELU = 9
    EXP = 10
    LEAKY = 11
    MISH = 12
    ERF = 13
    SOFTPLUS = 14
    SOFTSIGN = 15
    HARD_LINE = 16
    SELU = 17


def exp(emit: Emit, x: Value) -> Value:
    """Compute ``exp(x)``; 0 below -86.6, infinity above 88.7."""
    value, exponent = _exp_parts(emit, x, _LEAST)
    # The power may be one more than an exponent can hold; so half of it, times two.
    half = emit.builder.sub(exponent, splat_bits(1))
    found = emit.multiply(emit.multiply(value, emit.constant(2)), _power_of_two(emit, half))
    too_small = emit.builder.fcmp_ordered("<", x, emit.constant(_LEAST))
    return emit.builder.select(too_small, emit.constant(0), found)


def _exp_parts(emit: Emit, x: Value, least: float) -> tuple[Value, Value]:
    """Return ``(m, n)`` with m about 1 and ``exp(x) = m * 2^n``; ``x`` is raised to ``least``."""
    (value, rest), exponent = _exp_terms(emit, x, least)
    return emit.fma(value, rest, emit.add(rest, emit.constant(1))), exponent


def _exp_terms(emit: Emit, x: Value, least: float) -> tuple[tuple[Value, Value], Value]:
    """Return ``(a, r), n`` such that ``exp(x) = (1 + r + a * r) * 2^n``."""
    held = emit.minimum(emit.maximum(x, emit.constant(least)), emit.constant(89))
    n = emit.round(emit.multiply(held, emit.constant(1.44269504088896341)))
    rest = emit.fma(n, emit.constant(-0.693359375), held)
    rest = emit.fma(n, emit.constant(2.12194440e-4), rest)
    terms = 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1
    value = emit.constant(1.9875691500e-4)
    for term in terms:
        value = emit.fma(value, rest, emit.constant(term))
    return (emit.multiply(value, rest), rest), emit.builder.fptosi(n, INTS)


def _power_of_two(emit: Emit, exponent: Value) -> Value:
    biased = emit.builder.add(exponent, splat_bits(127))
    return emit.builder.bitcast(emit.builder.shl(biased, splat_bits(23)), VECTOR)


def _erf(emit: Emit, x: Value) -> Value:
    held = emit.minimum(emit.maximum(x, emit.constant(-4)), emit.constant(4))
    square = emit.multiply(held, held)
    above = emit.constant(-2.72614225801306e-10)
    for term in (
        2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
        -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
    ):  # fmt: skip
        above = emit.fma(above, square, emit.constant(term))
    below = emit.constant(-1.45660718464996e-05)
    for term in (-2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02):
        below = emit.fma(below, square, emit.constant(term))
    return emit.divide(emit.multiply(held, above), below)


def _negative(emit: Emit, x: Value) -> Value:
    return emit.subtract(emit.constant(-0.0), x)


def _sigmoid(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    one = emit.constant(1)
    return emit.divide(one, emit.add(one, exp(emit, _negative(emit, x))))


def _swish(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``x * sigmoid(a * x)``, as ``x / (1 + e^-ax)``."""
    power = exp(emit, _negative(emit, emit.multiply(x, a)))
    return emit.divide(x, emit.add(emit.constant(1), power))


def _tanh(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``1 - 2 / (e^2x + 1)``; near 0, where that cancels, use an odd polynomial."""
    one, two = emit.constant(1), emit.constant(2)
    far = emit.subtract(one, emit.divide(two, emit.add(one, exp(emit, emit.multiply(x, two)))))
    square = emit.multiply(x, x)
    value = emit.constant(-5.70498872745e-3)
    for term in (2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1):
        value = emit.fma(value, square, emit.constant(term))
    near = emit.fma(emit.multiply(value, square), x, x)
    is_near = emit.builder.fcmp_unordered("<", emit.absolute(x), emit.constant(0.625))
    return emit.builder.select(is_near, near, far)


def _gelu(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    inner = _erf(emit, emit.multiply(x, emit.constant(math.sqrt(0.5))))
    return emit.multiply(emit.multiply(emit.constant(0.5), x), emit.add(emit.constant(1), inner))


def _gelu_tanh(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``x / 2 * (1 + tanh(y))``, as ``x / (1 + e^-2y)``, which does not cancel below 0."""
    cube = emit.multiply(emit.multiply(x, x), x)
    inner = emit.multiply(emit.fma(cube, emit.constant(0.044715), x), emit.constant(-math.sqrt(8 / math.pi)))
    return emit.divide(x, emit.add(emit.constant(1), exp(emit, inner)))


def _clamp(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Clamp to the range from ``a`` to ``b``."""
    return emit.minimum(emit.maximum(x, a), b)


def _hard_sigmoid(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``a * x + b``, clamped to 0 and 1."""
    return emit.minimum(emit.maximum(emit.fma(x, a, b), emit.constant(0)), emit.constant(1))


def _hswish(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    gate = emit.minimum(emit.maximum(emit.add(x, emit.constant(3)), emit.constant(0)), emit.constant(6))
    return emit.multiply(x, emit.multiply(gate, emit.constant(1 / 6)))  # in this order nothing overflows


def _elu(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``a * (e^x - 1)`` for negative ``x``."""
    low = emit.multiply(a, _exp_minus_one(emit, x))
    return emit.builder.select(emit.builder.fcmp_ordered("<", x, emit.constant(0)), low, x)


def _exp_minus_one(emit: Emit, x: Value) -> Value:
    """Compute ``exp(x) - 1`` for negative ``x`` without cancellation: a power of two minus 1 is exact."""
    (value, rest), exponent = _exp_terms(emit, x, _LEAST)
    power = _power_of_two(emit, exponent)
    more = emit.subtract(power, emit.constant(1))
    return emit.fma(emit.fma(value, rest, rest), power, more)


def _exp(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``exp(x)``, including subnormal results: only the last of two products rounds."""
    value, exponent = _exp_parts(emit, x, _LEAST_SUBNORMAL)
    half = emit.builder.ashr(exponent, splat_bits(1))
    other = emit.builder.sub(exponent, half)
    return emit.multiply(emit.multiply(value, _power_of_two(emit, half)), _power_of_two(emit, other))


def _leaky(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``a * x`` for negative ``x``."""
    low = emit.multiply(a, x)
    return emit.builder.select(emit.builder.fcmp_ordered("<", x, emit.constant(0)), low, x)


def _mish(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``x * tanh(log(1 + e^x))`` as a quotient of polynomials in ``e^x``."""
    power = exp(emit, emit.minimum(x, emit.constant(20)))
    above = emit.multiply(power, emit.add(power, emit.constant(2)))
    return emit.multiply(x, emit.divide(above, emit.add(above, emit.constant(2))))


def _softplus(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``log(1 + e^x)`` as ``max(x, 0) + log(1 + u)`` with ``u = e^-|x|``.

    With ``s = u / (2 + u)``, that logarithm is ``u - s * (u - r)``, where r is a series in s².
    """
    u = _exp(emit, _negative(emit, emit.absolute(x)), a, b)
    s = emit.divide(u, emit.add(u, emit.constant(2)))
    square = emit.multiply(s, s)
    series = emit.constant(0.23239050521)
    for term in (0.21703315012, 0.28592583415, 0.39999701356, 0.66666667338):
        series = emit.fma(series, square, emit.constant(term))
    shorter = emit.subtract(u, emit.multiply(square, series))
    low = emit.fma(_negative(emit, s), shorter, u)
    return emit.add(emit.maximum(x, emit.constant(0)), low)


def _softsign(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    return emit.divide(x, emit.add(emit.constant(1), emit.absolute(x)))


def _hard_line(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``a * x + b`` with two roundings, clamped to 0 and 1; NaN becomes 1."""
    builder, one, zero = emit.builder, emit.constant(1), emit.constant(0)
    line = emit.add(emit.fence(emit.multiply(x, a)), b)
    line = builder.select(builder.fcmp_ordered("<", line, one), line, one)
    return builder.select(builder.fcmp_ordered(">", line, zero), line, zero)


def _selu(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    return emit.multiply(b, _elu(emit, x, a, b))


_FORMULAS: dict[ActivationKind, Formula] = {
    ActivationKind.CLAMP: _clamp,
    ActivationKind.SIGMOID: _sigmoid,
    ActivationKind.SWISH: _swish,
    ActivationKind.TANH: _tanh,
    ActivationKind.GELU: _gelu,
    ActivationKind.GELU_TANH: _gelu_tanh,
    ActivationKind.HARD_SIGMOID: _hard_sigmoid,
    ActivationKind.HSWISH: _hswish,
    ActivationKind.ELU: _elu,
    ActivationKind.EXP: _exp,
    ActivationKind.LEAKY: _leaky,
    ActivationKind.MISH: _mish,
    ActivationKind.ERF: lambda emit, x, a, b: _erf(emit, x),
    ActivationKind.SOFTPLUS: _softplus,
    ActivationKind.SOFTSIGN: _softsign,
    ActivationKind.HARD_LINE: _hard_line,
    ActivationKind.SELU: _selu,
}


@instruction(*[types.int64] * 5, types.float32, types.float32)
def _apply(
    emit: Emit, address: Value, stride: Value, rows: Value, count: Value, kind: Value, a: Value, b: Value
) -> None:
    first, second = emit.splat(a), emit.splat(b)

    def go(shape: Formula) -> None:
        with emit.loop(rows, [address]) as (_, (row,), following):
            for offset, load, store in emit.vectors(count):
                place = emit.at(row, offset)
                store(shape(emit, load(place), first, second), place)
            following.append(emit.at(row, stride))

    emit.switch(kind, {number: partial(go, shape) for number, shape in _FORMULAS.items()})


@routine(*[types.int64] * 5, types.float32, types.float32)
def apply_activation(address: int, stride: int, rows: int, count: int, kind: int, a: float, b: float) -> None:
    """Apply an activation in place to rows of ``count`` f32 each, ``stride`` bytes apart."""
    _apply(address, stride, rows, count, kind, a, b)
