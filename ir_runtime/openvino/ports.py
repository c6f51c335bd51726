"""The type and the names of a tensor of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.tensor import TensorType
from .shapes import PartialShape, Shape

__all__ = ["TypedPort", "described"]


class TypedPort(ABC):
    """An output of a layer, with the type and the names of its tensor.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([-1, 2], np.float32, name="x")
    >>> port = ov.compile_model(ov.Model([opset1.relu(x, name="y")], [x])).input()
    >>> port.partial_shape, port.names, port.any_name, port.label, port.belongs_to("x")
    (<PartialShape: [?,2]>, {'x'}, 'x', 'x', True)
    """

    @property
    @abstractmethod
    def _type(self) -> TensorType:
        """The type of the tensor."""

    @property
    @abstractmethod
    def _names(self) -> tuple[str, ...]:
        """The names of the tensor, in the order of the file."""

    @property
    @abstractmethod
    def _owner(self) -> str:
        """The name of the layer that computes the tensor, with the output where it has several."""

    def belongs_to(self, name: str) -> bool:
        """Return whether it is known by the name of its layer."""
        return name == self._owner

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
                f"the tensor of layer {self._owner!r} has no name", code=Code.NO_SUCH_NAME, hint=hint
            )
        return min(self._names)

    @property
    def label(self) -> str:
        """A name to show: the tensor's, else the layer's, with the port where it has several.

        Numbers that converters give tensors as names are passed over.
        """
        return next((name for name in self._names if not name.isdecimal()), self._owner)

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

    def get_names(self) -> set[str]:
        """Return the names of the tensor."""
        return self.names

    def get_any_name(self) -> str:
        """One of the names."""
        return self.any_name

    def get_partial_shape(self) -> PartialShape:
        """Return the shape, as far as it is known."""
        return self.partial_shape

    def get_shape(self) -> Shape:
        """Return the shape; see ``shape``."""
        return self.shape

    def get_element_type(self) -> ElementType:
        """Return the element type."""
        return self.element_type

    def __repr__(self) -> str:
        return described(self, type(self).__name__)


def described(port: TypedPort, kind: str) -> str:
    """Return names, shape and type as OpenVINO shows them."""
    return (
        f"<{kind}: names[{', '.join(port._names)}] shape{port._type.shape} type: {port._type.element.label}>"
    )
