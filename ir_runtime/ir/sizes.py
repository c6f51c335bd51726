"""Lower bounds of the sizes of tensors, and empty results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .element import ElementType
from .shape import PartialShape
from .tensor import Array, TensorType

if TYPE_CHECKING:
    from ..diagnostics import Location
    from ..limits import Limits

__all__ = ["bytes_of", "check_lengths", "elements_of", "empty_results", "span_of"]


def elements_of(type: TensorType) -> int:
    """Return the number of elements that a tensor has at least."""
    if type.shape.is_static:
        return math.prod(type.shape.static)
    return 0 if type.shape.rank is None else math.prod([dim.min for dim in type.shape])


def bytes_of(type: TensorType) -> int:
    """Return the bytes that a tensor takes at least."""
    return elements_of(type) * max(type.element.dtype.itemsize, 1)


def span_of(shape: PartialShape) -> int:
    """Return the product of the lengths, where 0 counts as 1, and dynamic dims count as their minimum.

    That of a tensor with elements is their number. Kernels may loop over the lengths of one without, or need scratch
    memory for them, such as an index for each position along an axis; so they are limited alike.

    >>> span_of(PartialShape([2, 3])), span_of(PartialShape([0, 3])), span_of(PartialShape([-1, 3]))
    (6, 3, 3)
    """
    return 1 if shape.rank is None else math.prod([max(dim.min, 1) for dim in shape])


def check_lengths(type: TensorType, limits: Limits, where: Location | None = None) -> None:
    """Check the number of elements of a tensor; one without any must not have lengths beyond the limits, either.

    Raises:
        LimitError: if there are too many, for any value of the dynamic dims.
    """
    span = span_of(type.shape)
    limits.check("elements", span, where)
    if not elements_of(type):
        limits.check("memory", span * max(type.element.dtype.itemsize, 1), where, f"lengths of {type}")


def empty_results(types: Sequence[TensorType]) -> tuple[Array, ...] | None:
    """Return arrays of the given types if all are known to have no elements, else ``None``.

    No kernel needs to run for them: it could only loop over the other lengths of its inputs. Lengths that NumPy cannot
    count are left to the limits.
    """
    if not types or any(elements_of(t) or not t.shape.is_static or t.element is _DYNAMIC for t in types):
        return None
    if any(span_of(t.shape) * max(t.element.dtype.itemsize, 1) > _MOST for t in types):
        return None
    return tuple([np.empty(t.shape.static, t.element.dtype) for t in types])


_DYNAMIC, _MOST = ElementType.dynamic, np.iinfo(np.intp).max
