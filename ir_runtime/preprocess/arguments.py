"""Check the arguments of steps: wrong types are a TypeError when a step is added, as in OpenVINO."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from ..ir.element import ElementType
from ..openvino.layout import Layout

__all__ = ["expected", "floats", "integers", "layout_of", "length"]

_Kind = TypeVar("_Kind")


def expected(value: Any, kind: type[_Kind]) -> _Kind:
    """Return the value if it is of that class."""
    if not isinstance(value, kind):
        name = "Type" if kind is ElementType else kind.__name__  # as the package exports it
        raise TypeError(f"expected {name}, got {value!r}")
    return value


def layout_of(value: Any) -> Layout:
    """Return a Layout, or that of which it is the text.

    Raises:
        InputError: if a text is not a layout.
    """
    return Layout(value) if isinstance(value, str) else expected(value, Layout)


def floats(value: Any) -> tuple[float, ...]:
    """Return one number or several, rounded to ``f32``."""
    single = hasattr(value, "__float__") and np.ndim(value) == 0
    given = [value] if single else list(_listed(value))
    if any(isinstance(each, str) or not hasattr(each, "__float__") for each in given):
        raise TypeError(f"expected a number or a sequence of numbers, got {value!r}")
    return tuple(np.array(list(map(float, given)), np.float32).tolist())


def integers(values: Any, least: int | None = None) -> tuple[int, ...]:
    """Return a sequence of integers."""
    found = tuple(operator.index(value) for value in _listed(values))
    if least is not None and min(found, default=least) < least:
        raise TypeError(f"expected integers of at least {least}, got {values!r}")
    return found


def length(value: Any) -> int:
    """Return an integer of at least 0."""
    return integers([value], least=0)[0]


def _listed(values: Any) -> Iterable[Any]:
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        raise TypeError(f"expected a sequence of numbers, got {values!r}")
    return values
