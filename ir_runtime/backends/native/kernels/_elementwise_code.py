"""Code of element-wise operations on rows of f32: arithmetic, FakeQuantize, batch normalization and activations.

Arithmetic has the bits of the reference. Activations are accurate to a few ULP: the exponential and the error function use
polynomials from Cephes and Eigen, and the other functions are derived from them. NaN stays NaN unless noted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import TypeAlias

from ...common.post_op import QuantizeParameter as P
from ..codegen import ir
from ..codegen.language import instruction, routine, types
from ..codegen.target import TARGET
from ..codegen.vectors import F32, INTS, LANES, VECTOR, Emit, Value, splat_bits

__all__ = [
    "ABSOLUTE",
    "ACTIVATION",
    "ActivationKind",
    "apply_activation",
    "apply_unary",
    "BATCH_NORM",
    "combine",
    "COPY",
    "exp",
    "fake_quantize",
    "normalize_rows",
    "Opcode",
    "QUANTIZE",
]

_DOUBLES, _WORD = ir.VectorType(ir.F64, LANES), ir.IntType(LANES)
_INFINITY = float("inf")
# Below 2^_FEW_BITS, truncating an f32 quotient gives the exact integer quotient or one that is off by 1.
_FEW_BITS = 22
# Below 2^_BITS, the f64 quotient of two f32 numbers rounds to an integer only if it is one.
_BITS = 28
# Reductions by _BITS bits that bring the largest quotient of two f32 numbers, below 2^278, under 2^_BITS.
_STEPS = 9


def mod(emit: Emit, x: Value, y: Value) -> Value:
    """Return the exact remainder of a division truncated toward zero, like C's `fmod`; it has the sign of ``x``."""

    def finish(rest: Value) -> Value:
        sizes = (emit.absolute(value) for value in (x, y))
        remainder = emit.builder.select(emit.builder.fcmp_ordered("<", *sizes), x, rest)
        return emit.intrinsic("llvm.copysign", remainder, x)

    return _remainder(emit, x, y, finish, _mod_in_f64)


def floor_mod(emit: Emit, x: Value, y: Value) -> Value:
    """Return the remainder of a division rounded down, with the bits of the reference's f64 formula; never -0."""
    builder, zero = emit.builder, emit.constant(0)

    def finish(rest: Value) -> Value:
        is_other = builder.and_(_differ(emit, rest, y), builder.fcmp_unordered("!=", rest, zero))
        return emit.add(builder.select(is_other, emit.add(rest, y), rest), zero)

    return _remainder(emit, x, y, finish, _floor_mod_in_f64)


def _remainder(
    emit: Emit, x: Value, y: Value, finish: Callable[[Value], Value], in_f64: Callable[[Emit, Value, Value],
    Value],
) -> Value:  # fmt: skip
    """Return ``finish`` of the truncated remainder of ``x / y``, or ``in_f64(emit, x, y)`` if any quotient is 2^22 or more.

    Targets without FMA always use ``in_f64``.
    """
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
    """Return a mask of the lanes whose sign bits differ."""
    bits = (emit.builder.bitcast(value, INTS) for value in (a, b))
    return emit.builder.icmp_signed("<", emit.builder.xor(*bits), splat_bits(0))


def _any(emit: Emit, mask: Value) -> Value:
    return emit.builder.icmp_unsigned("!=", emit.builder.bitcast(mask, _WORD), ir.Constant(_WORD, 0))


def _mod_in_f64(emit: Emit, x: Value, y: Value) -> Value:
    """Return the truncated remainder by exact f64 steps: reduce modulo ``y`` times decreasing powers of two, then ``y``."""
    builder = emit.builder
    a, b = builder.fpext(x, _DOUBLES), builder.fpext(y, _DOUBLES)
    scaled = builder.fmul(b, _double(2.0 ** (_BITS * _STEPS)))
    with emit.loop(emit.i64(_STEPS), [a, scaled]) as (_, (rest, divisor), following):
        following += [_step(emit, rest, divisor), builder.fmul(divisor, _double(2.0**-_BITS))]
    remainder = builder.fptrunc(_step(emit, following[0], b), VECTOR)
    return emit.intrinsic("llvm.copysign", remainder, x)


def _step(emit: Emit, rest: Value, divisor: Value) -> Value:
    """Reduce ``rest`` modulo ``divisor``, exact for quotients below 2^28."""
    builder = emit.builder
    whole = emit.intrinsic("llvm.trunc", builder.fdiv(rest, divisor))
    reduced = builder.fsub(rest, builder.fmul(whole, divisor))
    sizes = (emit.intrinsic("llvm.fabs", value) for value in (rest, divisor))
    return builder.select(builder.fcmp_ordered("<", *sizes), rest, reduced)


def _floor_mod_in_f64(emit: Emit, x: Value, y: Value) -> Value:
    """Compute ``x - y * floor(x / y)`` in f64, as the reference does."""
    builder = emit.builder
    a, b = builder.fpext(x, _DOUBLES), builder.fpext(y, _DOUBLES)
    product = builder.fmul(b, emit.intrinsic("llvm.floor", builder.fdiv(a, b)))
    product = emit.intrinsic("llvm.arithmetic.fence", product)  # rounded before the difference
    return builder.fptrunc(builder.fsub(a, product), VECTOR)


def _double(x: float) -> Value:
    return ir.Constant(_DOUBLES, [x] * LANES)


# Added to an opcode whose second operand is one number per row.
_SINGLE = 50


class Opcode(IntEnum):
    """Operations on the current result and an operand; those numbered `ABSOLUTE` or higher are unary.

    ``SUBTRACT_FROM``, ``DIVIDE_INTO`` and the names with ``_OF`` swap the operands.
    """

    ADD = 0
    SUBTRACT = 1
    SUBTRACT_FROM = 2
    MULTIPLY = 3
    DIVIDE = 4
    DIVIDE_INTO = 5
    MAXIMUM = 6
    MAXIMUM_OF = 7
    MINIMUM = 8
    MINIMUM_OF = 9
    SQUARED_DIFFERENCE = 10
    MOD = 11
    MOD_OF = 12
    FLOOR_MOD = 13
    FLOOR_MOD_OF = 14
    SLOPE = 15
    QUANTIZE = 16
    BATCH_NORM = 17
    ABSOLUTE = 20
    NEGATIVE = 21
    SQUARE = 22
    ROOT = 23
    FLOOR = 24
    CEILING = 25
    ROUND = 26
    COPY = 27
    ACTIVATION = 100
    """The offset of an `ActivationKind` in opcodes."""


# Integers, as kernels cannot use enumerations.
ABSOLUTE, COPY, ACTIVATION = int(Opcode.ABSOLUTE), int(Opcode.COPY), int(Opcode.ACTIVATION)
QUANTIZE, BATCH_NORM = int(Opcode.QUANTIZE), int(Opcode.BATCH_NORM)


def _maximum(emit: Emit, x: Value, y: Value) -> Value:
    """Return ``y`` if it is greater, else ``x``; also ``x`` if either is NaN."""
    return emit.builder.select(emit.builder.fcmp_ordered("<", x, y), y, x)


def _minimum(emit: Emit, x: Value, y: Value) -> Value:
    return emit.builder.select(emit.builder.fcmp_ordered("<", y, x), y, x)


def _squared_difference(emit: Emit, x: Value, y: Value) -> Value:
    difference = emit.subtract(x, y)
    return emit.multiply(difference, difference)


def _slope(emit: Emit, x: Value, y: Value) -> Value:
    """Return ``x``, multiplied by ``y`` where ``x`` is negative."""
    return emit.builder.select(emit.builder.fcmp_ordered("<", x, emit.constant(0)), emit.multiply(x, y), x)


_BINARY: dict[Opcode, Callable[[Emit, Value, Value], Value]] = {
    Opcode.ADD: lambda emit, x, y: emit.add(x, y),
    Opcode.SUBTRACT: lambda emit, x, y: emit.subtract(x, y),
    Opcode.SUBTRACT_FROM: lambda emit, x, y: emit.subtract(y, x),
    Opcode.MULTIPLY: lambda emit, x, y: emit.multiply(x, y),
    Opcode.DIVIDE: lambda emit, x, y: emit.divide(x, y),
    Opcode.DIVIDE_INTO: lambda emit, x, y: emit.divide(y, x),
    Opcode.MAXIMUM: _maximum,
    Opcode.MAXIMUM_OF: lambda emit, x, y: _maximum(emit, y, x),
    Opcode.MINIMUM: _minimum,
    Opcode.MINIMUM_OF: lambda emit, x, y: _minimum(emit, y, x),
    Opcode.SQUARED_DIFFERENCE: _squared_difference,
    Opcode.MOD: mod,
    Opcode.MOD_OF: lambda emit, x, y: mod(emit, y, x),
    Opcode.FLOOR_MOD: floor_mod,
    Opcode.FLOOR_MOD_OF: lambda emit, x, y: floor_mod(emit, y, x),
    Opcode.SLOPE: _slope,
}

_UNARY: dict[Opcode, Callable[[Emit, Value], Value]] = {
    Opcode.ABSOLUTE: lambda emit, x: emit.absolute(x),
    Opcode.NEGATIVE: lambda emit, x: emit.builder.fneg(x),
    Opcode.SQUARE: lambda emit, x: emit.multiply(x, x),
    Opcode.ROOT: lambda emit, x: emit.sqrt(x),
    Opcode.FLOOR: lambda emit, x: emit.intrinsic("llvm.floor", x),
    Opcode.CEILING: lambda emit, x: emit.intrinsic("llvm.ceil", x),
    Opcode.ROUND: lambda emit, x: emit.round(x),
    Opcode.COPY: lambda emit, x: x,
}


@instruction(*[types.int64] * 8)
def combine(  # noqa: PLR0913 (values in registers)
    emit: Emit, code: Value, single: Value, out: Value, x: Value, y: Value, rows: Value, count: Value,
    apart: Value,
) -> None:  # fmt: skip
    """Store in ``out`` a binary operation of contiguous rows ``x[rows, count]`` and of rows of ``y``, ``apart`` bytes apart.

    ``code`` is an `Opcode`. If ``single``, each row of ``y`` is one number, broadcast along the row of ``x``.
    """
    step = emit.builder.mul(count, emit.i64(4))

    def go(code: Opcode, single: bool) -> None:
        with emit.loop(rows, [out, x, y]) as (_, (target, source, other), following):
            same = [emit.splat(emit.load(other, F32))] if single else []

            for offset, load, store in emit.vectors(count):
                first = load(emit.at(source, offset))
                second = same[0] if single else load(emit.at(other, offset))
                store(_BINARY[code](emit, first, second), emit.at(target, offset))
            following += [emit.at(target, step), emit.at(source, step), emit.at(other, apart)]

    number = emit.builder.add(code, emit.builder.mul(single, emit.i64(_SINGLE)))
    emit.switch(number, {c + s * _SINGLE: partial(go, c, bool(s)) for c in _BINARY for s in (0, 1)})


@instruction(*[types.int64] * 4)
def apply_unary(emit: Emit, code: Value, out: Value, x: Value, count: Value) -> None:
    """Store the unary operation ``code``, an `Opcode`, of ``count`` elements in ``out``."""

    def go(code: Opcode) -> None:
        for offset, load, store in emit.vectors(count):
            store(_UNARY[code](emit, load(emit.at(x, offset))), emit.at(out, offset))

    emit.switch(code, {c: partial(go, c) for c in _UNARY})


RowArguments: TypeAlias = "tuple[Value, Value, Value, Value, Value, Value, Value, Value, Value]"
"""The arguments of `emit_rows` that describe memory, in this order: the addresses of the result and the data, and the bytes
between their rows; the address of the parameters, the bytes between two parameters, the bytes between the parameters of two
rows, and whether a parameter is one number per row; the number of rows, and of elements per row."""

# Parameters of a batch normalization.
MEAN, DEVIATION, FACTOR, SHIFT = range(4)


def emit_rows(
    emit: Emit, arguments: RowArguments, count: int, formula: Callable[[Emit, Value, list[Value]], Value]
) -> None:
    """Emit a loop that stores ``formula(emit, x, parameters)`` for each element ``x`` of the rows.

    Args:
        emit: the code emitter.
        arguments: where the rows and the parameters are, as described at `RowArguments`.
        count: the number of parameters that the formula takes.
        formula: returns the vector of results.
    """
    out, x, stride, parameters, plane, apart, single, rows, length = arguments

    def go(single: bool) -> None:
        with emit.loop(rows, [out, x, parameters]) as (_, (target, source, numbers), following):
            planes = [emit.at(numbers, emit.builder.mul(plane, emit.i64(p))) for p in range(count)]
            same = [emit.splat(emit.load(place, F32)) for place in planes] if single else []

            for offset, load, store in emit.vectors(length):
                values = same or [load(emit.at(place, offset)) for place in planes]
                store(formula(emit, load(emit.at(source, offset)), values), emit.at(target, offset))
            following += [emit.at(target, stride), emit.at(source, stride), emit.at(numbers, apart)]

    with emit.builder.if_else(emit.builder.icmp_signed("!=", single, emit.i64(0))) as (then, otherwise):
        with then:
            go(True)
        with otherwise:
            go(False)


def _normalize(emit: Emit, x: Value, p: list[Value]) -> Value:
    """Compute ``(x - mean) / deviation * factor + shift`` with the reference's order of operations."""
    quotient = emit.divide(emit.subtract(x, p[MEAN]), p[DEVIATION])
    return emit.add(emit.fence(emit.multiply(quotient, p[FACTOR])), p[SHIFT])


@instruction(*[types.int64] * 9)
def normalize_rows(  # noqa: PLR0913 (values in registers)
    emit: Emit, out: Value, x: Value, stride: Value, parameters: Value, plane: Value, apart: Value, single: Value,
    rows: Value, count: Value,
) -> None:  # fmt: skip
    """Apply BatchNormInference to rows; its parameters are mean, deviation, factor and shift.

    The arguments after ``emit`` are described at `RowArguments`.
    """
    emit_rows(emit, (out, x, stride, parameters, plane, apart, single, rows, count), 4, _normalize)


def _quantize(emit: Emit, x: Value, p: list[Value]) -> Value:
    """Return the value of the quantization level nearest to ``x``; NaN stays NaN."""
    builder = emit.builder
    share = _quotient(emit, emit.subtract(x, p[P.LOW]), p[P.WIDTH], p[P.PER_WIDTH], 2)
    level = emit.round(emit.multiply(share, p[P.STEPS]))
    share = _quotient(emit, level, p[P.STEPS], p[P.PER_STEP], 1)
    product = emit.fence(emit.multiply(share, p[P.SPAN]))  # rounded before the sum
    inside = emit.add(product, p[P.FIRST])
    beyond = builder.select(builder.fcmp_ordered(">", x, p[P.TOP]), p[P.LAST], inside)
    return builder.select(builder.fcmp_ordered("<=", x, p[P.BOTTOM]), p[P.FIRST], beyond)


def _quotient(emit: Emit, a: Value, b: Value, reciprocal: Value, corrections: int) -> Value:
    """Return ``a / b``, correctly rounded, from the correctly rounded reciprocal of ``b``.

    With FMA, Newton corrections of the approximate quotient round correctly (Markstein 1990, "Computation of elementary
    functions on the IBM RISC System/6000 processor") and are faster than a division. One correction suffices for 16-bit
    integers, since no quotient of two is close to the midpoint of two f32 numbers.
    """
    if not TARGET.vectors.has_fma:
        return emit.divide(a, b)
    minus, quotient = emit.builder.fneg(b), emit.multiply(a, reciprocal)
    for _ in range(corrections):
        quotient = emit.fma(emit.fma(minus, quotient, a), reciprocal, quotient)
    return quotient


@instruction(*[types.int64] * 9)
def fake_quantize(  # noqa: PLR0913 (values in registers)
    emit: Emit, out: Value, x: Value, stride: Value, parameters: Value, plane: Value, apart: Value, single: Value,
    rows: Value, count: Value,
) -> None:  # fmt: skip
    """Apply FakeQuantize to rows of f32 that are ``stride`` bytes apart in ``x`` and ``out``.

    ``parameters`` holds one plane for each `QuantizeParameter`; all arguments after ``emit`` are described at `RowArguments`.
    """
    emit_rows(emit, (out, x, stride, parameters, plane, apart, single, rows, count), len(P), _quantize)


# Below this x, exp(x) is subnormal.
_LEAST = -86.6
# Below this x, exp(x) rounds to 0, even with subnormal numbers.
_LEAST_SUBNORMAL = -104.0
Formula = Callable[[Emit, Value, Value, Value], Value]
"""Returns an activation of a vector, given its two parameters as vectors."""


class ActivationKind(IntEnum):
    """Activation functions, as numbered in kernels."""

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
    """Compute ``exp(x)``; subnormal results, below x = -86.6, become 0."""
    value, exponent = _exp_parts(emit, x, _LEAST)
    # 2^n may overflow although exp(x) does not, so multiply by 2 and 2^(n-1).
    half = emit.builder.sub(exponent, splat_bits(1))
    power = emit.multiply(emit.multiply(value, emit.constant(2)), _power_of_two(emit, half))
    too_small = emit.builder.fcmp_ordered("<", x, emit.constant(_LEAST))
    return emit.builder.select(too_small, emit.constant(0), power)


def _exp_parts(emit: Emit, x: Value, least: float) -> tuple[Value, Value]:
    """Return ``(m, n)`` with m about 1 and ``exp(x) = m * 2^n``, after clamping ``x`` to ``least`` and 89."""
    (value, rest), exponent = _exp_terms(emit, x, least)
    return emit.fma(value, rest, emit.add(rest, emit.constant(1))), exponent


def _exp_terms(emit: Emit, x: Value, least: float) -> tuple[tuple[Value, Value], Value]:
    """Return ``(a, r), n`` with ``exp(x) = (1 + r + a * r) * 2^n``, after clamping ``x`` to ``least`` and 89."""
    clamped = emit.minimum(emit.maximum(x, emit.constant(least)), emit.constant(89))
    n = emit.round(emit.multiply(clamped, emit.constant(1.44269504088896341)))
    rest = emit.fma(n, emit.constant(-0.693359375), clamped)
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
    clamped = emit.minimum(emit.maximum(x, emit.constant(-4)), emit.constant(4))
    square = emit.multiply(clamped, clamped)
    above = emit.constant(-2.72614225801306e-10)
    for term in (
        2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
        -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
    ):  # fmt: skip
        above = emit.fma(above, square, emit.constant(term))
    below = emit.constant(-1.45660718464996e-05)
    for term in (-2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02):
        below = emit.fma(below, square, emit.constant(term))
    return emit.divide(emit.multiply(clamped, above), below)


def _negate(emit: Emit, x: Value) -> Value:
    return emit.subtract(emit.constant(-0.0), x)


def _sigmoid(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    one = emit.constant(1)
    return emit.divide(one, emit.add(one, exp(emit, _negate(emit, x))))


def _swish(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``x * sigmoid(a * x)``, as ``x / (1 + e^-ax)``."""
    power = exp(emit, _negate(emit, emit.multiply(x, a)))
    return emit.divide(x, emit.add(emit.constant(1), power))


def _tanh(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute tanh as ``1 - 2 / (e^2x + 1)``, or below |x| = 0.625, where that cancels, by an odd polynomial."""
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
    """Compute ``x / 2 * (1 + tanh(y))`` as ``x / (1 + e^-2y)``, which does not cancel for negative ``y``."""
    cube = emit.multiply(emit.multiply(x, x), x)
    inner = emit.multiply(emit.fma(cube, emit.constant(0.044715), x), emit.constant(-math.sqrt(8 / math.pi)))
    return emit.divide(x, emit.add(emit.constant(1), exp(emit, inner)))


def _clamp(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Clamp ``x`` to the range from ``a`` to ``b``."""
    return emit.minimum(emit.maximum(x, a), b)


def _hard_sigmoid(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``a * x + b``, by FMA where available, clamped to 0 and 1."""
    return emit.minimum(emit.maximum(emit.fma(x, a, b), emit.constant(0)), emit.constant(1))


def _hswish(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    gate = emit.minimum(emit.maximum(emit.add(x, emit.constant(3)), emit.constant(0)), emit.constant(6))
    return emit.multiply(x, emit.multiply(gate, emit.constant(1 / 6)))  # in this order nothing overflows


def _elu(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Return ``x``, or ``a * (e^x - 1)`` where ``x`` is negative."""
    low = emit.multiply(a, _exp_minus_one(emit, x))
    return emit.builder.select(emit.builder.fcmp_ordered("<", x, emit.constant(0)), low, x)


def _exp_minus_one(emit: Emit, x: Value) -> Value:
    """Compute ``exp(x) - 1`` for negative ``x`` as ``(r + a * r) * 2^n + (2^n - 1)``, without cancellation."""
    (value, rest), exponent = _exp_terms(emit, x, _LEAST)
    power = _power_of_two(emit, exponent)
    power_minus_one = emit.subtract(power, emit.constant(1))
    return emit.fma(emit.fma(value, rest, rest), power, power_minus_one)


def _exp(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``exp(x)``, including subnormal results: ``2^n`` is two factors, and only the last product rounds."""
    value, exponent = _exp_parts(emit, x, _LEAST_SUBNORMAL)
    half = emit.builder.ashr(exponent, splat_bits(1))
    other = emit.builder.sub(exponent, half)
    return emit.multiply(emit.multiply(value, _power_of_two(emit, half)), _power_of_two(emit, other))


def _leaky(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Return ``x``, or ``a * x`` where ``x`` is negative."""
    low = emit.multiply(a, x)
    return emit.builder.select(emit.builder.fcmp_ordered("<", x, emit.constant(0)), low, x)


def _mish(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``x * tanh(log(1 + e^x))`` as ``x`` times a quotient of polynomials in ``e^x``."""
    power = exp(emit, emit.minimum(x, emit.constant(20)))
    above = emit.multiply(power, emit.add(power, emit.constant(2)))
    return emit.multiply(x, emit.divide(above, emit.add(above, emit.constant(2))))


def _softplus(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``log(1 + e^x)`` as ``max(x, 0) + log(1 + u)`` with ``u = e^-|x|``.

    With ``s = u / (2 + u)``, the logarithm is ``u - s * (u - r)``, where r is a series in s².
    """
    u = _exp(emit, _negate(emit, emit.absolute(x)), a, b)
    s = emit.divide(u, emit.add(u, emit.constant(2)))
    square = emit.multiply(s, s)
    series = emit.constant(0.23239050521)
    for term in (0.21703315012, 0.28592583415, 0.39999701356, 0.66666667338):
        series = emit.fma(series, square, emit.constant(term))
    shorter = emit.subtract(u, emit.multiply(square, series))
    low = emit.fma(_negate(emit, s), shorter, u)
    return emit.add(emit.maximum(x, emit.constant(0)), low)


def _softsign(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    return emit.divide(x, emit.add(emit.constant(1), emit.absolute(x)))


def _hard_line(emit: Emit, x: Value, a: Value, b: Value) -> Value:
    """Compute ``a * x + b`` clamped to 0 and 1, without FMA contraction; NaN becomes 1."""
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
    """Apply an activation in place to rows of ``count`` f32 elements, ``stride`` bytes apart.

    ``kind`` is an `ActivationKind`; ``a`` and ``b`` are its parameters.
    """
    _apply(address, stride, rows, count, kind, a, b)
