"""Bitwise logic and shifts of integers."""

from __future__ import annotations

import numpy as np

from ..ir.dimension import Interval, span
from ..ir.element import ElementType
from ._define.bounds import Number, ends, minimum, quotient
from ._define.operation import INTEGERS, T_INTEGER, Element, Input, Output, op
from .elementwise import Binary, Unary

T_BITS = Element("T", (*INTEGERS, ElementType.boolean), "any integer type or boolean")
WIDEST = 64


class Bitwise(Binary):
    """Base of bitwise logic on two operands; a boolean counts as one bit."""

    a = Input(T_BITS, "first operand")
    b = Input(T_BITS, "second operand")
    output = Output(T_BITS, "the result for each pair of elements")


@op("BitwiseAnd-13")
class BitwiseAnd(Bitwise):
    """The bits set in both ``a`` and ``b``."""

    ufunc = np.bitwise_and

    def bounds(self, x: Number, y: Number) -> Number:
        positive = [n for n in (x, y) if (ends(n)[0] or 0) >= 0 and ends(n)[0] is not None]
        if not positive:
            return Interval()
        return span(0, ends(minimum(positive[0], positive[-1]))[1])


@op("BitwiseOr-13")
class BitwiseOr(Bitwise):
    """The bits set in ``a`` or ``b``, or both."""

    ufunc = np.bitwise_or


@op("BitwiseXor-13")
class BitwiseXor(Bitwise):
    """The bits set in either ``a`` or ``b``, but not both."""

    ufunc = np.bitwise_xor


@op("BitwiseNot-13")
class BitwiseNot(Unary):
    """Invert the bits of ``data``."""

    data = Input(T_BITS, "integers, or booleans, which have one bit")
    output = Output(T_BITS, "the inverted elements")

    ufunc = np.bitwise_not


class Shift(Binary):
    """Base of bit shifts. The specification leaves negative shifts, and shifts by the width or more, undefined."""

    decisions = (
        "by the width or more, or by a negative number, all bits are shifted out: the result is 0, or -1 for a negative number shifted right; the pages leave it undefined",
    )

    a = Input(T_INTEGER, "integers to shift")
    b = Input(T_INTEGER, "number of bits to shift by")
    output = Output(T_INTEGER, "the shifted integers")


@op("BitwiseLeftShift-15")
class BitwiseLeftShift(Shift):
    """Shift ``a`` left by ``b`` bits; bits beyond the width of the type are dropped."""

    ufunc = np.left_shift

    def bounds(self, x: Number, y: Number) -> Number:
        factor = _factor(y)
        return Interval() if factor is None else x * factor


@op("BitwiseRightShift-15")
class BitwiseRightShift(Shift):
    """Shift ``a`` right by ``b`` bits, keeping the sign."""

    ufunc = np.right_shift

    def bounds(self, x: Number, y: Number) -> Number:
        factor = _factor(y)
        return Interval() if factor is None else quotient(x, factor)


def _factor(shift: Number) -> int | None:
    """Return the power of two that a known shift multiplies or divides by, or ``None``."""
    low, high = ends(shift)
    return 1 << low if low is not None and low == high and 0 <= low < WIDEST else None
