"""Logic and shifts on the bits of integers."""

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
    """A function of the bits of two integers; booleans have one bit."""

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
    output = Output(T_BITS, "the bits that were not set")

    ufunc = np.bitwise_not


class Shift(Binary):
    """Moves bits. Numbers of places that are negative, or not below the width, are undefined."""

    decisions = (
        "by the width or more, or by a negative number, all bits are shifted out: the result is 0, or -1 for a negative number shifted right; the pages leave it undefined",
    )

    a = Input(T_INTEGER, "integers whose bits to move")
    b = Input(T_INTEGER, "by how many places")
    output = Output(T_INTEGER, "the integers moved")


@op("BitwiseLeftShift-15")
class BitwiseLeftShift(Shift):
    """Shift the bits of ``a`` left by ``b`` places; bits beyond the type are dropped."""

    ufunc = np.left_shift

    def bounds(self, x: Number, y: Number) -> Number:
        factor = _factor(y)
        return Interval() if factor is None else x * factor


@op("BitwiseRightShift-15")
class BitwiseRightShift(Shift):
    """Shift the bits of ``a`` right by ``b`` places, keeping the sign."""

    ufunc = np.right_shift

    def bounds(self, x: Number, y: Number) -> Number:
        factor = _factor(y)
        return Interval() if factor is None else quotient(x, factor)


def _factor(places: Number) -> int | None:
    """Return the factor of a shift by a known number of places."""
    low, high = ends(places)
    return 1 << low if low is not None and low == high and 0 <= low < WIDEST else None
