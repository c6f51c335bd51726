"""The contents of an operation's outputs, or bounds of them, from those of its inputs.

Bounds of real numbers are propagated where an operation is monotonic. Rounding never changes the order of two
numbers, so its values at the bounds, computed as any others, are bounds of its values between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from ...ir.array import Array
from ...ir.element import ElementType
from ...ir.sizes import span_of
from ...ir.tensor import Bounds, TensorType, Value

__all__ = ["MAX_PROPAGATED", "Contents", "Propagated", "is_large", "propagate_contents"]

# Contents are propagated through shape arithmetic only: tensors with more elements than this are data.
MAX_PROPAGATED = 4096

Contents: TypeAlias = "Array | Bounds | None"
"""Elements that are numbers or intervals, or bounds of real numbers; ``None`` if unknown."""
Propagated: TypeAlias = "Contents | tuple[Contents, ...]"
"""The contents of the outputs; those of all of them if there is one for several."""


class _Evaluated(Protocol):
    """The part of an operation that computes its outputs."""

    pure: ClassVar[bool]
    symbolic: ClassVar[bool]
    monotonicity: ClassVar[str]

    def evaluator(self, types: Sequence[ElementType]) -> Callable[..., Any]:
        """Return the function that computes the outputs."""
        ...


def is_large(type: TensorType) -> bool:
    """Return whether a tensor has too many elements for its contents to be propagated, or its rank is unknown.

    One without elements is large if its other lengths are.
    """
    if type.shape.is_static:
        return (math.prod(type.shape.static) or span_of(type.shape)) > MAX_PROPAGATED
    return type.shape.rank is None or Value(type).count.min > MAX_PROPAGATED


def _is_much(array: Array) -> bool:
    """Return whether an array is too large to compute with; one without elements is if its other lengths are."""
    return (array.size or math.prod([n or 1 for n in array.shape])) > MAX_PROPAGATED


def propagate_contents(op: _Evaluated, inputs: Sequence[Value]) -> Propagated:
    """Return the contents of the outputs: evaluate the operation on the known contents of the inputs.

    ``TypeError`` means that the arithmetic is not defined on intervals, and so that the contents are unknown.
    """
    if any(v.bounds is not None for v in inputs):
        return _propagate_bounds(op, inputs) if op.pure else None
    if not op.pure or not inputs or any(v.data is None or _is_much(v.data) for v in inputs):
        return None
    intervals = any(v.known() is None for v in inputs)
    if intervals and not op.symbolic:
        return None
    try:
        found: Propagated = op.evaluator([v.element for v in inputs])(*(v.data for v in inputs))
        return found
    except TypeError:
        if not intervals:
            raise
        return None


def _propagate_bounds(op: _Evaluated, inputs: Sequence[Value]) -> tuple[Bounds | None, ...] | None:
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
