"""Dimensions of shapes: intervals of possible lengths, with symbols that mark equal dimensions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from ..codes import Code
from ..errors import InputError, LengthError

__all__ = [
    "Dimension",
    "DimensionLike",
    "Interval",
    "LONGEST",
    "Symbol",
    "is_number",
    "parse_bounds",
]


class Symbol:
    """A mark of equality: dimensions that carry the same symbol have the same length at run time.

    >>> from ir_runtime import Symbol
    >>> batch = Symbol()
    >>> batch == batch, batch == Symbol()
    (True, False)
    """

    __slots__ = ("name",)

    def __init__(self, name: str = "") -> None:
        self.name: str = name

    def __repr__(self) -> str:
        return self.name


def parse_bounds(text: str) -> tuple[int, int | None]:
    """Parse a length such as ``3``, ``?``, ``1..8`` or ``..8`` into its bounds; an unbounded maximum is ``None``."""
    low, dots, high = (part.strip() for part in text.partition(".."))
    if not dots and low in ("?", "-1"):
        return 0, None
    ends = [None if dots and part in ("", "-1") else part for part in (low, high if dots else low)]
    if any(part is not None and not is_number(part) for part in ends):
        raise ValueError(f"{text[:40]!r} is not a length such as 3, ?, 1..8 or ..8")
    first, last = (None if part is None else int(part) for part in ends)
    return first or 0, last


def is_number(text: str) -> bool:
    """Return whether ``text`` consists of decimal digits only."""
    return text.isascii() and text.isdecimal()


def _add(a: int | None, b: int | None) -> int | None:
    """Add two bounds; ``None`` is infinite."""
    return None if a is None or b is None else a + b


def _multiply(a: int | None, b: int | None) -> int | None:
    """Multiply two nonnegative bounds; ``None`` is infinite."""
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else a * b


def _negate(a: int | None) -> int | None:
    return None if a is None else -a


LONGEST = (1 << 63) - 1
"""The longest length, that of an int64. OpenVINO refuses models that declare longer ones, and treats a longer inferred
length as unknown; here that is an error, since no tensor is so long. An upper bound beyond it counts as unbounded, as in
OpenVINO."""

# Bounds beyond any element of a tensor, or a product of two, are dropped: a chain of multiplications could otherwise
# make integers that take much time and memory.
_MAX_BOUND = 1 << 128


class Interval:
    """An unknown integer in ``[min, max]``; a bound of ``None`` means unbounded on that side.

    Shape arithmetic has negative intermediate results (``length - 5``); a `Dimension` is never negative.

    >>> Dimension(2, 8) - 5
    Interval(-3, 3)
    >>> Dimension(2, 8) - 5 + 3
    <Dimension: ..6>
    >>> length = Dimension(2, 8)
    >>> length.min, length.max, length.is_static, length.is_dynamic, length.map(lambda n: n // 2)
    (2, 8, False, True, <Dimension: 1..4>)
    """

    __slots__ = ("_max", "_min", "symbol")
    _min: int | None
    _max: int | None
    symbol: Symbol | None

    def __init__(self, min: int | None = None, max: int | None = None, symbol: Symbol | None = None) -> None:
        self._min, self._max, self.symbol = min, max, symbol

    @property
    def min(self) -> int | None:
        """The lower bound."""
        return self._min

    @property
    def max(self) -> int | None:
        """The upper bound."""
        return self._max

    @property
    def is_static(self) -> bool:
        """Whether only one value is possible."""
        return self._min is not None and self._min == self._max

    @property
    def is_dynamic(self) -> bool:
        """Whether more than one value is possible."""
        return not self.is_static

    def __index__(self) -> int:
        if self._min is None or self._min != self._max:
            raise TypeError(f"{self} is not a single number")
        return self._min

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self._min == other == self._max
        if not isinstance(other, Interval):
            return NotImplemented
        return (self._min, self._max, self.symbol) == (other._min, other._max, other.symbol)

    def __hash__(self) -> int:
        return hash(self._min if self.is_static else (self._min, self._max, self.symbol))

    def __add__(self, other: IntervalLike) -> Interval:
        if other == 0:
            return self
        if self == 0 and isinstance(other, Interval):
            return other
        low, high = _bounds(other)
        return span(_add(self._min, low), _add(self._max, high))

    def __neg__(self) -> Interval:
        return span(_negate(self._max), _negate(self._min))

    def __sub__(self, other: IntervalLike) -> Interval:
        if isinstance(other, Interval) and other.symbol is not None and other.symbol is self.symbol:
            return Dimension(0)
        return self + (-other)

    def __rsub__(self, other: IntervalLike) -> Interval:
        return -self + other

    def __mul__(self, other: IntervalLike) -> Interval:
        if other == 1:
            return self
        if self == 1 and isinstance(other, Interval):
            return other
        low, high = _bounds(other)
        if low == high == 0:
            return Dimension(0)
        if self._min is not None and self._min >= 0 and low is not None and low >= 0:
            return span(self._min * low, _multiply(self._max, high))
        if self._min is None or self._max is None or low is None or high is None:
            return Interval()
        corners = [a * b for a in (self._min, self._max) for b in (low, high)]
        return span(min(corners), max(corners))

    def __floordiv__(self, divisor: int) -> Interval:
        if divisor == 1:
            return self
        if not isinstance(divisor, int) or divisor <= 0:
            raise TypeError(f"division of {self} by {divisor} has no known bounds")
        return self.map(lambda n: n // divisor)

    __radd__ = __add__
    __rmul__ = __mul__

    def map(self, monotone: Callable[[int], int]) -> Interval:
        """Return the image of the interval under a non-decreasing function."""
        return span(*(None if n is None else monotone(n) for n in (self._min, self._max)))

    def __repr__(self) -> str:
        return f"Interval({self._min}, {self._max})"


class Dimension(Interval):
    """The length of an axis, known, bounded or unknown; never negative. Matches OpenVINO's ``Dimension``.

    >>> Dimension(3) == 3, Dimension(1, 8) + 2, Dimension("..8")
    (True, <Dimension: 3..10>, <Dimension: ..8>)
    >>> batch = Dimension(1, 8)
    >>> batch.contains(9), batch.merge(Dimension(4)), batch.join(Dimension(16)), batch.has_symbol()
    (False, <Dimension: 4>, <Dimension: 1..16>, False)
    >>> batch.to_string(), batch.get_min_length(), batch.get_max_length(), Dimension(3).get_length()
    ('1..8', 1, 8, 3)
    >>> Dimension.of("?").compatible(batch), batch.refines(Dimension.between(1)), batch.relaxes(Dimension(4))
    (True, True, True)
    >>> batch.same_scheme(Dimension()), batch.min
    (True, 1)
    """

    __slots__ = ()
    _min: int

    def __init__(self, min: int | str = -1, max: int | None = None, symbol: Symbol | None = None) -> None:
        if isinstance(min, str):
            min, max = parse_bounds(min)
        elif max is None:
            min, max = (0, None) if min < 0 else (min, min)
        elif max < 0:
            max = None
        if min > LONGEST:
            raise LengthError(
                f"a dimension is longer than {LONGEST}, the longest in a tensor",
                hint="OpenVINO keeps dimensions in 64 bits, too; look for what multiplies them",
            )
        if max is not None and max > LONGEST:
            max = None
        if min < 0 or (max is not None and max < min):
            raise ValueError(f"no length is between {min} and {max}")
        super().__init__(int(min), max if max is None else int(max), symbol)

    @classmethod
    def of(cls, length: DimensionLike) -> Dimension:
        """Convert ``3``, ``"?"``, ``-1``, ``"1..8"``, ``"..8"``, ``(1, 8)``, a dimension or an interval.

        Raises:
            ValueError: if a string is not a length, or no length is between the bounds.
            TypeError: if ``length`` is of another type.
        """
        if type(length) is int:
            return _cached(length)
        if type(length) is Dimension:
            return length
        if isinstance(length, Interval):  # includes subclasses, whose symbol may change
            symbol = length.symbol if isinstance(length, Dimension) else None
            return cls.between(max(length.min or 0, 0), length.max, symbol)
        if isinstance(length, tuple | list):
            if len(length) != 2:
                raise TypeError(f"a length must have two bounds, got {length!r}")
            if any(isinstance(bound, str) for bound in length):
                raise TypeError(f"the bounds of a length must be integers, got {length!r}")
            return cls(*length)
        if isinstance(length, str):
            return _cached(int(length)) if is_number(length) else cls(length)
        try:
            return cls(operator.index(length))
        except TypeError:
            raise TypeError(f"a length must be an integer, got {length!r}") from None

    @classmethod
    def between(cls, min: int = 0, max: int | None = None, symbol: Symbol | None = None) -> Dimension:
        """Return a dimension of ``min`` to ``max``, or of at least ``min`` if ``max`` is ``None``."""
        return cls(min, -1 if max is None else max, symbol)

    @property
    def min(self) -> int:
        """The shortest length."""
        return self._min

    def get_length(self) -> int:
        """Return the length of a static dimension.

        Raises:
            InputError: if the dimension is dynamic.
        """
        if self.is_dynamic:
            raise InputError(f"the length is not known, only that it is {self}", code=Code.BAD_REQUEST)
        return self._min

    def get_min_length(self) -> int:
        """Return the shortest length."""
        return self._min

    def get_max_length(self) -> int:
        """Return the longest length, or -1 if unbounded."""
        return -1 if self._max is None else self._max

    def has_symbol(self) -> bool:
        """Return whether the dimension carries a symbol, which it shares with equal dimensions."""
        return self.symbol is not None

    def merge(self, other: Dimension) -> Dimension | None:
        """Return the intersection with ``other``, or ``None`` if it is empty."""
        if self._min == other._min and self._max == other._max:
            return other if self.symbol is None else self
        low = max(self._min, other._min)
        high = min((m for m in (self._max, other._max) if m is not None), default=None)
        if high is not None and low > high:
            return None
        return Dimension.between(low, high, self.symbol or other.symbol)

    def join(self, other: Dimension) -> Dimension:
        """Return the smallest interval that contains both dimensions."""
        if self == other:
            return self
        high = None if self._max is None or other._max is None else max(self._max, other._max)
        return Dimension.between(min(self._min, other._min), high)

    def compatible(self, other: Dimension) -> bool:
        """Return whether some length is possible for both dimensions."""
        return self.merge(other) is not None

    def contains(self, length: int) -> bool:
        """Return whether ``length`` is possible."""
        return self._min <= length and (self._max is None or length <= self._max)

    def refines(self, other: Dimension) -> bool:
        """Return whether ``other`` allows every length that this dimension allows."""
        return self._min >= other._min and (
            other._max is None or (self._max is not None and self._max <= other._max)
        )

    def relaxes(self, other: Dimension) -> bool:
        """Return whether this dimension allows every length that ``other`` allows."""
        return other.refines(self)

    def same_scheme(self, other: Dimension) -> bool:
        """Return whether both dimensions are static and equal, or both are dynamic."""
        if self.is_static and other.is_static:
            return self._min == other._min
        return self.is_dynamic is other.is_dynamic

    def to_string(self) -> str:
        """Return the dimension as IR files write it, such as ``1..8``."""
        return str(self)

    def __str__(self) -> str:
        if self.is_static:
            return str(self._min)
        if self._min == 0 and self._max is None:
            return "?"
        return f"{self._min or ''}..{'' if self._max is None else self._max}"

    def __repr__(self) -> str:
        return f"<Dimension: {self}>"


# A model has many tensors, but few distinct lengths.
_cached = lru_cache(4096)(Dimension)

IntervalLike: TypeAlias = Interval | int
DimensionLike: TypeAlias = Dimension | Interval | int | str | tuple[int, int] | list[int]


def span(low: int | None, high: int | None) -> Interval:
    """Return the interval between two bounds, as a `Dimension` if every value in it is a possible length.

    >>> span(0, 1 << 200), span(1, 8), span(1 << 64, 1 << 64).min == 1 << 64, span(1 << 200, 1 << 200).min == 1 << 128
    (<Dimension: ?>, <Dimension: 1..8>, True, True)
    """
    if low is not None and not -_MAX_BOUND <= low <= _MAX_BOUND:
        low = _MAX_BOUND if low > 0 else None
    if high is not None and not -_MAX_BOUND <= high <= _MAX_BOUND:
        high = -_MAX_BOUND if high < 0 else None
    if low is None or low < 0 or (low if high is None else high) > LONGEST:
        return Interval(low, high)
    return Dimension.between(low, high)


def _bounds(number: IntervalLike) -> tuple[int | None, int | None]:
    if isinstance(number, Interval):
        return number._min, number._max
    return int(number), int(number)
