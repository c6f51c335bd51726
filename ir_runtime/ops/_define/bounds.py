"""Interval arithmetic beyond the operators of `Interval`: division by intervals, remainders, comparisons.

Every function also accepts integers. A result contains every value that the operation can have on its operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...ir.dimension import Dimension, Interval, span
from ...ir.element import ElementType

__all__ = [
    "UNDECIDED",
    "Number",
    "absolute",
    "choose",
    "equal",
    "fit",
    "less",
    "maximum",
    "minimum",
    "power",
    "quotient",
    "remainder",
    "truth",
]

Number: TypeAlias = int | Interval
Ends: TypeAlias = tuple[int | None, int | None]

UNDECIDED = Dimension(0, 1)
"""A boolean that is not known yet."""

LARGEST_EXPONENT, LARGEST_POWER = 64, 2**31 - 1
# The maximum number of pairs of operands to enumerate.
MAX_PAIRS = 64
# Unbounded integers of at least this many bits are taken for lengths, which are too small to wrap around.
WIDE = 32


def ends(number: Number) -> Ends:
    """Return the lower and the upper bound of an integer or interval."""
    return (number.min, number.max) if isinstance(number, Interval) else (int(number), int(number))


def same(x: Number, y: Number) -> bool:
    """Return whether both carry the same symbol, and so are equal at run time."""
    return (
        isinstance(x, Interval) and isinstance(y, Interval) and x.symbol is not None and x.symbol is y.symbol
    )


def fit(number: Number, element: ElementType) -> Number:
    """Fit an integer or interval to an element type: integers wrap around, bounds out of range are dropped.

    >>> fit(300, ElementType.u8), fit(Interval(-3, 3), ElementType.u8), fit(Dimension(1, 8), ElementType.i64)
    (44, <Dimension: ..255>, <Dimension: 1..8>)
    """
    if element is ElementType.boolean:
        return number
    signed = element.label.startswith("i")
    lowest = -(1 << (element.bits - 1)) if signed else 0
    highest = lowest + (1 << element.bits) - 1
    low, high = ends(number)
    if low is not None and low == high:
        return (low - lowest) % (1 << element.bits) + lowest
    beyond = (low is not None and low < lowest) or (high is not None and high > highest)
    unbounded = high is None or (low is None and not signed)
    if (beyond or unbounded) and element.bits < WIDE:
        return span(lowest, highest)
    if beyond or (low is None and not signed):
        return Interval() if signed else Dimension()
    return number


def maximum(x: Number, y: Number) -> Number:
    """Return the maximum of two integers or intervals.

    >>> maximum(Dimension(2, 8), 1), maximum(Dimension(2, 8), 4), maximum(Interval(None, 3), 0)
    (<Dimension: 2..8>, <Dimension: 4..8>, <Dimension: ..3>)
    """
    (a, b), (c, d) = ends(x), ends(y)
    if _reaches(a, d) or same(x, y):
        return x
    if _reaches(c, b):
        return y
    low = c if a is None else a if c is None else max(a, c)
    return span(low, None if b is None or d is None else max(b, d))


def minimum(x: Number, y: Number) -> Number:
    """Return the minimum of two integers or intervals.

    >>> minimum(Dimension(2, 8), 8), minimum(Dimension(2, 8), 4), minimum(Dimension(), 5)
    (<Dimension: 2..8>, <Dimension: 2..4>, <Dimension: ..5>)
    """
    (a, b), (c, d) = ends(x), ends(y)
    if _reaches(a, d) or same(x, y):
        return y
    if _reaches(c, b):
        return x
    high = d if b is None else b if d is None else min(b, d)
    return span(None if a is None or c is None else min(a, c), high)


def absolute(x: Number) -> Number:
    """Return the absolute value of an integer or interval."""
    low, high = ends(x)
    if low is not None and low >= 0:
        return x
    if high is not None and high <= 0:
        return -x
    return span(0, None if low is None or high is None else max(-low, high))


def quotient(x: Number, y: Number, floor: bool = True) -> Number:
    """Return ``x / y``, rounded down or (without ``floor``) toward zero; unbounded if ``y`` may be zero.

    >>> quotient(Dimension(7, 20), 4), quotient(Dimension(7, 20), Dimension(2, 4)), quotient(Interval(-7, 5), 4, False)
    (<Dimension: 1..5>, <Dimension: 1..10>, Interval(-1, 1))
    """
    divide = _floor if floor else _truncate
    (a, b), (c, d) = ends(x), ends(y)
    if d is not None and d < 0:
        return quotient(-x, -y, floor)
    if c is None or c <= 0:
        return Interval()
    if c == d == 1:
        return x
    if same(x, y):
        return 1
    return span(_extreme(a, (c, d), divide, upper=False), _extreme(b, (c, d), divide, upper=True))


def remainder(x: Number, y: Number, floor: bool = True) -> Number:
    """Return the remainder of ``x / y``; it has the sign of ``y``, or without ``floor`` that of ``x``.

    >>> remainder(Dimension(5, 7), 8), remainder(Dimension(5, 9), 8), remainder(Interval(-2, 2), 8, False)
    (<Dimension: 5..7>, <Dimension: ..7>, Interval(-2, 2))
    >>> remainder(9, Dimension(2, 6)), remainder(Dimension(5, 99), Dimension(2, 6))
    (<Dimension: ..4>, <Dimension: ..5>)
    """
    (a, b), (c, d) = ends(x), ends(y)
    if d is not None and d < 0:
        return -remainder(-x, -y) if floor else remainder(x, -y, floor)
    if c is None or c <= 0:
        return Interval()
    if same(x, y):
        return 0
    whole = quotient(x, y, floor)
    if c == d and (start := ends(whole)[0]) is not None and start == ends(whole)[1]:
        return x - start * c
    if a is not None and b is not None and a >= 0 and b < c:
        return x
    if (
        enumerated := _enumerate_pairs(x, y, lambda m, n: m % n if floor else m - _truncate(m, n) * n)
    ) is not None:
        return enumerated
    most = None if d is None else d - 1
    if floor or (a is not None and a >= 0):
        return span(0, most if a is None or a < 0 else _least(b, most))
    low = most if a is None else _least(-a, most)
    return span(None if low is None else -low, 0 if b is not None and b <= 0 else _least(b, most))


def power(x: Number, y: Number) -> Number:
    """Return ``x ** y``; unbounded unless the operands have few values, or ``x`` is nonnegative and ``y`` known.

    >>> power(Dimension(2, 8), 2), power(3, Dimension(0, 4)), power(Dimension(), Dimension(0, 4))
    (<Dimension: 4..64>, <Dimension: 1..81>, Interval(None, None))
    >>> power(Dimension(2, 8), -1)
    <Dimension: 0>
    """
    (a, b), (c, d) = ends(x), ends(y)
    if c is None or d is None or not -LARGEST_EXPONENT <= c <= d <= LARGEST_EXPONENT:
        return Interval()
    if c < 0 and (a is None or a <= 0) and (b is None or b >= 0):
        return Interval()  # 0 to a negative power is infinite
    if c == d == 1:
        return x
    if (enumerated := _enumerate_pairs(x, y, _round_power)) is not None:
        low, high = ends(enumerated)
    elif c == d and c >= 0 and a is not None and a >= 0:
        low, high = a**c, None if b is None and c else (b or 0) ** c
    else:
        return Interval()
    # Powers do not wrap around; the overflow depends on the type.
    return Interval() if max(map(abs, (low or 0, high or 0))) > LARGEST_POWER else span(low, high)


def _round_power(base: int, exponent: int) -> int:
    return int(base**exponent) if exponent >= 0 else round(float(base) ** exponent)


def equal(x: Number, y: Number) -> bool | None:
    """Return whether ``x == y``, or ``None`` if undecided.

    >>> equal(Dimension(), -1), equal(Dimension(), 5), equal(Dimension(5), 5)
    (False, None, True)
    """
    (a, b), (c, d) = ends(x), ends(y)
    if same(x, y) or (a is not None and a == b == c == d):
        return True
    return False if _exceeds(a, d) or _exceeds(c, b) else None


def less(x: Number, y: Number) -> bool | None:
    """Return whether ``x < y``, or ``None`` if undecided."""
    (a, b), (c, d) = ends(x), ends(y)
    if same(x, y) or _reaches(a, d):
        return False
    return True if _exceeds(c, b) else None


def truth(answer: bool | None) -> Number:
    """Convert a comparison result to 0, 1 or (for ``None``) the interval of both."""
    return UNDECIDED if answer is None else int(answer)


def choose(condition: Number, x: Number, y: Number) -> Number:
    """Return ``x`` if the condition is true, ``y`` if it is false, or the hull of both if it is unknown."""
    if not isinstance(condition, Interval) or condition.is_static:
        return x if condition else y
    (a, b), (c, d) = ends(x), ends(y)
    if same(x, y) or (a is not None and a == b == c == d):
        return x
    low = None if a is None or c is None else min(a, c)
    return span(low, None if b is None or d is None else max(b, d))


def _reaches(low: int | None, high: int | None) -> bool:
    return low is not None and high is not None and low >= high


def _exceeds(low: int | None, high: int | None) -> bool:
    return low is not None and high is not None and low > high


def _enumerate_pairs(x: Number, y: Number, exact: Callable[[int, int], int]) -> Number | None:
    """Apply a function to all pairs of values of two intervals; return ``None`` if there are too many."""
    (a, b), (c, d) = ends(x), ends(y)
    if a is None or b is None or c is None or d is None or (b - a + 1) * (d - c + 1) > MAX_PAIRS:
        return None
    results = [exact(m, n) for m in range(a, b + 1) for n in range(c, d + 1)]
    return span(min(results), max(results))


def _least(*bounds: int | None) -> int | None:
    return min((b for b in bounds if b is not None), default=None)


def _extreme(n: int | None, divisor: Ends, divide: Callable[[int, int], int], upper: bool) -> int | None:
    """Return the largest (``upper``) or smallest quotient of ``n`` by a range of positive divisors."""
    if n is None:
        return None
    small, large = divisor
    assert small is not None
    by = small if (n >= 0) == upper else max(small, abs(n) + 1) if large is None else large
    return divide(n, by)


def _floor(x: int, y: int) -> int:
    return x // y


def _truncate(x: int, y: int) -> int:
    return x // y if x >= 0 else -(-x // y)
