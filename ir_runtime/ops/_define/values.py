"""Convert between the results of `evaluate` and the values of inference."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from types import CodeType

import numpy as np

from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Bounds, TensorType, Value, objects
from .bounds import fit

__all__ = ["keywords_of", "to_value"]


def keywords_of(function: Callable[..., object]) -> frozenset[str]:
    """Return the names of the keyword-only parameters of a function."""
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__"):
        parameters = signature(function).parameters.values()
        return frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    return frozenset(code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount])


def to_value(type: TensorType, contents: Array | Bounds | None) -> Value:
    """Return a value of inferred type with propagated contents."""
    if contents is None:
        return Value(type)
    if isinstance(contents, Bounds):
        if not np.array_equal(contents.lower, contents.upper):
            return Value(TensorType(type.element, PartialShape(contents.lower.shape)), bounds=contents)
        contents = contents.lower
    if contents.dtype == object and type.element is not ElementType.string:
        return Value.bounded(type.element, _wrap(contents, type.element))
    return Value(TensorType(type.element, PartialShape(contents.shape)), contents)


def _wrap(numbers: Array, element: ElementType) -> Array:
    """Wrap integers to their element type, or drop bounds out of its range."""
    return objects((fit(n, element) for n in numbers.flat), numbers.shape) if element.integral else numbers
