"""`VariableState`, the user's access to variables between runs."""

from __future__ import annotations

import numpy as np

from .._util.absent import ExplainsAbsent
from ..errors import InputError
from ..ir.array import as_booleans
from ..ir.element import ElementType
from ..ir.quantized_cache import Held, QuantizedCache
from ..ir.tensor import Array, TensorType
from .casting import cast_numbers
from .tensor import Tensor

__all__ = ["VariableState"]


class VariableState(ExplainsAbsent):
    """A variable of a request, whose value can be read, set and reset. As OpenVINO's ``VariableState``.

    A tensor of another element type is converted, if that is exact or the variable is of a floating-point type.
    """

    def __init__(
        self, name: str, type: TensorType, values: dict[str, Held], computed: ElementType | None = None
    ) -> None:
        self.name: str = name
        self._type, self._values, self._held = type, values, computed or type.element

    @property
    def state(self) -> Tensor:
        """The value of the variable. Before the first run, it is zero, with dynamic dims at their minimum length."""
        if self.name not in self._values:
            shape = self._type.shape
            lengths = () if shape.rank is None else tuple(d.min for d in shape)
            return Tensor(np.zeros(lengths, self._type.element.dtype), type=self._type.element)
        current = self._values[self.name]
        array = current.unpacked() if isinstance(current, QuantizedCache) else current
        if self._held is not self._type.element:
            with np.errstate(over="ignore"):
                array = array.astype(self._type.element.dtype)
        return Tensor(array, type=self._type.element)

    @state.setter
    def state(self, value: object) -> None:
        tensor = value if isinstance(value, Tensor) else Tensor(value)
        array = self._convert(as_booleans(tensor._data))
        if array is None or not self._type.shape.contains(tensor.shape):
            description = f"{tensor.element_type.label}{tensor.shape}"
            raise InputError(f"variable {self.name!r} must be {self._type}, got {description}")
        is_held = self._held in (self._type.element, ElementType.dynamic)
        self._values[self.name] = array.copy() if is_held else array.astype(self._held.dtype)

    def _convert(self, array: Array) -> Array | None:
        """Convert an array to the element type of the variable, rounding to a floating-point type as in OpenVINO.

        Return None if a type is not numeric, or an integer type cannot represent the values, which OpenVINO rounds or
        truncates depending on the source type.
        """
        element = self._type.element
        if element in (ElementType.dynamic, ElementType.from_dtype(array.dtype)):
            return array
        with np.errstate(all="ignore"):
            converted = cast_numbers(element, array)
        if converted.dtype != element.dtype:
            return None
        return converted if element.real or np.array_equal(converted, array) else None

    def reset(self) -> None:
        """Reset the variable to its initial value."""
        self._values.pop(self.name, None)

    def __repr__(self) -> str:
        return f"<VariableState: {self.name!r} {self._type}>"
