"""Type promotion of Python numbers among the operands of an operation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ir.element import ElementType
from ...ir.signature import Element, port_at
from ...ir.tensor import Array
from ...ops import Op
from ..node import Node, Output
from .ends import holds

__all__ = ["with_types"]


def with_types(cls: type[Op], inputs: Sequence[object]) -> list[object]:
    """Convert Python numbers among the operands to arrays of the types that the operation requires.

    As in ``add(x, 1)``, that is the type of another operand. Numbers outside its range are not converted.
    """
    if not any(map(_is_numbers, inputs)):
        return list(inputs)
    types = [_type_of(value) for value in inputs]
    if None in types:
        return list(inputs)
    required: dict[str, ElementType] = {}
    for index, found in enumerate(types):
        port = port_at(cls.inputs, index)
        if (
            port is not None
            and found is not None
            and found is not ElementType.dynamic
            and port.element.shared
        ):
            required.setdefault(port.element.name, found)
    return [_convert_number(value, cls, index, required) for index, value in enumerate(inputs)]


def _convert_number(value: object, cls: type[Op], index: int, required: dict[str, ElementType]) -> object:
    port = port_at(cls.inputs, index)
    if not _is_numbers(value) or port is None:
        return value
    array = np.asarray(value)
    element = required.get(port.element.name) if port.element.shared else _narrower(array, port.element)
    return value if element is None else _convert_exactly(array, element, value)


def _narrower(array: Array, allowed: Element) -> ElementType | None:
    """Return f32 for Python floats if the input accepts f32 but not f64, else None."""
    is_refused = array.dtype == np.float64 and ElementType.f64 not in allowed.allowed
    return ElementType.f32 if is_refused and ElementType.f32 in allowed.allowed else None


def _convert_exactly(array: Array, element: ElementType, value: object) -> object:
    """Convert an array to another type, rounding floats; return ``value`` if an element is out of range."""
    if (
        array.dtype.kind not in "if"
        or element.is_encoded
        or (array.dtype.kind == "f" and not element.is_real())
    ):
        return value
    if not element.is_real() and not (element.is_integral_number() and element.bits >= 8):
        return value
    converted = array.astype(element.dtype)
    return converted if element.is_real() or holds(element, array, converted).all() else value


def _type_of(value: object) -> ElementType | None:
    """Return the element type of an operand: ``dynamic`` for Python numbers, None for a node with several outputs."""
    if isinstance(value, Node):
        outputs = value.outputs()
        return outputs[0].element_type if len(outputs) == 1 else None
    if isinstance(value, Output):
        return value.element_type
    if isinstance(value, np.ndarray | np.generic):
        try:
            return ElementType.from_dtype(value.dtype)
        except ValueError:
            return ElementType.dynamic
    return ElementType.dynamic


def _is_numbers(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_numbers, value))
    return isinstance(value, int | float) and not isinstance(value, bool | np.generic)
