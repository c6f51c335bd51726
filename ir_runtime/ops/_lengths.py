"""Inputs that contain lengths, some of which may be unknown."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import mul

from ..errors import InferenceError
from ..ir.dimension import Dimension, Interval
from ..ir.tensor import Value
from ._ranks import check_one_number, check_vector

__all__ = [
    "common_count",
    "count_of",
    "length_of",
    "lengths_of",
    "listed",
    "multiples",
    "product",
]

# Far above any reasonable list; results of a longer one would not fit into memory.
_MOST = 1 << 16


def listed(numbers: Iterable[int | Interval]) -> str:
    """Format numbers, some of which may be unknown, for messages.

    >>> listed([1, Dimension(2, 8), Interval(-3, 3), Interval(None, -1), Interval()])
    '[1,2..8,-3..3,..-1,?]'
    """
    return f"[{','.join(map(_show, numbers))}]"


def _show(number: int | Interval) -> str:
    low, high = (number.min, number.max) if isinstance(number, Interval) else (number, number)
    if low is not None and low == high:
        return str(low)
    if isinstance(number, Dimension) or (low is None and high is None):
        return str(number) if isinstance(number, Dimension) else "?"
    return f"{'' if low is None else low}..{'' if high is None else high}"


def count_of(value: Value, name: str = "an input") -> int | None:
    """Return the length of a list of axes, lengths or parts, if known."""
    if value.count.min > _MOST:
        raise InferenceError(
            f"{name} of shape {value.shape} holds {value.count} numbers; at most {_MOST} are allowed where "
            f"each is an axis, a length or a part"
        )
    return value.count.__index__() if value.count.is_static else None


def common_count(**inputs: Value | None) -> int | None:
    """Return the common length of 1-D inputs, if known."""
    present = {name: value for name, value in inputs.items() if value is not None}
    for name, value in present.items():
        check_vector(value, name)
    counts = {name: count for name, value in present.items() if (count := count_of(value, name)) is not None}
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{name} has length {count}" for name, count in counts.items())
        *others, last = counts
        raise InferenceError(f"{', '.join(others)} and {last} must be equally long; {text}")
    return next(iter(counts.values()), None)


def length_of(value: Value, name: str, least: int = 0) -> Dimension:
    """Return the dimension held by a scalar or a list of one number."""
    check_one_number(value, name)
    (number,) = value.numbers() or (Interval(),)
    highest = number.max if isinstance(number, Interval) else number
    if highest is not None and highest < least:
        raise InferenceError(f"{name} is {_show(number)}; at least {least} is expected")
    length = Dimension.of(number)
    return length if length.min >= least else Dimension.between(least, length.max, length.symbol)


def lengths_of(value: Value, name: str) -> tuple[Dimension, ...] | None:
    """Return the dimensions held by a 1-D input; ``None`` if their number is unknown."""
    check_vector(value, name)
    numbers = value.numbers()
    if numbers is None:
        count = count_of(value, name)
        return None if count is None else (Dimension(),) * count
    for place, number in enumerate(numbers):
        if isinstance(number, int) and number < 0:
            raise InferenceError(f"element {place} of {name} is {number}; a length is at least 0")
    return tuple(map(Dimension.of, numbers))


def multiples(length: Dimension, of: int) -> Dimension | None:
    """Restrict a length to multiples of a number; ``None`` if there are none.

    >>> multiples(Dimension(3, 9), 2), multiples(Dimension(1), 4)
    (<Dimension: 4..8>, None)
    """
    low = -(-length.min // of) * of
    high = None if length.max is None else length.max // of * of
    return None if high is not None and high < low else Dimension.between(low, high, length.symbol)


def product(lengths: Iterable[Interval]) -> Dimension:
    """Return the product of lengths, the number of elements."""
    return Dimension.of(reduce(mul, lengths, Dimension(1)))
