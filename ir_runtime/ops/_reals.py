"""Bounds on real numbers in shape arithmetic between two ``Convert`` operations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.dimension import Interval, span
from ..ir.element import ElementType
from ..ir.tensor import Array, Bounds, objects
from ._define.bounds import Number, ends, fit
from .conversion import convert

__all__ = ["from_reals", "to_reals"]

# Real types with bounds. In f64, OpenVINO's bounds are wrong, and files declare them.
_COUNTING = (ElementType.f16, ElementType.bf16, ElementType.f32)

# Types that overflow to infinity at implausible lengths.
_NARROW = 32


def to_reals(numbers: Array, element: ElementType) -> Bounds | None:
    """Convert bounds on integers (``dtype=object``) to bounds on a real type."""
    if element not in _COUNTING:
        return None
    pairs = [ends(number) for number in numbers.flat]
    lower, upper = ([pair[side] for pair in pairs] for side in (0, 1))
    return Bounds(
        _convert_bounds(lower, element, -np.inf).reshape(numbers.shape),
        _convert_bounds(upper, element, np.inf).reshape(numbers.shape),
    )


def _convert_bounds(numbers: Sequence[int | None], element: ElementType, absent: float) -> Array:
    converted = convert(np.array([n or 0 for n in numbers], np.int64), element)
    return np.where([n is None for n in numbers], absent, converted).astype(element.dtype)


def from_reals(bounds: Bounds, source: ElementType, target: ElementType) -> Array | Bounds | None:
    """Convert bounds on real numbers to another type; integers become intervals."""
    if target.real:
        return Bounds(convert(bounds.lower, target, source), convert(bounds.upper, target, source))
    if target is ElementType.boolean:
        return None
    pairs = zip(bounds.lower.flat, bounds.upper.flat, strict=True)
    return objects((_whole(float(a), float(b), source, target) for a, b in pairs), bounds.lower.shape)


def _whole(lower: float, upper: float, source: ElementType, target: ElementType) -> Number:
    # Infinity, or a number too large for the target, becomes the lowest integer.
    limit = 2.0 ** (target.bits - 1)
    if (np.isinf(upper) and source.bits < _NARROW) or limit <= upper < np.inf or -np.inf < lower < -limit:
        return Interval()
    low, high = (None if np.isinf(n) else int(n) for n in (lower, upper))
    return fit(span(low, high), target)
