"""Arithmetic on single numbers."""

from __future__ import annotations

from math import isqrt
from typing import Any, ClassVar

import numpy as np

from ...ir.dimension import Interval, span
from ...ir.tensor import Array
from ...kernels.special import erf
from .._bounds import Number, ends
from .._define import op
from .._elementwise import Unary


class Whole(Unary):
    """Rounds to whole numbers; integers stay as they are."""

    ufunc: ClassVar[np.ufunc]

    def evaluate(self, data: Array) -> Array:
        return data if data.dtype.kind in "iu" else np.asarray(self.ufunc(data))

    def bounds(self, x: Number) -> Number:
        return x


class Curve(Unary):
    """A function of real numbers. Integers go through f64; the result is rounded, or cut off."""

    ufunc: ClassVar[np.ufunc]
    rounds: ClassVar[bool] = True

    def evaluate(self, data: Array) -> Array:
        if data.dtype.kind not in "iu":
            return np.asarray(self.curve(data))
        real = self.curve(data.astype(np.float64))
        return np.asarray((np.rint(real) if self.rounds else real).astype(data.dtype))

    def curve(self, x: Array) -> Any:
        """The function, for floating-point numbers."""
        return self.ufunc(x)


@op("Floor-1")
class Floor(Whole):
    """The largest whole number that is not above ``data``."""

    ufunc = np.floor


@op("Ceiling-1")
class Ceiling(Whole):
    """The smallest whole number that is not below ``data``."""

    ufunc = np.ceil


@op("Sqrt-1")
class Sqrt(Curve):
    """Square root of ``data``; of whole numbers, the nearest whole number."""

    ufunc = np.sqrt

    def bounds(self, x: Number) -> Number:
        low, high = ends(x)
        if low is None or low < 0:
            return Interval()
        return span(_root(low), None if high is None else _root(high))


@op("Tanh-1")
class Tanh(Curve):
    """Hyperbolic tangent of ``data``."""

    ufunc = np.tanh


@op("Erf-1")
class Erf(Curve):
    """The error function of ``data``."""

    def curve(self, x: Array) -> Array:
        return erf(x)


def _root(n: int) -> int:
    return (isqrt(4 * n) + 1) // 2
