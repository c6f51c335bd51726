"""Propagate the contents of an operation's outputs, or their bounds, from its inputs.

Bounds of real numbers are propagated through monotonic operations. Rounding preserves order, so the results
for the bounds are bounds of the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from ...ir.array import Array
from ...ir.element import ElementType
from ...ir.tensor import Bounds, TensorType, Value, span_of

__all__ = ["MAX_PROPAGATED", "Contents", "Propagated", "is_large", "propagate_contents"]

# Contents are propagated through shape arithmetic only: larger tensors are data.
MAX_PROPAGATED = 4096

Contents: TypeAlias = "Array | Bounds | None"
"""Elements that are numbers or intervals, or bounds of real numbers; ``None`` if unknown."""
Propagated: TypeAlias = "Contents | tuple[Contents, ...]"
"""The contents of the outputs; for a single output, without a tuple."""


class _Evaluated(Protocol):
    """The part of an operation that computes outputs."""

    pure: ClassVar[bool]
    symbolic: ClassVar[bool]
    monotonicity: ClassVar[str]

    def evaluator(self, types: Sequence[ElementType]) -> Callable[..., Any]:
        """Return the function that computes outputs."""
        ...


def is_large(type: TensorType) -> bool:
    """Return whether a tensor is too large for propagation, or of unknown rank.

    An empty tensor is large if its other lengths are.
    """
    if type.shape.is_static:
        return (math.prod(type.shape.static) or span_of(type.shape)) > MAX_PROPAGATED
    return type.shape.rank is None or Value(type).count.min > MAX_PROPAGATED


def _is_much(array: Array) -> bool:
    """Return whether an array is too large to compute with; an empty one, if its other lengths are."""
    return (array.size or math.prod([n or 1 for n in array.shape])) > MAX_PROPAGATED


def propagate_contents(op: _Evaluated, inputs: Sequence[Value]) -> Propagated:
    """Return the contents of the outputs by evaluating the operation on known contents.

    ``TypeError`` means that the arithmetic is undefined on intervals, so the contents are unknown.
    """
    if any(v.bounds is not None for v in inputs):
        return _propagate_bounds(op, inputs) if op.pure else None
    if not op.pure or not inputs or any(v.data is None or _is_much(v.data) for v in inputs):
        return None
    intervals = any(v.known() is None for v in inputs)
    if intervals and not op.symbolic:
        return None
    try:
        contents: Propagated = op.evaluator([v.element for v in inputs])(*(v.data for v in inputs))
        return contents
    except TypeError:
        if not intervals:
            raise
        return None


def _propagate_bounds(op: _Evaluated, inputs: Sequence[Value]) -> tuple[Bounds | None, ...] | None:
    """Return bounds of a monotonic operation's outputs from bounds of its inputs."""
    how = op.monotonicity or ("increasing" if op.symbolic else "unknown")
    choices = [_ends(value) for value in inputs]
    if how == "unknown" or any(not choice for choice in choices):
        return None
    evaluate = op.evaluator([value.element for value in inputs])
    picked = zip(*choices, strict=True) if how == "increasing" else product(*choices)
    results = [
        result if isinstance(result, tuple) else (result,) for result in (evaluate(*p) for p in picked)
    ]
    return tuple(map(_hull, zip(*results, strict=True)))


def _ends(value: Value) -> tuple[Array, ...]:
    """Return arrays of lower and upper bounds, equal if known; nothing if unbounded."""
    if value.bounds is not None:
        return value.bounds.lower, value.bounds.upper
    contents = value.known()
    return () if contents is None else (contents, contents)


def _hull(arrays: Iterable[Array]) -> Bounds | None:
    """Return the hull of arrays; unbounded if one contains NaN, as ``0 * inf``."""
    stack = np.stack(list(arrays))
    if not ElementType.from_dtype(stack.dtype).real:
        return None
    lower, upper = stack.min(0), stack.max(0)
    return Bounds(lower, upper).where(~(np.isnan(lower) | np.isnan(upper)))
