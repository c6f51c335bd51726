"""Arithmetic on single numbers."""

from __future__ import annotations

from math import isqrt
from typing import Literal

import numpy as np

from ...ir.dimension import Interval, span
from ...ir.tensor import Array
from .._define.bounds import Number, absolute, ends
from .._define.operation import T_FLOAT, Input, Output, attr, op
from ..elementwise import RealUnary, Unary
from ..kernels.special import erf, erfinv


class Rounding(Unary):
    """Round to integers; integers are unchanged."""

    monotonicity = "increasing"

    def evaluate(self, data: Array) -> Array:
        return data if data.dtype.kind in "iu" else self.whole(data)

    def whole(self, x: Array) -> Array:
        """Round floating-point numbers."""
        return super().evaluate(x)

    def bounds(self, x: Number) -> Number:
        return x


@op("Abs-1")
class Abs(Unary):
    """Absolute value of ``data``."""

    ufunc = np.absolute

    def bounds(self, x: Number) -> Number:
        return absolute(x)


@op("Negative-1")
class Negative(Unary):
    """``data`` with the opposite sign."""

    ufunc = np.negative
    monotonicity = "each input"

    def bounds(self, x: Number) -> Number:
        return -x


@op("Sign-1")
class Sign(Unary):
    """-1, 0 or 1, as ``data`` is negative, zero or positive; NaN stays NaN."""

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
    """The integer nearest to ``data``."""

    mode: Literal["half_to_even", "half_away_from_zero"] = attr(
        "half_to_even", doc="which of two numbers to take that are equally near"
    )

    def whole(self, x: Array) -> Array:
        if self.mode == "half_to_even":
            return np.asarray(np.rint(x))
        towards_zero = np.trunc(x)
        # Exact, as in the reference; the plugin adds 0.5, and makes 1 of the largest number below.
        return np.where(np.abs(x - towards_zero) >= 0.5, towards_zero + np.sign(x), towards_zero)


@op("Sqrt-1")
class Sqrt(RealUnary):
    """Square root of ``data``; of integers, the nearest integer."""

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

    ufunc = np.log
    rounds = False  # in the reference; the plugin rounds


@op("Erf-1")
class Erf(RealUnary):
    """The error function of ``data``."""

    def apply(self, x: Array) -> Array:
        return erf(x)


@op("ErfInv-17", spec="arithmetic/erfinv-17")
class ErfInv(RealUnary):
    """The number whose error function is ``data``; infinite for -1 and 1, NaN beyond."""

    data = Input(T_FLOAT, "tensor to map")
    output = Output(T_FLOAT, "the result for each element")

    # Exact to f64, where OpenVINO's approximation is good to f32.

    def apply(self, x: Array) -> Array:
        return erfinv(x)


def _root(n: int) -> int:
    return (isqrt(4 * n) + 1) // 2
