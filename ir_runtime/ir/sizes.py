"""Lower bounds of the sizes of tensors, as far as their shapes are known."""

from __future__ import annotations

import math

from .tensor import TensorType

__all__ = ["bytes_of", "elements_of"]


def elements_of(type: TensorType) -> int:
    """Return the number of elements that a tensor has at least."""
    if type.shape.is_static:
        return math.prod(type.shape.static)
    return 0 if type.shape.rank is None else math.prod([dim.min for dim in type.shape])


def bytes_of(type: TensorType) -> int:
    """Return the bytes that a tensor takes at least."""
    return elements_of(type) * max(type.element.dtype.itemsize, 1)
