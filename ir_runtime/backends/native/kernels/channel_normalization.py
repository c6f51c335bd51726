"""NormalizeL2, GRN and LRN: f32 data divided by norms that are computed in f64, as in the reference.

NormalizeL2 and GRN divide by the root of the sum of squares over axes. LRN (local response normalization) divides by a power
of the sum of squares over a window along an axis. The power is accurate to about 1e-10, so that results rounded to f32 equal
those of the reference.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ....ir.tensor import Value
from ....ops.normalization import GRN, LRN, NormalizeL2
from ... import Kernel
from ...common.layout import is_f32
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import i64
from ..codegen.language import device, instruction, types
from ..codegen.target import TARGET
from ..codegen.vectors import LANES, VECTOR, Emit, Load, Store
from ..codegen.vectors import Value as Emitted
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
from ._reductions import DOUBLES, F64, STEPS, Reduction, doubles, reduce_row, spread, square_root, widen


class L2Job(ColumnsJob):
    """Parameters of `NORMALIZE_L2`.

    ``epsilon`` has the bits of an f64, which is added to sums of squares if ``adds``, else is their lower bound.
    """

    epsilon: i64
    adds: i64


def _factor(emit: Emit, squares: Emitted, epsilon: Emitted, adds: Emitted) -> Emitted:
    """Return the reciprocal of the norm in f64, given sums of squares; NaN stays NaN."""
    builder = emit.builder
    guard = spread(emit, builder.bitcast(epsilon, F64))
    is_larger = builder.fcmp_unordered(">", squares, guard)
    most = builder.select(is_larger, squares, guard)
    is_sum = builder.icmp_signed("!=", adds, emit.i64(0))
    guarded = builder.select(is_sum, builder.fadd(squares, guard), most)
    return builder.fdiv(doubles(1), square_root(emit, guarded))


def _scale(emit: Emit, x: Emitted, factor: Emitted) -> Emitted:
    return emit.builder.fptrunc(emit.builder.fmul(widen(emit, x), factor), VECTOR)


@instruction(*[types.int64] * 7)
def _normalize_columns(
    emit: Emit, x: Emitted, stride: Emitted, length: Emitted, count: Emitted, out: Emitted, epsilon: Emitted,
    adds: Emitted,
) -> None:  # fmt: skip
    """Divide ``count`` columns of ``length`` elements, whose rows are ``stride`` bytes apart, by their norms."""
    steps = STEPS[Reduction.L2]

    for offset, access in emit.strips(count, ABREAST):
        places, source = [4 * LANES * j for j in range(len(access))], emit.at(x, offset)
        with emit.loop(length, [source, *[steps.start] * len(access)]) as (_, (at, *now), following):
            following.append(emit.at(at, stride))
            for (load, _), sum, place in zip(access, now, places, strict=True):
                following.append(steps.step(emit, sum, load(emit.at(at, place))))
        factors = [_factor(emit, squares, epsilon, adds) for squares in following[1:]]
        with emit.loop(length, [source, emit.at(out, offset)]) as (_, (at, to), following):
            for (load, store), factor, place in zip(access, factors, places, strict=True):
                store(_scale(emit, load(emit.at(at, place)), factor), emit.at(to, place))
            following += [emit.at(at, stride), emit.at(to, stride)]


@instruction(*[types.int64] * 5)
def _normalize_row(
    emit: Emit, x: Emitted, count: Emitted, out: Emitted, epsilon: Emitted, adds: Emitted
) -> None:
    """Divide a row of ``count`` contiguous elements by its norm."""
    steps = STEPS[Reduction.L2]

    def step(sum: Emitted, offset: Emitted, load: Load, _: Store) -> Emitted:
        return steps.step(emit, sum, load(emit.at(x, offset)))

    join = partial(steps.join, emit)
    squares = emit.reduce(reduce_row(emit, count, steps.start, step, join), join)
    factor = _factor(emit, spread(emit, squares), epsilon, adds)
    for offset, load, store in emit.vectors(count):
        store(_scale(emit, load(emit.at(x, offset)), factor), emit.at(out, offset))


@device
def _normalize_block(job: L2Job, x: int, out: int, row: int, column: int) -> None:
    _, length, inner, block = load_sizes(job)
    epsilon, adds = job.epsilon, job.adds
    at = 4 * (row * length * inner + column)
    _normalize_columns(x + at, 4 * inner, length, min(block, inner - column), out + at, epsilon, adds)


@device
def _normalize_rows(job: L2Job, x: int, out: int, first: int, end: int) -> None:
    length = job.length
    epsilon, adds = job.epsilon, job.adds
    for row in range(first, end):
        at = 4 * length * row
        _normalize_row(x + at, length, out + at, epsilon, adds)


NORMALIZE_L2 = columns_task("normalize_l2", _normalize_block, _normalize_rows)
"""Divide A ``[outer, length, inner]`` by its norm along the middle axis."""


@backend.accelerates(NormalizeL2)
def normalize_l2(op: NormalizeL2, data: Value, axes: Value) -> Kernel | None:
    """Return a NormalizeL2 kernel for f32 data of known rank and at least one axis, all constant; else ``None``."""
    along = known_axes(data, axes)
    return None if along is None else _kernel(along, op.eps, op.eps_mode == "add")


@backend.accelerates(GRN)
def grn(op: GRN, data: Value) -> Kernel | None:
    """Return a GRN kernel for f32 data of rank 2 or more, else ``None``."""
    rank = data.shape.rank
    return _kernel(frozenset({1}), op.bias, True) if is_f32(data) and rank is not None and rank > 1 else None


def _kernel(along: frozenset[int], epsilon: float, adds: bool) -> Kernel:
    bits = int(np.float64(epsilon).view(np.int64))

    def plan(shape: tuple[int, ...], strides: tuple[int, ...]) -> ColumnsPlan:
        order, sizes, _, back = plan_axes(shape, strides, along, True)
        return ColumnsPlan(order, back, L2Job.fill(**column_sizes(sizes), epsilon=bits, adds=adds))

    return columns_kernel(NORMALIZE_L2, plan)


WORDS = ir.VectorType(ir.I64, LANES)
# Coefficients, highest power first, of log2(1 + x) as an odd series in x / (2 + x), and of 2^x as a power series.
_LOGARITHM = [2 / math.log(2) / n for n in range(11, 0, -2)]
_POWER = [math.log(2) ** n / math.factorial(n) for n in range(8, -1, -1)]
_MOST = 1020.0
_ONE, _MANTISSA = 0x3FF0000000000000, 0x000FFFFFFFFFFFFF
_HALF_ROOT = 0x3FE6A09E667F3BCD
"""The bits of the square root of 1/2."""
_ROUNDING = 1.5 * 2**52
"""Adding this number rounds an f64 to an integer, which is then in the low bits of the sum."""


def _words(n: int) -> Register:
    return ir.Constant(WORDS, [n] * LANES)


def _fma(emit: Emit, a: Register, b: Register, c: Register) -> Register:
    if not TARGET.vectors.has_fma:
        return emit.builder.fadd(emit.builder.fmul(a, b), c)
    return emit.intrinsic("llvm.fma", a, b, c)


def _series(emit: Emit, x: Register, terms: list[float]) -> Register:
    """Evaluate the polynomial with coefficients ``terms``, highest power first, by Horner's rule."""
    value = doubles(terms[0])
    for term in terms[1:]:
        value = _fma(emit, value, x, doubles(term))
    return value


def _logarithm(emit: Emit, x: Register) -> Register:
    """Compute the base-2 logarithm of positive normal f64 numbers."""
    builder, bits = emit.builder, emit.builder.bitcast(x, WORDS)
    above = builder.sub(bits, _words(_HALF_ROOT))
    exponent = builder.ashr(above, _words(52))
    mantissa = builder.add(builder.and_(above, _words(_MANTISSA)), _words(_HALF_ROOT))
    part = builder.bitcast(mantissa, DOUBLES)
    s = builder.fdiv(builder.fsub(part, doubles(1)), builder.fadd(part, doubles(1)))
    odd = builder.fmul(s, _series(emit, builder.fmul(s, s), _LOGARITHM))
    return builder.fadd(builder.sitofp(exponent, DOUBLES), odd)


def _power_of_two(emit: Emit, x: Register) -> Register:
    """Compute ``2 ** x`` in f64 for ``x`` from -`_MOST` to `_MOST`."""
    builder = emit.builder
    sum = builder.fadd(x, doubles(_ROUNDING))
    part = _series(emit, builder.fsub(x, builder.fsub(sum, doubles(_ROUNDING))), _POWER)
    scale = builder.add(builder.shl(builder.bitcast(sum, WORDS), _words(52)), _words(_ONE))
    return builder.fmul(part, builder.bitcast(scale, DOUBLES))


def negative_power(emit: Emit, x: Register, exponent: Register) -> Register:
    """Compute ``x ** -exponent`` of positive normal f64 numbers; infinity gives 0, and NaN stays NaN."""
    builder = emit.builder
    power = builder.fmul(builder.fneg(exponent), _logarithm(emit, x))
    power = builder.select(builder.fcmp_ordered("<", power, doubles(_MOST)), power, doubles(_MOST))
    power = builder.select(builder.fcmp_ordered(">", power, doubles(-_MOST)), power, doubles(-_MOST))
    infinite = doubles(math.inf)
    other = builder.select(builder.fcmp_ordered("==", x, infinite), doubles(0), x)
    return builder.select(builder.fcmp_ordered("<", x, infinite), _power_of_two(emit, power), other)


# The largest exponent and the smallest bias for which powers are far from overflow.
MOST_BETA = 8.0
LEAST_BIAS = 1e-9


class ResponseJob(ColumnsJob):
    """Parameters of `RESPONSE`.

    A window has ``reach`` elements before and after its centre; ``bias``, ``scale`` and ``beta`` are the bits of f64.
    """

    reach: i64
    bias: i64
    scale: i64
    beta: i64


@instruction(*[types.int64] * 9)
def _normalize(  # noqa: PLR0913 (values in registers)
    emit: Emit, x: Register, stride: Register, before: Register, window: Register, count: Register, out:
    Register, bias: Register, scale: Register, beta: Register,
) -> None:  # fmt: skip
    """Apply LRN to ``count`` elements of a row: divide each by a power of the sum of squares in its column of a window.

    The window has ``window`` rows, ``stride`` bytes apart, and starts ``before`` bytes before ``x``.
    """
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
            wide = builder.fmul(widen(emit, load(emit.at(source, place))), power)
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
"""Normalize A ``[outer, length, inner]`` by the sum of squares in a window along the middle axis."""


@backend.accelerates(LRN)
def local_response(op: LRN, data: Value, axes: Value) -> Kernel | None:
    """Return an LRN kernel for f32 data along one constant axis, if ``alpha``, ``bias`` and ``beta`` cannot cause overflow.

    Returns ``None`` in all other cases.
    """
    along = known_axes(data, axes)
    if along is None or len(along) > 1 or not 0 <= op.alpha < np.inf or not LEAST_BIAS <= op.bias < np.inf:
        return None
    if op.beta > MOST_BETA:
        return None
    numbers = np.array([op.bias, op.alpha / op.size, op.beta]).view(np.int64).tolist()
    (axis,) = along

    def plan(shape: tuple[int, ...], strides: tuple[int, ...]) -> ColumnsPlan:
        """Plan the data with the normalized axis moved off the innermost position, so that vectors run across it."""
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
