"""Arithmetic on pairs of numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...errors import ExecutionError
from ...ir.tensor import Array, Bounds, Value
from .._define.bounds import Number, absolute, maximum, minimum, power, quotient, remainder
from .._define.operation import Input, Propagated, T, attr, op
from .._lengths import align
from ..elementwise import Binary

_BY_ZERO = "b holds a 0, by which integers cannot be divided"


class Division(Binary):
    """Quotients and remainders. Integer division by zero is an error, as in OpenVINO's reference.

    Inference accepts it, as the layer may be in an unused branch.
    """

    a = Input(T, "dividend")
    b = Input(T, "divisor")

    def audit(self, *inputs: Value) -> Iterator[str]:
        """Yield a message about integer division by zero."""
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

    ufunc = np.add
    monotonicity = "increasing"

    def bounds(self, x: Number, y: Number) -> Number:
        return x + y


@op("Subtract-1")
class Subtract(Binary):
    """``a`` less ``b``."""

    ufunc = np.subtract
    monotonicity = "each input"

    def bounds(self, x: Number, y: Number) -> Number:
        return x - y


@op("Multiply-1")
class Multiply(Binary):
    """Product of ``a`` and ``b``."""

    ufunc = np.multiply
    monotonicity = "each input"

    def bounds(self, x: Number, y: Number) -> Number:
        return x * y


@op("Divide-1")
class Divide(Division):
    """``a`` divided by ``b``; integers are rounded down, or towards zero."""

    monotonicity = "each input"

    m_pythondiv: bool = attr(True, doc="round quotients of integers down, not towards zero")

    def compute(self, a: Array, b: Array) -> Array:
        if a.dtype.kind not in "iu":
            return np.asarray(np.divide(a, b))
        # The CPU plugin rounds towards zero whatever the attribute says; its reference does not.
        return np.floor_divide(a if self.m_pythondiv else a - np.fmod(a, b), b)

    def bounds(self, x: Number, y: Number) -> Number:
        return quotient(x, y, self.m_pythondiv)

    def propagate(self, *inputs: Value) -> Propagated:
        """Propagate contents; a quotient is unknown if its divisor may be 0."""
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
    """Remainder of the division of ``a`` by ``b``, truncated toward zero; it has the sign of ``a``."""

    # Exact, as in C. The plugin computes a - trunc(a / b) * b, which is inexact for large quotients and NaN
    # for infinite divisors.

    ufunc = np.fmod

    def bounds(self, x: Number, y: Number) -> Number:
        return remainder(x, y, floor=False)


@op("FloorMod-1", spec="arithmetic/floormod-1")
class FloorMod(Division):
    """Remainder of the floor division of ``a`` by ``b``; it has the sign of ``b``."""

    def compute(self, a: Array, b: Array) -> Array:
        if a.dtype.kind in "iu":
            return np.remainder(a, b)
        # The reference's formula, in f64 as there: an infinite divisor gives NaN.
        dividend, divisor = a.astype(np.float64), b.astype(np.float64)
        return np.asarray((dividend - divisor * np.floor(dividend / divisor)).astype(a.dtype))

    def bounds(self, x: Number, y: Number) -> Number:
        return remainder(x, y)


@op("Power-1")
class Power(Binary):
    """``a`` raised to the power ``b``."""

    a = Input(T, "base")
    b = Input(T, "exponent")

    def compute(self, a: Array, b: Array) -> Array:
        if a.dtype.kind not in "iu":
            return np.asarray(np.power(a, b))
        # In f64 as in the reference, truncated, with C's overflow.
        return np.asarray(np.rint(np.power(a.astype(np.float64), b.astype(np.float64))).astype(a.dtype))

    def bounds(self, x: Number, y: Number) -> Number:
        return power(x, y)


@op("Maximum-1")
class Maximum(Binary):
    """The larger one of ``a`` and ``b``; ``a`` where either is NaN."""

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
    """The smaller one of ``a`` and ``b``; ``a`` where either is NaN, as in Maximum."""

    monotonicity = "increasing"

    def compute(self, a: Array, b: Array) -> Array:
        if a.dtype.kind in "iu":
            return np.asarray(np.minimum(a, b))
        return np.where(b < a, b, a)

    def bounds(self, x: Number, y: Number) -> Number:
        return minimum(x, y)


@op("SquaredDifference-1")
class SquaredDifference(Binary):
    """Square of ``a`` less ``b``."""

    flops_per_element = 2

    def compute(self, a: Array, b: Array) -> Array:
        return np.asarray(np.square(a - b))

    def bounds(self, x: Number, y: Number) -> Number:
        return power(absolute(x - y), 2)
