"""Local response normalization (LRN): sums of squares over a window along an axis, raised to a power, in f64.

Powers are accurate to about 1e-10, so results rounded to f32 equal the reference's.
"""

from __future__ import annotations

import math

import numpy as np

from ....ir.tensor import Value
from ....ops.normalization import LRN
from ... import Kernel
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import i64
from ..codegen.language import device, instruction, types
from ..codegen.target import TARGET
from ..codegen.vectors import LANES, VECTOR, Emit
from ..codegen.vectors import Value as Register
from ._columns import (
    ABREAST,
    ColumnsJob,
    ColumnsPlan,
    column_sizes,
    columns_kernel,
    columns_task,
    known_axes,
    load_sizes,
    plan_axes,
)
from ._reductions import DOUBLES, F64, STEPS, Reduction, doubles, spread, widened

__all__: list[str] = []

WORDS = ir.VectorType(ir.I64, LANES)
# The logarithm of 1 + x to the base 2 is an odd series in x / (2 + x); the power of two is the exponential series.
_LOGARITHM = [2 / math.log(2) / n for n in range(11, 0, -2)]
_POWER = [math.log(2) ** n / math.factorial(n) for n in range(8, -1, -1)]
_MOST = 1020.0
_ONE, _MANTISSA = 0x3FF0000000000000, 0x000FFFFFFFFFFFFF
_HALF_ROOT = 0x3FE6A09E667F3BCD
"""The bits of the square root of 1/2."""
_ROUNDING = 1.5 * 2**52
"""Adding this number rounds to an integer, which the low bits of the sum then hold."""


def _words(n: int) -> Register:
    return ir.Constant(WORDS, [n] * LANES)


def _fma(emit: Emit, a: Register, b: Register, c: Register) -> Register:
    if not TARGET.vectors.has_fma:
        return emit.builder.fadd(emit.builder.fmul(a, b), c)
    return emit.intrinsic("llvm.fma", a, b, c)


def _series(emit: Emit, x: Register, terms: list[float]) -> Register:
    found = doubles(terms[0])
    for term in terms[1:]:
        found = _fma(emit, found, x, doubles(term))
    return found


def _logarithm(emit: Emit, x: Register) -> Register:
    """Compute the base-2 logarithm of positive normal numbers."""
    builder, bits = emit.builder, emit.builder.bitcast(x, WORDS)
    above = builder.sub(bits, _words(_HALF_ROOT))
    exponent = builder.ashr(above, _words(52))
    mantissa = builder.add(builder.and_(above, _words(_MANTISSA)), _words(_HALF_ROOT))
    part = builder.bitcast(mantissa, DOUBLES)
    s = builder.fdiv(builder.fsub(part, doubles(1)), builder.fadd(part, doubles(1)))
    odd = builder.fmul(s, _series(emit, builder.fmul(s, s), _LOGARITHM))
    return builder.fadd(builder.sitofp(exponent, DOUBLES), odd)


def _power_of_two(emit: Emit, x: Register) -> Register:
    """Compute 2 to a power within ±`_MOST`."""
    builder = emit.builder
    sum = builder.fadd(x, doubles(_ROUNDING))
    part = _series(emit, builder.fsub(x, builder.fsub(sum, doubles(_ROUNDING))), _POWER)
    scale = builder.add(builder.shl(builder.bitcast(sum, WORDS), _words(52)), _words(_ONE))
    return builder.fmul(part, builder.bitcast(scale, DOUBLES))


def negative_power(emit: Emit, x: Register, exponent: Register) -> Register:
    """Compute ``x ** -exponent`` of positive normal f64; infinity gives 0, and NaN stays NaN."""
    builder = emit.builder
    power = builder.fmul(builder.fneg(exponent), _logarithm(emit, x))
    power = builder.select(builder.fcmp_ordered("<", power, doubles(_MOST)), power, doubles(_MOST))
    power = builder.select(builder.fcmp_ordered(">", power, doubles(-_MOST)), power, doubles(-_MOST))
    infinite = doubles(math.inf)
    other = builder.select(builder.fcmp_ordered("==", x, infinite), doubles(0), x)
    return builder.select(builder.fcmp_ordered("<", x, infinite), _power_of_two(emit, power), other)


# The greatest exponent, and the least bias, whose power is far from overflow.
MOST_BETA = 8.0
LEAST_BIAS = 1e-9


class ResponseJob(ColumnsJob):
    """The job of `RESPONSE`: window elements before and after the centre; numbers are f64 bits."""

    reach: i64
    bias: i64
    scale: i64
    beta: i64


@instruction(*[types.int64] * 9)
def _normalize(  # noqa: PLR0913 (values in registers)
    emit: Emit, x: Register, stride: Register, before: Register, window: Register, count: Register, out:
    Register, bias: Register, scale: Register, beta: Register,
) -> None:  # fmt: skip
    """Normalize ``count`` neighbours in a row over a window of rows, ``stride`` bytes apart, that starts before them."""
    builder = emit.builder
    low, factor, exponent = (spread(emit, builder.bitcast(bits, F64)) for bits in (bias, scale, beta))
    square = STEPS[Reduction.L2].step

    for offset, access in emit.strips(count, ABREAST):
        places, source = [4 * LANES * j for j in range(len(access))], emit.at(x, offset)
        start = [doubles(0)] * len(access)
        with emit.loop(window, [builder.sub(source, before), *start]) as (_, (at, *sums), following):
            following.append(emit.at(at, stride))
            for (load, _), sum, place in zip(access, sums, places, strict=True):
                following.append(square(emit, sum, load(emit.at(at, place))))
        for (load, store), sum, place in zip(access, following[1:], places, strict=True):
            power = negative_power(emit, builder.fadd(low, builder.fmul(factor, sum)), exponent)
            wide = builder.fmul(widened(emit, load(emit.at(source, place))), power)
            store(builder.fptrunc(wide, VECTOR), emit.at(emit.at(out, offset), place))


@device
def _respond(job: ResponseJob, x: int, out: int, row: int, column: int) -> None:
    _, length, inner, block = load_sizes(job)
    reach, bias, scale, beta = job.reach, job.bias, job.scale, job.beta
    stride = 4 * inner
    for place in range(length):
        at = 4 * ((row * length + place) * inner + column)
        first, end = max(place - reach, 0), min(place + reach + 1, length)
        _normalize(
            x + at, stride, (place - first) * stride, end - first, min(block, inner - column), out + at, bias,
            scale, beta,
        )  # fmt: skip


RESPONSE = columns_task("response", _respond)
"""Normalize A ``[outer, length, inner]`` by windows along the middle axis."""


@backend.accelerates(LRN)
def local_response(op: LRN, data: Value, axes: Value) -> Kernel | None:
    """Support f32 along one constant axis, with positive sums and moderate powers."""
    along = known_axes(data, axes)
    if along is None or len(along) > 1 or not 0 <= op.alpha < np.inf or not LEAST_BIAS <= op.bias < np.inf:
        return None
    if op.beta > MOST_BETA:
        return None
    numbers = np.array([op.bias, op.alpha / op.size, op.beta]).view(np.int64).tolist()
    (axis,) = along

    def plan(shape: tuple[int, ...], strides: tuple[int, ...]) -> ColumnsPlan:
        """Return the plan; rows are read as columns."""
        order = [*plan_axes(shape, strides, along, True).order]
        if order[-1] == axis:
            order.insert(0, order.pop())
        place = order.index(axis)
        lengths = [shape[axis] for axis in order]
        sizes = int(np.prod(lengths[:place])), lengths[place], int(np.prod(lengths[place + 1 :]))
        job = ResponseJob.fill(
            **column_sizes(sizes), reach=(op.size - 1) // 2, bias=numbers[0], scale=numbers[1],
            beta=numbers[2],
        )  # fmt: skip
        return ColumnsPlan(order, np.argsort(order).tolist(), job)

    return columns_kernel(RESPONSE, plan)
