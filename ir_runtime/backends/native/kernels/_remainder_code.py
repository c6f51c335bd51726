"""Remainders of divisions of f32, with the bits of the reference.

Where a quotient has few bits, that rounded towards zero is right or one too large, and the remainder of it is an f32: so one FMA
computes it exactly. Lanes with larger quotients are computed in f64.
"""

from __future__ import annotations

from collections.abc import Callable

from ..codegen import ir
from ..codegen.target import TARGET
from ..codegen.vectors import INTS, LANES, VECTOR, Emit, Value, splat_bits

__all__ = ["floor_mod", "mod"]

_DOUBLES, _WORD = ir.VectorType(ir.F64, LANES), ir.IntType(LANES)
_INFINITY = float("inf")
# A quotient in f32 is rounded to an integer by less than one, as long as it is smaller.
_FEW_BITS = 22
# A quotient in f64 of two f32 is rounded to an integer only if it is one, as long as it is smaller.
_BITS = 28
# Steps of that many bits from the largest quotient of two f32, below 2^278, to the last.
_STEPS = 9


def mod(emit: Emit, x: Value, y: Value) -> Value:
    """Return the remainder of ``x / y`` rounded towards zero, exactly, as `fmod` of C does; it has the sign of ``x``."""

    def finished(rest: Value) -> Value:
        sizes = (emit.absolute(value) for value in (x, y))
        found = emit.builder.select(emit.builder.fcmp_ordered("<", *sizes), x, rest)
        return emit.intrinsic("llvm.copysign", found, x)

    return _remainder(emit, x, y, finished, _mod_in_f64)


def floor_mod(emit: Emit, x: Value, y: Value) -> Value:
    """Return the remainder of ``x / y`` rounded down, as the formula of the reference gives it in f64; never -0."""
    builder, zero = emit.builder, emit.constant(0)

    def finished(rest: Value) -> Value:
        is_other = builder.and_(_differ(emit, rest, y), builder.fcmp_unordered("!=", rest, zero))
        return emit.add(builder.select(is_other, emit.add(rest, y), rest), zero)

    return _remainder(emit, x, y, finished, _floor_mod_in_f64)


def _remainder(
    emit: Emit,
    x: Value,
    y: Value,
    finish: Callable[[Value], Value],
    in_f64: Callable[[Emit, Value, Value], Value],
) -> Value:
    """Return what a function makes of the remainder rounded towards zero, or, if a quotient has many bits, one in f64."""
    if not TARGET.vectors.has_fma:
        return in_f64(emit, x, y)
    builder = emit.builder
    quotient = emit.divide(x, y)
    is_far = builder.and_(
        builder.fcmp_ordered(">=", emit.absolute(quotient), emit.constant(2.0**_FEW_BITS)),
        builder.and_(
            builder.fcmp_ordered("<", emit.absolute(x), emit.constant(_INFINITY)),
            builder.fcmp_ordered("!=", y, emit.constant(0)),
        ),
    )

    def near() -> list[Value]:
        rest = emit.fma(builder.fneg(emit.intrinsic("llvm.trunc", quotient)), y, x)
        back = emit.intrinsic("llvm.copysign", y, x)
        is_over = builder.and_(_differ(emit, rest, x), builder.fcmp_unordered("!=", rest, emit.constant(0)))
        return [finish(builder.select(is_over, emit.add(rest, back), rest))]

    return emit.if_else(_any(emit, is_far), lambda: [in_f64(emit, x, y)], near)[0]


def _differ(emit: Emit, a: Value, b: Value) -> Value:
    """Return whether the signs of f32 differ."""
    bits = (emit.builder.bitcast(value, INTS) for value in (a, b))
    return emit.builder.icmp_signed("<", emit.builder.xor(*bits), splat_bits(0))


def _any(emit: Emit, mask: Value) -> Value:
    return emit.builder.icmp_unsigned("!=", emit.builder.bitcast(mask, _WORD), ir.Constant(_WORD, 0))


def _mod_in_f64(emit: Emit, x: Value, y: Value) -> Value:
    """Take remainders of divisors times powers of two first, so that each quotient has few bits: all operations are exact."""
    builder = emit.builder
    a, b = builder.fpext(x, _DOUBLES), builder.fpext(y, _DOUBLES)
    scaled = builder.fmul(b, _double(2.0 ** (_BITS * _STEPS)))
    with emit.loop(emit.i64(_STEPS), [a, scaled]) as (_, (rest, divisor), following):
        following += [_step(emit, rest, divisor), builder.fmul(divisor, _double(2.0**-_BITS))]
    found = builder.fptrunc(_step(emit, following[0], b), VECTOR)
    return emit.intrinsic("llvm.copysign", found, x)


def _step(emit: Emit, rest: Value, divisor: Value) -> Value:
    """Return the remainder of a division whose quotient has few bits; ``rest`` itself if it is smaller than the divisor."""
    builder = emit.builder
    whole = emit.intrinsic("llvm.trunc", builder.fdiv(rest, divisor))
    found = builder.fsub(rest, builder.fmul(whole, divisor))
    sizes = (emit.intrinsic("llvm.fabs", value) for value in (rest, divisor))
    return builder.select(builder.fcmp_ordered("<", *sizes), rest, found)


def _floor_mod_in_f64(emit: Emit, x: Value, y: Value) -> Value:
    """Compute the formula of the reference, in f64 as there."""
    builder = emit.builder
    a, b = builder.fpext(x, _DOUBLES), builder.fpext(y, _DOUBLES)
    product = builder.fmul(b, emit.intrinsic("llvm.floor", builder.fdiv(a, b)))
    product = emit.intrinsic("llvm.arithmetic.fence", product)  # rounded before the difference
    return builder.fptrunc(builder.fsub(a, product), VECTOR)


def _double(x: float) -> Value:
    return ir.Constant(_DOUBLES, [x] * LANES)
