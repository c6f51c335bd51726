"""The variables of a model, as users see them between runs."""

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
    """A variable of a request: read it, set it, reset it. As OpenVINO's ``VariableState``.

    Tensors of another element type are converted where the variable holds their numbers, or real ones.
    """

    def __init__(
        self, name: str, type: TensorType, values: dict[str, Held], held: ElementType | None = None
    ) -> None:
        self.name: str = name
        self._type, self._values, self._held = type, values, held or type.element

    @property
    def state(self) -> Tensor:
        """What the variable holds; before the first run, zeros, with 0 for each unknown length."""
        if self.name not in self._values:
            shape = self._type.shape
            lengths = () if shape.rank is None else tuple(d.min for d in shape)
            return Tensor(np.zeros(lengths, self._type.element.dtype), type=self._type.element)
        held = self._values[self.name]
        array = held.unpacked() if isinstance(held, QuantizedCache) else held
        if self._held is not self._type.element:
            with np.errstate(over="ignore"):
                array = array.astype(self._type.element.dtype)
        return Tensor(array, type=self._type.element)

    @state.setter
    def state(self, value: object) -> None:
        tensor = value if isinstance(value, Tensor) else Tensor(value)
        array = self._converted(as_booleans(tensor._data))
        if array is None or not self._type.shape.contains(tensor.shape):
            found = f"{tensor.element_type.label}{tensor.shape}"
            raise InputError(f"variable {self.name!r} must be {self._type}, got {found}")
        is_held = self._held in (self._type.element, ElementType.dynamic)
        self._values[self.name] = array.copy() if is_held else array.astype(self._held.dtype)

    def _converted(self, array: Array) -> Array | None:
        """Convert numbers to the element type of the variable; floating-point types round as in OpenVINO.

        ``None`` where the type is no type of numbers, or one of integers that does not hold the numbers: OpenVINO
        rounds or truncates these, depending on the type that they come from.
        """
        element = self._type.element
        if element in (ElementType.dynamic, ElementType.from_dtype(array.dtype)):
            return array
        with np.errstate(all="ignore"):
            found = cast_numbers(element, array)
        if found.dtype != element.dtype:
            return None
        return found if element.real or np.array_equal(found, array) else None

    def reset(self) -> None:
        """Give it its initial value."""
        self._values.pop(self.name, None)

    def __repr__(self) -> str:
        return f"<VariableState: {self.name!r} {self._type}>"
