"""The range of a slice: ``start``, ``stop`` and ``step`` along one axis."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TypeAlias

import numpy as np

from ...ir.dimension import Dimension, Interval
from ...ir.tensor import Value

__all__ = ["FAR", "Bound", "bounds_of", "python_slice", "sliced"]

Bound: TypeAlias = int | Interval
"""Where a slice starts or stops; an interval is known in part."""

FAR = 2**200
"""Beyond the end of every axis; ``-FAR`` is before the beginning."""

_ENDLESS = 2**140  # represents the length of an unbounded axis
_LONGEST = 2**31 - 1  # treated as the longest length when comparing lengths


def bounds_of(value: Value, count: int) -> list[Bound]:
    """Return the bounds in ``start`` or ``stop``; the extremes of i32 and i64 mean unbounded."""
    numbers = value.numbers()
    if numbers is None:
        return [Interval()] * count
    if value.element.bits < 32:
        return list(numbers)
    limits = np.iinfo(value.element.dtype)
    extremes = {int(limits.max): FAR} | ({int(limits.min): -FAR} if limits.min else {})
    return [extremes.get(n, n) if isinstance(n, int) else n for n in numbers]


def python_slice(length: int, start: int, stop: int, step: int) -> slice:
    """Return a slice as in Python, with one exception.

    Backwards, a start before the first element is moved to it. The page of StridedSlice says so, and OpenVINO
    also does it in Slice, although that page refers to Python.
    """
    if step < 0 and start < -length:
        start = 0
    return slice(start, stop, step)


def sliced(length: Dimension, start: Bound, stop: Bound, step: int | None) -> Dimension:
    """Return the number of elements in a slice of an axis, or bounds of it."""
    if step is None:
        return Dimension.between(0, length.max)
    if start == 0 and step == 1 and isinstance(stop, Dimension) and stop.symbol is not None:
        if stop.symbol is length.symbol:
            return length
        if stop.max is not None and stop.max <= length.min:
            return stop
    starts, stops = _extremes(start), _extremes(stop)
    counts = [
        (n, _count(n, a, b, step))
        for n in _lengths(length, [*starts, *stops])
        for a, b in product(starts, stops)
    ]
    fewest, most = min(c for _, c in counts), max(c for _, c in counts)
    high = None if most > 2**64 else most
    if abs(step) == 1 and length.min <= _LONGEST and all(c == n for n, c in counts if n <= _LONGEST):
        return Dimension.between(length.min, high, length.symbol)
    return Dimension.between(fewest, high)


def _count(length: int, start: int, stop: int, step: int) -> int:
    first, last, step = python_slice(length, start, stop, step).indices(length)
    return max(0, (last - first + step + (-1 if step > 0 else 1)) // step)


def _extremes(bound: Bound) -> list[int]:
    """Return values of a bound that give the most and fewest elements: its ends, and values around 0."""
    if isinstance(bound, int):
        return [bound]
    low = -FAR if bound.min is None else bound.min
    high = FAR if bound.max is None else bound.max
    return sorted({low, high} | {n for n in (-1, 0) if low <= n <= high})


def _lengths(length: Dimension, bounds: list[int]) -> Iterator[int]:
    """Yield lengths that give the most and fewest elements.

    The number of elements is piecewise linear in the length and bends only where a bound meets an end.
    """
    low, high = length.min, _ENDLESS if length.max is None else length.max
    bends = {abs(b) + d for b in bounds for d in (-1, 0, 1)} | {0, 1}
    yield from sorted({low, high} | {n for n in bends | {_LONGEST} if low <= n <= high})
