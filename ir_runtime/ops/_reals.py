"""Bounds on real numbers, as shape arithmetic meets them between one ``Convert`` and the next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.dimension import Interval, span
from ..ir.element import ElementType
from ..ir.tensor import Array, Bounds, objects
from ._define.bounds import Number, ends, fit
from .conversion import convert

__all__ = ["from_reals", "to_reals"]

# Types of real numbers to follow. In f64, OpenVINO gets its bounds wrong, and files declare what it found.
_COUNTING = (ElementType.f16, ElementType.bf16, ElementType.f32)

# Types in which a number may be infinite though it is no plausible length.
_NARROW = 32


def to_reals(numbers: Array, element: ElementType) -> Bounds | None:
    """Return bounds on integers (``dtype=object``) as bounds on numbers of a real type."""
    if element not in _COUNTING:
        return None
    pairs = [ends(number) for number in numbers.flat]
    lower, upper = ([pair[side] for pair in pairs] for side in (0, 1))
    return Bounds(
        _converted(lower, element, -np.inf).reshape(numbers.shape),
        _converted(upper, element, np.inf).reshape(numbers.shape),
    )


def _converted(numbers: Sequence[int | None], element: ElementType, absent: float) -> Array:
    known = convert(np.array([n or 0 for n in numbers], np.int64), element)
    return np.where([n is None for n in numbers], absent, known).astype(element.dtype)


def from_reals(bounds: Bounds, source: ElementType, target: ElementType) -> Array | Bounds | None:
    """Return bounds on real numbers as numbers of another type; integers become intervals."""
    if target.real:
        return Bounds(convert(bounds.lower, target, source), convert(bounds.upper, target, source))
    if target is ElementType.boolean:
        return None
    pairs = zip(bounds.lower.flat, bounds.upper.flat, strict=True)
    return objects((_whole(float(a), float(b), source, target) for a, b in pairs), bounds.lower.shape)


def _whole(lower: float, upper: float, source: ElementType, target: ElementType) -> Number:
    # What is infinite in a narrow type, or too large for the target, becomes the lowest number of all.
    limit = 2.0 ** (target.bits - 1)
    if (np.isinf(upper) and source.bits < _NARROW) or limit <= upper < np.inf or -np.inf < lower < -limit:
        return Interval()
    low, high = (None if np.isinf(n) else int(n) for n in (lower, upper))
    return fit(span(low, high), target)
