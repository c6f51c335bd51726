"""Bounds of an operation's outputs from bounds of its inputs, where the operation is monotonic.

Rounding never changes the order of two numbers. So where a function is monotone, its values at the
bounds, computed as any others, are bounds of its values between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, ClassVar, Protocol

import numpy as np

from ...ir.array import Array
from ...ir.element import ElementType
from ...ir.tensor import Bounds, Value

__all__ = ["MonotonicOperation", "propagate_bounds"]


class MonotonicOperation(Protocol):
    """The part of an operation that tells where its outputs are least and greatest."""

    symbolic: ClassVar[bool]
    monotonicity: ClassVar[str]

    def evaluator(self, types: Sequence[ElementType]) -> Callable[..., Any]:
        """Return the function that computes the outputs."""
        ...


def propagate_bounds(op: MonotonicOperation, inputs: Sequence[Value]) -> tuple[Bounds | None, ...] | None:
    """Return bounds of the outputs from bounds of the inputs, for an operation that is monotonic in them."""
    how = op.monotonicity or ("increasing" if op.symbolic else "unknown")
    choices = [_ends(value) for value in inputs]
    if how == "unknown" or any(not choice for choice in choices):
        return None
    evaluate = op.evaluator([value.element for value in inputs])
    picked = zip(*choices, strict=True) if how == "increasing" else product(*choices)
    results = [found if isinstance(found, tuple) else (found,) for found in (evaluate(*p) for p in picked)]
    return tuple(map(_hull, zip(*results, strict=True)))


def _ends(value: Value) -> tuple[Array, ...]:
    """Return the arrays of lower and upper bounds, the same twice if known; nothing if unbounded."""
    if value.bounds is not None:
        return value.bounds.lower, value.bounds.upper
    known = value.known()
    return () if known is None else (known, known)


def _hull(arrays: Iterable[Array]) -> Bounds | None:
    """Return the hull of arrays; unbounded where one is NaN, as ``0 * inf``."""
    stack = np.stack(list(arrays))
    if not ElementType.from_dtype(stack.dtype).real:
        return None
    lower, upper = stack.min(0), stack.max(0)
    return Bounds(lower, upper).where(~(np.isnan(lower) | np.isnan(upper)))
