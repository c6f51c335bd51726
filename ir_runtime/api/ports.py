"""The type, the names and the place of a tensor of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.graph import Layer, Port
from ..ir.tensor import TensorType
from .shapes import PartialShape, Shape

__all__ = ["TypedPort"]


class TypedPort:
    """An output port of a layer, with the type of its tensor.

    Its type is what was inferred when it was asked for; reshaping the model makes it out of date.
    """

    def __init__(
        self,
        layer: Layer,
        port: Port,
        type: TensorType,
        names: tuple[str, ...] = (),
        result: Layer | None = None,
    ) -> None:
        self._layer, self._port, self._type, self._result = layer, port, type, result
        self._names = names

    @property
    def names(self) -> set[str]:
        """The names of the tensor."""
        return set(self._names)

    @property
    def any_name(self) -> str:
        """One of the names: the first in the alphabet, as in OpenVINO.

        Raises:
            InputError: if there is none.
        """
        if not self._names:
            hint = f"use its index, or {self.label!r}, the name of its layer"
            raise InputError(
                f"the tensor of layer {self._layer.name!r} has no name", code=Code.NO_SUCH_NAME, hint=hint
            )
        return min(self._names)

    @property
    def label(self) -> str:
        """A name to show: the tensor's, else the layer's, with the port where it has several."""
        if self._names:
            return self._names[0]
        layer = self._layer
        return layer.name if len(layer.outputs) == 1 else f"{layer.name}:{self._port.number}"

    @property
    def partial_shape(self) -> PartialShape:
        """The shape, as far as it is known. Changing it changes nothing about the model."""
        return PartialShape.copy_of(self._type.shape)

    @property
    def shape(self) -> Shape:
        """The shape.

        Raises:
            InputError: if some of it is not known; see ``partial_shape``.
        """
        if self._type.shape.is_dynamic:
            raise InputError(
                f"the shape of {self.label!r} is not known before the model runs: {self._type.shape}",
                code=Code.BAD_REQUEST,
                hint="see partial_shape, or fix it with model.reshape(...)",
            )
        return Shape(self._type.shape.static)

    @property
    def element_type(self) -> ElementType:
        """The element type."""
        return self._type.element

    @property
    def index(self) -> int:
        """Which output of its layer this is."""
        return 0 if self._result else self._port.number

    @property
    def rt_info(self) -> Mapping[str, Any]:
        """The runtime information in the file."""
        spec = self._layer.outputs[self._port.number : self._port.number + 1]
        return spec[0].rt_info if spec else {}

    def get_names(self) -> set[str]:
        """The names of the tensor."""
        return self.names

    def get_any_name(self) -> str:
        """One of the names."""
        return self.any_name

    def get_partial_shape(self) -> PartialShape:
        """The shape, as far as it is known."""
        return self.partial_shape

    def get_shape(self) -> Shape:
        """The shape; see ``shape``."""
        return self.shape

    def get_element_type(self) -> ElementType:
        """The element type."""
        return self.element_type

    def get_index(self) -> int:
        """Which output of its layer this is."""
        return self.index

    def get_rt_info(self) -> Mapping[str, Any]:
        """The runtime information in the file."""
        return self.rt_info

    def belongs_to(self, name: str) -> bool:
        """Whether this is an output of the layer, or what the Result, of that name takes."""
        own = (self._layer.name, f"{self._layer.name}:{self._port.number}")
        return name in own or (self._result is not None and name == self._result.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedPort) and (self._port, self._result) == (other._port, other._result)

    def __hash__(self) -> int:
        return hash((self._port, self._result.id if self._result else None))

    def __repr__(self) -> str:
        names = ", ".join(self._names)
        return f"<{type(self).__name__}: names[{names}] shape{self._type.shape} type: {self._type.element}>"
