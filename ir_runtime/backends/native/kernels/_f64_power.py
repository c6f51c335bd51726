"""Powers of f64 in vectors, with errors of about 1e-10: exact enough for results that are rounded to f32."""

from __future__ import annotations

import math

from ..codegen import ir
from ..codegen.target import TARGET
from ..codegen.vectors import LANES, Emit, Value
from ._reduction_steps import DOUBLES, doubles

__all__ = ["negative_power"]

WORDS = ir.VectorType(ir.I64, LANES)
# The logarithm of 1 + x to the base 2 is an odd series in x / (2 + x); the power of two is the exponential series.
_LOGARITHM = [2 / math.log(2) / n for n in range(11, 0, -2)]
_POWER = [math.log(2) ** n / math.factorial(n) for n in range(8, -1, -1)]
_MOST = 1020.0
_ONE, _MANTISSA = 0x3FF0000000000000, 0x000FFFFFFFFFFFFF
_HALF_ROOT = 0x3FE6A09E667F3BCD
"""The bits of the square root of 1/2."""
_ROUNDING = 1.5 * 2**52
"""Adding this rounds a number to an integer, whose lowest bits are then those of the sum."""


def _words(n: int) -> Value:
    return ir.Constant(WORDS, [n] * LANES)


def _fma(emit: Emit, a: Value, b: Value, c: Value) -> Value:
    if not TARGET.vectors.has_fma:
        return emit.builder.fadd(emit.builder.fmul(a, b), c)
    return emit.intrinsic("llvm.fma", a, b, c)


def _series(emit: Emit, x: Value, terms: list[float]) -> Value:
    found = doubles(terms[0])
    for term in terms[1:]:
        found = _fma(emit, found, x, doubles(term))
    return found


def _logarithm(emit: Emit, x: Value) -> Value:
    """Compute the logarithm to the base 2 of positive normal numbers."""
    builder, bits = emit.builder, emit.builder.bitcast(x, WORDS)
    above = builder.sub(bits, _words(_HALF_ROOT))
    exponent = builder.ashr(above, _words(52))
    mantissa = builder.add(builder.and_(above, _words(_MANTISSA)), _words(_HALF_ROOT))
    part = builder.bitcast(mantissa, DOUBLES)
    s = builder.fdiv(builder.fsub(part, doubles(1)), builder.fadd(part, doubles(1)))
    odd = builder.fmul(s, _series(emit, builder.fmul(s, s), _LOGARITHM))
    return builder.fadd(builder.sitofp(exponent, DOUBLES), odd)


def _power_of_two(emit: Emit, x: Value) -> Value:
    """Compute the power of two, for numbers within ±`_MOST`."""
    builder = emit.builder
    sum = builder.fadd(x, doubles(_ROUNDING))
    part = _series(emit, builder.fsub(x, builder.fsub(sum, doubles(_ROUNDING))), _POWER)
    scale = builder.add(builder.shl(builder.bitcast(sum, WORDS), _words(52)), _words(_ONE))
    return builder.fmul(part, builder.bitcast(scale, DOUBLES))


def negative_power(emit: Emit, x: Value, exponent: Value) -> Value:
    """Compute ``x ** -exponent`` of positive f64 that are not subnormal; 0 of infinity, and NaN of NaN."""
    builder = emit.builder
    power = builder.fmul(builder.fneg(exponent), _logarithm(emit, x))
    power = builder.select(builder.fcmp_ordered("<", power, doubles(_MOST)), power, doubles(_MOST))
    power = builder.select(builder.fcmp_ordered(">", power, doubles(-_MOST)), power, doubles(-_MOST))
    infinite = doubles(math.inf)
    other = builder.select(builder.fcmp_ordered("==", x, infinite), doubles(0), x)
    return builder.select(builder.fcmp_ordered("<", x, infinite), _power_of_two(emit, power), other)
