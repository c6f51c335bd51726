"""Arrays of an element type from numbers, as Constants take them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...codes import Code
from ...errors import InputError
from ...ir.element import ElementType
from ...ir.tensor import Array

__all__ = ["fill", "holds"]


def fill(element: ElementType, shape: Sequence[int], values: object) -> Array:
    """Return an array of numbers, or filled with one number."""
    is_text = element is ElementType.string
    flat = (np.array(values, object) if is_text else _in_range(element, np.asarray(values))).reshape(-1)
    if flat.size == 1:
        return np.broadcast_to(flat, shape).copy() if shape else flat.reshape(())
    count = int(np.prod(shape, dtype=np.int64))
    if flat.size != count:
        raise InputError(
            f"a constant of shape {list(shape)} takes {count} values, got {flat.size}", code=Code.BAD_REQUEST
        )
    return flat.reshape(shape)


def _in_range(element: ElementType, values: Array) -> Array:
    """Convert numbers to an element type, checking the range; f32 overflows to infinity."""
    with np.errstate(over="ignore"):
        converted = values.astype(element.dtype)
    if values.dtype.kind not in "iuf" or element.is_encoded:
        return converted
    wrong = values[np.isfinite(values) & ~holds(element, values, converted)]
    if wrong.size:
        raise InputError(f"{wrong[0]} is out of the range of {element.label}", code=Code.BAD_REQUEST)
    return converted


def holds(element: ElementType, values: Array, converted: Array) -> Array:
    """Return a mask of the numbers that an element type can hold, given the converted numbers."""
    if element.is_integral_number():
        least = -(2 ** (element.bits - 1)) if element.is_signed() else 0
        return np.asarray((values >= least) & (values <= least + 2**element.bits - 1))
    small = element.is_real() and element.bits < 32
    return np.isfinite(converted.astype(np.float32)) if small else np.ones(values.shape, np.bool_)
