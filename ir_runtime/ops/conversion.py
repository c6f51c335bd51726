"""Conversions between element types."""

from __future__ import annotations

import numpy as np

from ..ir.element import ElementType
from ..ir.tensor import Array, objects
from ._define.bounds import Number, equal, fit, truth

__all__ = ["NF4", "convert", "convert_rounded"]

# The values of the 16 nf4 codes.
NF4 = np.array(
    [
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
        *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
        *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941),
        *(0.7229568362236023, 1.0),
    ],
    np.float32,
)

# The largest value that rounds to each code, except the last. It is the midpoint to the next value if f32 represents
# that; otherwise OpenVINO's literals round to either side.
_NF4_LIMITS = np.array(
    [
        *(-0.8480964303016663, -0.6106328964233398, -0.4599952697753906, -0.33967941999435425),
        *(-0.23460739850997925, -0.13791173696517944, -0.045525018125772476, 0.03979014977812767),
        *(0.1202552542090416, 0.2035212516784668, 0.2920137643814087, 0.3893125355243683),
        *(0.5016633868217468, 0.6427869200706482, 0.8614783883094788),
    ],
    np.float32,
)


def convert(data: Array, target: ElementType, source: ElementType | None = None) -> Array:
    """Convert as C++ does on x86: floats to integers toward zero, and integers modulo the width of the target.

    The specification leaves out-of-range floats undefined. Here NaN and floats too large for a machine integer become
    the lowest one, which is then truncated to the target's width: -2147483648 as i32, 0 as i8. OpenVINO's reference
    agrees, except from f32 to u32, where its result depends on the length of the tensor. Its plugin gives the i32
    result for i64 and u64 too, and converts NaN to false.

    Values too large for a floating-point target become infinite. Only i32 saturates at the largest f16, 65504, as in
    OpenVINO's reference; the specification does not say, and the plugin gives infinity. Integers are converted to f64
    exactly; the plugin rounds them to f32 first.

    bf16 is rounded to nearest, ties to even, as in the plugin. The reference intends the same, but rounds even
    mantissas down whatever the following bits. Conversions to f8e4m3 and f8e5m2 round to f16 first, as in both.

    Args:
        data: the elements; with ``dtype=object``, integers and intervals.
        target: the type to convert to; neither string nor dynamic.
        source: the type of the data if its dtype is ambiguous, as for nf4.
    """
    if data.dtype == object:
        return _convert_interval_array(data, target, source)
    source = source or ElementType.from_dtype(data.dtype)
    if source is target:
        return data
    if source is ElementType.nf4:
        data, source = NF4[data], ElementType.f32
    if target is ElementType.boolean:
        return np.asarray(data != 0)
    if target.real:
        return _real(data, target)
    return _truncate_bits(_whole(data, target) if source.real else data.astype(np.int64), target)


def convert_rounded(data: Array, target: ElementType) -> Array:
    """Convert to the nearest representable value, as OpenVINO's CPU plugin does for the inputs of a loop.

    Floats are rounded to integers, ties to even, and clamped to the range of the target; NaN becomes its lowest
    integer. Unlike this function, `convert` truncates and wraps.
    """
    if data.dtype == target.dtype:
        return data
    if target.real:
        return convert(data, target)
    limits = np.iinfo(np.uint8 if target is ElementType.boolean else target.dtype)
    if data.dtype.kind not in "biu":
        data = np.rint(data.astype(np.float64))
        inside = (data >= limits.min) & (data <= limits.max)
        ends = np.where(data > limits.max, limits.max, limits.min).astype(limits.dtype)
        data = np.where(inside, np.where(inside, data, 0).astype(limits.dtype), ends)
    elif data.dtype.kind != "b":
        data = np.clip(
            data, max(limits.min, np.iinfo(data.dtype).min), min(limits.max, np.iinfo(data.dtype).max)
        )
    return np.asarray(data != 0) if target is ElementType.boolean else data.astype(target.dtype)


def _real(data: Array, target: ElementType) -> Array:
    if data.dtype.itemsize == 1 and data.dtype.kind not in "biu":
        data = data.astype(np.float32)  # represents every 8-bit float, and converts to any type
    if target is ElementType.nf4:
        codes = np.searchsorted(_NF4_LIMITS, data.astype(np.float32))
        return np.where(data != data, 0, codes).astype(np.uint8)
    if target is ElementType.f8e8m0:
        return _powers_of_two(data)
    if target is ElementType.f16 and data.dtype == np.int32:
        limit = np.finfo(np.float16).max
        return np.clip(data, -limit, limit).astype(np.float16)
    if target in (ElementType.f8e4m3, ElementType.f8e5m2):
        with np.errstate(all="ignore"):
            data = data.astype(np.float16)
    if target is ElementType.f4e2m1:
        data = data.astype(np.float64)
        data = np.where(np.isnan(data), np.copysign(6, data), data)  # f4e2m1 has no NaN
    with np.errstate(all="ignore"):
        return np.asarray(data.astype(target.dtype))


def _powers_of_two(data: Array) -> Array:
    """Convert to f8e8m0: the nearest power of two, ties to the even exponent, at least ``2**-127``.

    Negative values, including negative NaN, become ``2**-127``.
    """
    data = data.astype(np.float64)
    mantissa, exponent = np.frexp(data)  # in [0.5, 1)
    code = exponent + 126 + ((mantissa > 0.75) | ((mantissa == 0.75) & (exponent % 2 == 1)))
    code = np.where(data > 0, np.clip(code, 0, 254), 0)
    code = np.where(np.isposinf(data), 254, code)
    code = np.where(np.isnan(data) & ~np.signbit(data), 255, code)
    return code.astype(np.uint8).view(ElementType.f8e8m0.dtype)


def _whole(data: Array, target: ElementType) -> Array:
    """Truncate floats to machine integers of at least 32 bits; values out of range become the lowest one."""
    limit = 2.0**31 if target.bits < 32 or target is ElementType.i32 else 2.0**63
    if data.dtype.kind == "f" and data.size and data.min() >= -limit and data.max() < limit:
        return data.astype(np.int32 if limit == 2.0**31 else np.int64)
    data = data.astype(np.float64)
    truncated = np.trunc(data)
    fits = (truncated >= -limit) & (truncated < limit)
    whole = np.where(fits, np.where(fits, truncated, 0).astype(np.int64), np.int64(-limit))
    if target is not ElementType.u64:
        return whole
    above = (data >= 2.0**63) & (data < 2.0**64)
    upper = np.where(above, data - 2.0**63, 0).astype(np.int64) ^ np.int64(-limit)
    return np.where(data >= 2.0**64, 0, np.where(above, upper, whole))


def _truncate_bits(numbers: Array, target: ElementType) -> Array:
    """Truncate int64 integers to the width of an integer type."""
    if target.bits >= 8:
        return numbers.astype(target.dtype)
    codes = numbers & ((1 << target.bits) - 1)
    if target is ElementType.i4:
        codes = (codes ^ 8) - 8
    return codes.astype(target.dtype)


def _convert_interval_array(data: Array, target: ElementType, source: ElementType | None) -> Array:
    if target.real or source is ElementType.nf4:
        raise TypeError(f"bounds on integers say nothing as {target.label}")
    return objects((_fit_interval(number, target) for number in data.flat), data.shape)


def _fit_interval(number: Number, target: ElementType) -> Number:
    if target is not ElementType.boolean:
        return fit(number, target)
    zero = equal(number, 0)
    return truth(None if zero is None else not zero)
