"""Activations in 8 bits: one group of them is quantized in vector registers."""

from __future__ import annotations

from ...common.dynamic_quantization import MIN_PEAK
from ..codegen import ir
from ..codegen.language import instruction, types
from ..codegen.levels import GROUP, LEVEL_SIZE
from ..codegen.vectors import F32, I32, INTS, LANES, VECTOR, Emit, Value, splat_bits

__all__ = ["UNIT", "quantize_group"]

UNIT = 32
"""Groups of activations are padded to a multiple of it."""

# In 16 bits, activations are stored as the pairs that one instruction multiplies: those of even and of odd bytes.
_ORDER = [lane - lane % 4 + (0, 2, 1, 3)[lane % 4] if GROUP == 2 else lane for lane in range(LANES)]
_NUMBERS = ir.VectorType(ir.IntType(8 * LEVEL_SIZE), LANES)
_NONE = ir.Constant(INTS, None)


@instruction(*[types.int64] * 7)
def quantize_group(
    emit: Emit, x: Value, count: Value, units: Value, out: Value, scale: Value, total: Value, factor: Value
) -> None:  # fmt: skip
    """Quantize a group of activations, as `common.dynamic_quantization.quantize_activations` does.

    Args:
        emit: the emitter.
        x: the activations.
        count: how many there are.
        units: times `UNIT`, as many are stored, zeros behind them.
        out: address of the numbers.
        scale: address of the scale.
        total: address of the sum of the numbers.
        factor: multiplies the sum.
    """
    builder = emit.builder
    whole = builder.sdiv(count, emit.i64(LANES))
    with emit.loop(whole, [x, _NONE]) as (_, (at, top), following):
        following += [emit.at(at, 4 * LANES), _larger(emit, top, _magnitude(emit, emit.load(at, INTS)))]
    at, top = following
    rest = emit.lane_mask(builder.sub(count, builder.mul(whole, emit.i64(LANES))))
    last = builder.bitcast(emit.masked_load(at, rest), INTS)
    top = _larger(emit, top, _magnitude(emit, last))
    peak = builder.bitcast(emit.reduce(top, lambda a, b: _larger(emit, a, b)), F32)
    factors = _store_scale(emit, peak, scale)
    with emit.loop(whole, [x, out, _NONE]) as (_, (at, place, sums), following):
        numbers = _quantized(emit, emit.load(at, INTS), factors)
        _store_numbers(emit, numbers, place)
        following += [emit.at(at, 4 * LANES), emit.at(place, LEVEL_SIZE * LANES), builder.add(sums, numbers)]
    left = builder.sub(builder.mul(units, emit.i64(UNIT // LANES)), whole)
    state = [_quantized(emit, last, factors), *following[1:]]
    with emit.loop(left, state) as (_, (numbers, place, sums), following):
        _store_numbers(emit, numbers, place)
        following += [_NONE, emit.at(place, LEVEL_SIZE * LANES), builder.add(sums, numbers)]
    found = emit.reduce(following[2], builder.add)
    emit.store(builder.mul(found, builder.trunc(factor, I32)), total)


def _magnitude(emit: Emit, bits: Value) -> Value:
    """Return the bits of magnitudes; as integers they are ordered, infinity and NaN above all numbers."""
    return emit.builder.and_(bits, splat_bits(0x7FFFFFFF))


def _larger(emit: Emit, a: Value, b: Value) -> Value:
    return emit.builder.select(emit.builder.icmp_signed(">", a, b), a, b)


def _store_scale(emit: Emit, peak: Value, scale: Value) -> tuple[Value, Value]:
    """Store the scale; return what activations are multiplied by, and a mask of their bits, 0 if they count as zeros."""
    builder, zero, full = emit.builder, ir.Constant(F32, 0.0), ir.Constant(F32, 127.0)
    is_finite = builder.fcmp_ordered("<", peak, ir.Constant(F32, float("inf")))
    usable = builder.and_(is_finite, builder.fcmp_ordered(">=", peak, ir.Constant(F32, MIN_PEAK)))
    otherwise = builder.select(is_finite, zero, ir.Constant(F32, float("nan")))
    emit.store(builder.select(usable, builder.fdiv(peak, full), otherwise), scale)
    inverse = builder.select(usable, builder.fdiv(full, peak), zero)
    return emit.splat(inverse), emit.splat(builder.sext(usable, I32))


def _quantized(emit: Emit, bits: Value, factors: tuple[Value, Value]) -> Value:
    """Return numbers as i32."""
    builder, (inverse, mask) = emit.builder, factors
    values = builder.bitcast(builder.and_(bits, mask), VECTOR)
    return builder.fptosi(emit.round(emit.multiply(values, inverse)), INTS)


def _store_numbers(emit: Emit, numbers: Value, place: Value) -> None:
    builder = emit.builder
    if GROUP == 2:
        numbers = builder.shuffle_vector(numbers, ir.Constant(INTS, ir.UNDEFINED), ir.Constant(INTS, _ORDER))
    emit.store(builder.trunc(numbers, _NUMBERS), place)
