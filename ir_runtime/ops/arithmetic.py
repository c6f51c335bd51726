"""Arithmetic operations: elementwise, cumulative along an axis, and by segments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isqrt
from typing import Literal

import numpy as np

from ..errors import ExecutionError, InferenceError
from ..ir.dimension import Dimension, Interval, span
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Bounds, Value
from ._define.bounds import Number, absolute, ends, maximum, minimum, power, quotient, remainder
from ._define.operation import (
    SIGNED,
    T_FLOAT,
    T_INDEX_64,
    T_PLAIN,
    Element,
    Input,
    Op,
    Output,
    Propagated,
    T,
    attr,
    op,
)
from ._lengths import align, check_scalar, check_vector, normalize_axis
from .elementwise import WRAPS, Binary, RealUnary, Unary
from .kernels.special import erf, erfinv
from .kernels.statistics import compute_dtype, lowest

# Binary arithmetic.

_BY_ZERO = "b holds a 0, by which integers cannot be divided"


class Division(Binary):
    """Base of quotients and remainders. Integer division by zero is an error, as in OpenVINO's reference.

    Inference accepts it, since the layer may be in a branch that never runs.
    """

    a = Input(T, "dividend")
    b = Input(T, "divisor")

    def audit(self, *inputs: Value) -> Iterator[str]:
        """Yield a warning about integer division by zero."""
        a, b = inputs
        divisor = b.known()
        if divisor is not None and divisor.dtype.kind in "iu" and not divisor.all() and a.count != 0:
            yield _BY_ZERO

    def evaluate(self, a: Array, b: Array) -> Array:
        if b.dtype.kind in "iu" and not b.all() and a.size:
            raise ExecutionError(_BY_ZERO, clause="integers are not divided by 0")
        return super().evaluate(a, b)

    def propagate(self, *inputs: Value) -> Propagated:
        try:
            return super().propagate(*inputs)
        except ExecutionError:
            return None


@op("Add-1")
class Add(Binary):
    """Sum of ``a`` and ``b``."""

    decisions = (WRAPS,)

    ufunc = np.add
    monotonicity = "increasing"

    def bounds(self, x: Number, y: Number) -> Number:
        return x + y


@op("Subtract-1")
class Subtract(Binary):
    """Difference of ``a`` and ``b``."""

    decisions = (WRAPS,)

    ufunc = np.subtract
    monotonicity = "each input"

    def bounds(self, x: Number, y: Number) -> Number:
        return x - y


@op("Multiply-1")
class Multiply(Binary):
    """Product of ``a`` and ``b``."""

    decisions = (WRAPS,)

    ufunc = np.multiply
    monotonicity = "each input"

    def bounds(self, x: Number, y: Number) -> Number:
        return x * y


@op("Divide-1")
class Divide(Division):
    """Quotient of ``a`` and ``b``; integer quotients are rounded down, or toward zero (see ``m_pythondiv``)."""

    decisions = (
        "a real number divided by 0 is infinite, and 0 divided by 0 is NaN, as in OpenVINO; the page does not say",
        "quotients of integers are rounded down unless m_pythondiv is false, as on the page; OpenVINO's plugin always truncates",
    )

    monotonicity = "each input"

    m_pythondiv: bool = attr(True, doc="whether to round integer quotients down, instead of toward zero")

    def compute(self, a: Array, b: Array) -> Array:
        if a.dtype.kind not in "iu":
            return np.asarray(np.divide(a, b))
        # OpenVINO's CPU plugin always rounds toward zero; its reference respects the attribute.
        return np.floor_divide(a if self.m_pythondiv else a - np.fmod(a, b), b)

    def bounds(self, x: Number, y: Number) -> Number:
        return quotient(x, y, self.m_pythondiv)

    def propagate(self, *inputs: Value) -> Propagated:
        """Propagate contents; the bounds of a quotient are infinite if its divisor may be 0."""
        contents, divisor = super().propagate(*inputs), inputs[1].bounds
        if divisor is None or not isinstance(contents, tuple):
            return contents
        (quotients,) = contents
        if not isinstance(quotients, Bounds):
            return quotients
        whole = (divisor.lower > 0) | (divisor.upper < 0)
        if self.auto_broadcast == "pdpd":
            whole = align(whole, quotients.lower.ndim)
        return quotients.where(whole)


@op("Mod-1")
class Mod(Division):
    """Remainder of the truncating division of ``a`` by ``b``; it has the sign of ``a``."""

    decisions = (
        "the remainder of real numbers is exact, and by infinity it is the dividend, as in OpenVINO's reference; its plugin computes a - trunc(a / b) * b, which is NaN",
        "the remainder by a real 0 is NaN, as in OpenVINO; the page does not say",
    )

    # Exact, as C's fmod. The plugin computes a - trunc(a / b) * b, which is inexact for large quotients, and NaN for
    # infinite divisors.

    ufunc = np.fmod

    def bounds(self, x: Number, y: Number) -> Number:
        return remainder(x, y, floor=False)


@op("FloorMod-1", spec="arithmetic/floormod-1")
class FloorMod(Division):
    """Remainder of the floor division of ``a`` by ``b``; it has the sign of ``b``."""

    decisions = (
        "the remainder by infinity is NaN, as in the formula of OpenVINO's reference; the page does not say",
        "the remainder by a real 0 is NaN, as in OpenVINO; the page does not say",
    )

    def compute(self, a: Array, b: Array) -> Array:
        if a.dtype.kind in "iu":
            return np.remainder(a, b)
        # The formula of OpenVINO's reference, in f64 as there: an infinite divisor gives NaN.
        dividend, divisor = a.astype(np.float64), b.astype(np.float64)
        return np.asarray((dividend - divisor * np.floor(dividend / divisor)).astype(a.dtype))

    def bounds(self, x: Number, y: Number) -> Number:
        return remainder(x, y)


@op("Power-1")
class Power(Binary):
    """``a`` raised to the power ``b``."""

    decisions = (
        "a negative number to a power that is not whole is NaN, and anything to the power of 0 is 1, as in OpenVINO; the page does not say",
        "integers are raised in f64 and rounded, so that 2 to the power of -1 is 0, as in OpenVINO's reference; the page does not say",
    )

    a = Input(T, "base")
    b = Input(T, "exponent")

    def compute(self, a: Array, b: Array) -> Array:
        if a.dtype.kind not in "iu":
            return np.asarray(np.power(a, b))
        # In f64, rounded to nearest, as in OpenVINO's reference; overflow is as in C.
        return np.asarray(np.rint(np.power(a.astype(np.float64), b.astype(np.float64))).astype(a.dtype))

    def bounds(self, x: Number, y: Number) -> Number:
        return power(x, y)


@op("Maximum-1")
class Maximum(Binary):
    """The larger of ``a`` and ``b``; ``a`` where either is NaN."""

    decisions = (
        "with a NaN the result is a, as in OpenVINO's reference, in which the comparison fails; its plugin takes b",
        "of zeros, which are equal, a is taken whatever their signs; the page does not say",
    )

    monotonicity = "increasing"

    def compute(self, a: Array, b: Array) -> Array:
        if a.dtype.kind in "iu":
            return np.asarray(np.maximum(a, b))
        return np.where(a < b, b, a)

    def bounds(self, x: Number, y: Number) -> Number:
        return maximum(x, y)


@op("Minimum-1")
class Minimum(Binary):
    """The smaller of ``a`` and ``b``; ``a`` where either is NaN, as in Maximum."""

    decisions = (
        "with a NaN the result is a, as in OpenVINO's reference, in which the comparison fails; its plugin takes b",
        "of zeros, which are equal, a is taken whatever their signs; the page does not say",
    )

    monotonicity = "increasing"

    def compute(self, a: Array, b: Array) -> Array:
        if a.dtype.kind in "iu":
            return np.asarray(np.minimum(a, b))
        return np.where(b < a, b, a)

    def bounds(self, x: Number, y: Number) -> Number:
        return minimum(x, y)


@op("SquaredDifference-1")
class SquaredDifference(Binary):
    """Square of the difference of ``a`` and ``b``."""

    decisions = (WRAPS,)

    flops_per_element = 2

    def compute(self, a: Array, b: Array) -> Array:
        return np.asarray(np.square(a - b))

    def bounds(self, x: Number, y: Number) -> Number:
        return power(absolute(x - y), 2)


# Unary arithmetic.


class Rounding(Unary):
    """Base of rounding to integral values; integer types are unchanged."""

    monotonicity = "increasing"

    def evaluate(self, data: Array) -> Array:
        return data if data.dtype.kind in "iu" else self.whole(data)

    def whole(self, x: Array) -> Array:
        """Round floating-point elements."""
        return super().evaluate(x)

    def bounds(self, x: Number) -> Number:
        return x


@op("Abs-1")
class Abs(Unary):
    """Absolute value of ``data``."""

    decisions = (
        "the absolute value of the lowest integer is itself, as in two's complement; the page does not say",
    )

    ufunc = np.absolute

    def bounds(self, x: Number) -> Number:
        return absolute(x)


@op("Negative-1")
class Negative(Unary):
    """The negation of ``data``."""

    decisions = ("the lowest integer is its own negative, as in two's complement; the page does not say",)

    ufunc = np.negative
    monotonicity = "each input"

    def bounds(self, x: Number) -> Number:
        return -x


@op("Sign-1")
class Sign(Unary):
    """-1, 0 or 1, as ``data`` is negative, zero or positive; NaN stays NaN."""

    decisions = ("NaN stays NaN, as in OpenVINO's reference; the page has no value for it",)

    ufunc = np.sign

    def bounds(self, x: Number) -> Number:
        low, high = (None if n is None else (n > 0) - (n < 0) for n in ends(x))
        return span(-1 if low is None else low, 1 if high is None else high)


@op("Floor-1")
class Floor(Rounding):
    """The largest integer not above ``data``."""

    ufunc = np.floor


@op("Ceiling-1")
class Ceiling(Rounding):
    """The smallest integer not below ``data``."""

    ufunc = np.ceil


@op("Round-5")
class Round(Rounding):
    """The integer nearest to each element of ``data``."""

    decisions = (
        "half_away_from_zero looks at the fraction itself, as in OpenVINO's reference, so that the largest number below a half becomes 0; its plugin adds a half, and gives 1",
    )

    mode: Literal["half_to_even", "half_away_from_zero"] = attr(
        "half_to_even", doc="how to round a fraction of exactly one half"
    )

    def whole(self, x: Array) -> Array:
        if self.mode == "half_to_even":
            return np.asarray(np.rint(x))
        towards_zero = np.trunc(x)
        # Exact, as in OpenVINO's reference. The plugin adds 0.5, which rounds the largest number below 0.5 up to 1.
        return np.where(np.abs(x - towards_zero) >= 0.5, towards_zero + np.sign(x), towards_zero)


@op("Sqrt-1")
class Sqrt(RealUnary):
    """Square root of ``data``; for integers, rounded to the nearest integer."""

    decisions = ("the root of a negative number is NaN, as in OpenVINO; the page leaves it undefined",)

    ufunc = np.sqrt
    monotonicity = "increasing"

    def bounds(self, x: Number) -> Number:
        low, high = ends(x)
        if low is None or low < 0:
            return Interval()
        return span(_root(low), None if high is None else _root(high))


@op("Log-1")
class Log(RealUnary):
    """Natural logarithm of ``data``."""

    decisions = (
        "the logarithm of 0 is negative infinity, of a negative number NaN, as in OpenVINO; the page does not say",
    )

    ufunc = np.log
    rounds = False  # integers are truncated, as in OpenVINO's reference; its plugin rounds


@op("Erf-1")
class Erf(RealUnary):
    """The error function of ``data``."""

    def apply(self, x: Array) -> Array:
        return erf(x)


@op("ErfInv-17", spec="arithmetic/erfinv-17")
class ErfInv(Unary):
    """The inverse error function of ``data``; infinite at -1 and 1, NaN beyond."""

    data = Input(T_FLOAT, "tensor to map")
    output = Output(T_FLOAT, "the result for each element")

    # Accurate to f64, where OpenVINO's approximation is accurate to f32.

    def evaluate(self, data: Array) -> Array:
        return erfinv(data)


def _root(n: int) -> int:
    return (isqrt(4 * n) + 1) // 2


# Trigonometric and hyperbolic functions, and their inverses.
#
# For integers, OpenVINO's reference rounds the result, except of Sin and Asin, which it truncates; its plugin always
# rounds.


@op("Sin-1")
class Sin(RealUnary):
    """Sine of ``data``, in radians."""

    ufunc = np.sin
    rounds = False


@op("Cos-1")
class Cos(RealUnary):
    """Cosine of ``data``, in radians."""

    ufunc = np.cos


@op("Tan-1")
class Tan(RealUnary):
    """Tangent of ``data``, in radians."""

    ufunc = np.tan


@op("Asin-1")
class Asin(RealUnary):
    """Inverse sine of ``data``, in radians; NaN beyond -1 and 1."""

    decisions = ("beyond -1 and 1 the result is NaN, as in OpenVINO; the page does not say",)

    ufunc = np.arcsin
    rounds = False


@op("Acos-1")
class Acos(RealUnary):
    """Inverse cosine of ``data``, in radians; NaN beyond -1 and 1."""

    decisions = ("beyond -1 and 1 the result is NaN, as in OpenVINO; the page does not say",)

    ufunc = np.arccos


@op("Atan-1")
class Atan(RealUnary):
    """Inverse tangent of ``data``, in radians."""

    ufunc = np.arctan


@op("Sinh-1")
class Sinh(RealUnary):
    """Hyperbolic sine of ``data``."""

    ufunc = np.sinh


@op("Cosh-1")
class Cosh(RealUnary):
    """Hyperbolic cosine of ``data``."""

    ufunc = np.cosh


@op("Tanh-1")
class Tanh(RealUnary):
    """Hyperbolic tangent of ``data``."""

    ufunc = np.tanh


# The pages say version 3, but opset3 lacks these three operations; files say opset4.


@op("Asinh-4", spec="arithmetic/asinh-3")
class Asinh(RealUnary):
    """Inverse hyperbolic sine of ``data``."""

    ufunc = np.arcsinh


@op("Acosh-4", spec="arithmetic/acosh-3")
class Acosh(RealUnary):
    """Inverse hyperbolic cosine of ``data``; NaN below 1."""

    decisions = ("below 1 the result is NaN, as in OpenVINO; the page does not say",)

    ufunc = np.arccosh


@op("Atanh-4", spec="arithmetic/atanh-3")
class Atanh(RealUnary):
    """Inverse hyperbolic tangent of ``data``; infinite at -1 and 1, NaN beyond."""

    decisions = (
        "at -1 and 1 the result is infinite, and NaN beyond, as in OpenVINO; the page does not say",
        "an integer other than 0 gives the highest or lowest number of its type, as in OpenVINO's reference; the page does not say",
    )

    ufunc = np.arctanh

    def evaluate(self, data: Array) -> Array:
        if data.dtype.kind not in "iu":
            return super().evaluate(data)
        # As in OpenVINO's reference: nonzero integers give the limits of their type.
        ends = np.iinfo(data.dtype)
        return np.where(data > 0, ends.max, np.where(data < 0, ends.min, 0)).astype(data.dtype)


# Cumulative sums, and maxima over segments.

T_COUNT = Element("T_IDX2", SIGNED[:2], "i64 or i32")


@op("CumSum-3", spec="arithmetic/cumsum-3")
class CumSum(Op):
    """Cumulative sums of ``data`` along ``axis``."""

    decisions = (
        "the sum of booleans is whether one of them is true, as in OpenVINO; the page asks for numbers",
        "axes 0 and -1 of a scalar, which is its own sum, are read, as in OpenVINO",
    )

    bounded = True
    flops_per_element = 1

    data = Input(T_PLAIN, "tensor to sum, of rank 1 or more")
    axis = Input(T_INDEX_64, "axis to sum along, a scalar; 0 if absent", optional=True)
    output = Output(T_PLAIN, "the sums, of the shape of data")

    exclusive: bool = attr(False, doc="whether to exclude each element from its own sum")
    reverse: bool = attr(False, doc="whether to sum from the end")

    def infer(self, data: Value, axis: Value | None = None) -> PartialShape:
        if axis is not None and not axis.count.contains(1):
            raise InferenceError(
                f"axis must be one number, not of shape {axis.shape}", clause="axis is one number"
            )
        axes = (0,) if axis is None else axis.ints()
        if data.shape.rank is not None and axes is not None:
            normalize_axis(axes[0], data.shape.rank, least=1)
        return data.shape

    def evaluate(self, data: Array, axis: Array | None = None) -> Array:
        if not data.ndim:
            return np.zeros_like(data) if self.exclusive else data
        along = 0 if axis is None else int(axis.reshape(()))
        ordered = np.flip(data, along) if self.reverse else data
        sums = np.cumsum(ordered, along, dtype=compute_dtype(data.dtype)).astype(data.dtype, copy=False)
        if self.exclusive:
            sums = np.roll(sums, 1, along)
            np.moveaxis(sums, along, 0)[:1] = 0
        return np.flip(sums, along) if self.reverse else sums


@op("SegmentMax-16")
class SegmentMax(Op):
    """Elementwise maximum of the slices of ``data`` in each segment, along axis 0."""

    decisions = ("NaN is passed over, as in OpenVINO's reference; the page does not mention it",)

    flops_per_element = 0
    flops_per_input = {"data": 1}

    data = Input(T, "slices along axis 0, of rank 1 or more")
    segment_ids = Input(T_INDEX_64, "the segment of each slice, 1-D and ascending")
    num_segments = Input(T_COUNT, "number of segments to return; the last id plus 1 if absent", optional=True)
    output = Output(T, "the maximum of each segment, [num_segments, ...]")

    fill_mode: Literal["ZERO", "LOWEST"] = attr(
        default_with_warning="ZERO", doc="value of empty segments: zero, or the lowest of the type"
    )

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return ``fill_mode`` in lower case, as OpenVINO's API presents it."""
        return {"fill_mode": self.fill_mode.lower()}

    def infer(self, data: Value, segment_ids: Value, num_segments: Value | None = None) -> PartialShape:
        if data.shape.rank == 0:
            raise InferenceError(
                "data is a scalar; at least one axis is expected", clause="data has at least one axis"
            )
        check_vector(segment_ids, "segment_ids")
        if num_segments is not None:
            check_scalar(num_segments, "num_segments")
        segments = segment_ids.ints()
        if segments is not None and list(segments) != sorted(segments):
            drop = next(i for i in range(1, len(segments)) if segments[i] < segments[i - 1])
            raise InferenceError(
                f"segment_ids must be in ascending order, but element {drop} is {segments[drop]}, after {segments[drop - 1]}",
                clause="segment_ids are in ascending order",
            )
        if data.shape.rank is None:
            return PartialShape.dynamic()
        if segment_ids.shape.rank is not None and not data.shape[0].compatible(segment_ids.shape[0]):
            raise InferenceError(
                f"segment_ids has length {segment_ids.shape[0]}, but axis 0 of data {data.shape} has length "
                f"{data.shape[0]}",
                clause="segment_ids has one number for each entry of axis 0 of data",
            )
        return data.shape.replace({0: _count(segment_ids, num_segments)})

    def evaluate(self, data: Array, segment_ids: Array, num_segments: Array | None = None) -> Array:
        needed = int(segment_ids.max(initial=-1)) + 1
        count = needed if num_segments is None else int(num_segments)
        valid = segment_ids < count
        output = np.full((count, *data.shape[1:]), lowest(data.dtype), data.dtype)
        # `fmax` skips NaN, as OpenVINO's reference does, where comparisons with NaN are false.
        np.fmax.at(output, segment_ids[valid], data[valid])
        if self.fill_mode == "ZERO":
            output[np.isin(np.arange(count), segment_ids, invert=True)] = 0
        return output


def _count(segment_ids: Value, num_segments: Value | None) -> Dimension:
    if num_segments is not None:
        counts = num_segments.dims()
        return Dimension() if counts is None else counts[0]
    ids = segment_ids.numbers()
    if ids is None:
        return Dimension()
    return Dimension.of(ids[-1] + 1) if ids else Dimension(0)
