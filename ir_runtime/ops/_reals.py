"""Bounds on real numbers, as shape arithmetic meets them between one ``Convert`` and the next.

Rounding never changes the order of two numbers. So where a function is monotone, its values at the
bounds, computed as any others, are bounds of its values between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.dimension import Interval, span
from ..ir.element import ElementType
from ..ir.tensor import Array, Bounds, Value, objects
from ._convert import convert
from ._define.bounds import Number, ends, fit

if TYPE_CHECKING:
    from ._define.operation import Op

__all__ = ["at_ends", "from_reals", "to_reals"]

# Types of real numbers to follow. In f64, OpenVINO gets its bounds wrong, and files declare what it found.
_COUNTING = (ElementType.f16, ElementType.bf16, ElementType.f32)

# Types in which a number may be infinite though it is no length that anybody would have.
_NARROW = 32


def at_ends(op: Op, inputs: Sequence[Value]) -> tuple[Bounds | None, ...] | None:
    """What bounds on real inputs say about the outputs of an operation that is monotone in them."""
    how = op.extremes or ("rising" if op.symbolic else "unknown")
    choices = [_ends(value) for value in inputs]
    if how == "unknown" or any(not choice for choice in choices):
        return None
    evaluate = op.evaluator([value.element for value in inputs])
    picked = zip(*choices, strict=True) if how == "rising" else product(*choices)
    results = [found if isinstance(found, tuple) else (found,) for found in (evaluate(*p) for p in picked)]
    return tuple(map(_hull, zip(*results, strict=True)))


def _ends(value: Value) -> tuple[Array, ...]:
    """The arrays at both ends, twice the same if it is known; nothing if there is no bound at all."""
    if value.bounds is not None:
        return value.bounds.lower, value.bounds.upper
    known = value.known()
    return () if known is None else (known, known)


def _hull(arrays: Iterable[Array]) -> Bounds | None:
    """What lies between arrays; no bound where one is no number, as ``0 * inf``."""
    stack = np.stack(list(arrays))
    if not ElementType.from_dtype(stack.dtype).real:
        return None
    lower, upper = stack.min(0), stack.max(0)
    return Bounds(lower, upper).where(~(np.isnan(lower) | np.isnan(upper)))


def to_reals(numbers: Array, element: ElementType) -> Bounds | None:
    """Bounds on whole numbers (``dtype=object``) as bounds on numbers of a real type."""
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


def from_reals(bounds: Bounds, source: ElementType, target: ElementType) -> Any:
    """Bounds on real numbers as numbers of another type: whole ones as intervals."""
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
