"""Elementwise operations, composed of older ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...io.reader.replacing import Tensor
from ...ir.element import ElementType
from .place import Lowered, Place, lowers

__all__: list[str] = []


@lowers("IsNaN-10")
def is_nan(place: Place, op: Any) -> Lowered:
    """Compare with itself: only NaN differs."""
    (x,) = place.inputs
    return place.op("NotEqual-1", x, x)


@lowers("IsFinite-10")
def is_finite(place: Place, op: Any) -> Lowered:
    """Compare the magnitude with infinity: it is less, except for infinities and NaN."""
    (x,) = place.inputs
    return place.op("Less-1", place.op("Abs-1", x), place.full(np.inf))


@lowers("IsInf-10")
def is_inf(place: Place, op: Any) -> Lowered:
    """Compare with the infinities to detect."""
    (x,) = place.inputs
    if op.detect_positive and op.detect_negative:
        return place.op("Equal-1", place.op("Abs-1", x), place.full(np.inf))
    if not op.detect_positive and not op.detect_negative:
        return place.op("Less-1", x, x)
    return place.op("Equal-1", x, place.full(np.inf if op.detect_positive else -np.inf))


@lowers("SoftSign-9")
def soft_sign(place: Place, op: Any) -> Lowered:
    """Divide by 1 + abs(x), in f32 for f16 and bf16, so that results are rounded once."""
    (given,) = place.inputs
    x = place.wide(given)
    size = place.op("Abs-1", x)
    result = place.op("Divide-1", x, place.op("Add-1", size, place.constant(1, x.element)))
    return place.convert(result, given.element)


@lowers("Identity-16")
def identity(place: Place, op: Any) -> Lowered:
    """Concatenate a single tensor, or convert a scalar to its own type."""
    (x,) = place.inputs
    if place.rank() == 0:
        return place.op("Convert-1", x, destination_type=place.values[0].element)
    return place.identity(x)


@lowers("ConvertPromoteTypes-14")
def convert_promote_types(place: Place, op: Any) -> Lowered:
    """Convert both inputs to their common type."""
    common = op.infer_types(*place.values)[0].element
    if common is ElementType.dynamic:
        place.refuse("the element types of its inputs are dynamic")
    return tuple(place.op("Convert-1", x, destination_type=common) for x in place.inputs)


@lowers("BitwiseNot-13", "BitwiseAnd-13", "BitwiseOr-13", "BitwiseXor-13")
def bitwise(place: Place, op: Any) -> Lowered:
    """Use logical operations for booleans; for BitwiseNot of integers, subtract from the integer with all bits set."""
    element = place.values[0].element
    if element is ElementType.boolean:
        name = op.name.removeprefix("Bitwise")
        how = {} if name == "Not" else {"auto_broadcast": op.auto_broadcast}
        return place.op(f"Logical{name}-1", *place.inputs, **how)
    if op.name != "BitwiseNot" or element is ElementType.dynamic:
        place.refuse("there are logical operations for booleans only")
    ones = -1 if element.signed else (1 << element.bits) - 1
    return place.op("Subtract-1", _scalar(place, ones, element), *place.inputs)


def _scalar(place: Place, value: int, element: ElementType) -> Tensor:
    return place.constant(np.array(value, element.dtype), element)
