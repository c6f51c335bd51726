"""Format names, shapes and numbers for a report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from .._util.escaping import shown
from ..ir.array import Array
from ..ir.shape import PartialShape

__all__ = ["count_text", "dims", "numbers", "plain", "tensor_name"]

_LONGEST = 2000
_SHOWN = 8


def dims(shape: PartialShape | Iterable[object] | None) -> str:
    """Format a shape as ``1×3×224×224``.

    >>> dims(PartialShape([1, 3])), dims(()), dims(PartialShape("..."))
    ('1×3', 'scalar', 'any shape')
    """
    if shape is None or (isinstance(shape, PartialShape) and shape.rank is None):
        return "any shape"
    return "×".join(map(str, shape)) or "scalar"


def tensor_name(names: Collection[str], layer: str) -> str:
    """Choose which name of a tensor to show: the name of its layer if present, or else the shortest non-numeric one.

    >>> tensor_name(["lengths", "9"], "lengths"), tensor_name(["9", "ids", "input_ids"], "x"), tensor_name(["9"], "x")
    ('lengths', 'ids', 'x')
    """
    words = [name for name in names if not name.isdecimal()]
    return layer if layer in names else min(words, key=len, default=layer)


def numbers(array: Array, most: int = _SHOWN) -> str:
    """Format an array by its first ``most`` elements."""
    flat = array.reshape(-1)
    shown = ", ".join(_number(value) for value in flat[:most].tolist())
    return shown + (", …" if flat.size > most else "")


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else shown(str(value))


def plain(value: Any) -> Any:
    """Convert attributes or runtime information to JSON data."""
    if isinstance(value, Mapping):
        return {shown(str(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return numbers(value)
    if isinstance(value, list | tuple):
        return shown(", ".join(map(str, value)), _LONGEST)
    return shown(str(value), _LONGEST)


def count_text(number: int, noun: str) -> str:
    """Format a count with its noun.

    >>> count_text(1, "layer"), count_text(2000, "layer")
    ('1 layer', '2,000 layers')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
