"""`TensorPort`, the base of ports, with names, shape and element type; and `DescriptorTensor`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from .._util.wrong_arguments import ArgumentTypeError
from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.tensor import TensorType
from .shapes import PartialShape, Shape

__all__ = ["DescriptorTensor", "TensorPort", "check_names", "describe_port"]


class TensorPort:
    """Base class of inputs and outputs, with the names, shape and element type of their tensor.

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
        """The element type and the shape."""

    @property
    @abstractmethod
    def _names(self) -> tuple[str, ...]:
        """The names of the tensor, in file order."""

    @property
    @abstractmethod
    def _owner(self) -> str:
        """The name of the layer that computes the tensor, followed by the output index if it has several outputs."""

    @abstractmethod
    def set_names(self, names: Iterable[str]) -> None:
        """Replace the names of the tensor."""

    @abstractmethod
    def add_names(self, names: Iterable[str]) -> None:
        """Add names to the tensor."""

    def belongs_to(self, name: str) -> bool:
        """Return whether ``name`` is the name of the layer that computes the tensor."""
        return name == self._owner

    @property
    def names(self) -> set[str]:
        """The names of the tensor."""
        return set(self._names)

    @property
    def any_name(self) -> str:
        """The alphabetically first name of the tensor, as in OpenVINO.

        Raises:
            InputError: if the tensor has no name.
        """
        if not self._names:
            hint = f"use its index, or {self.label!r}, the name of its layer"
            raise InputError(
                f"the tensor of layer {self._owner!r} has no name", code=Code.NO_SUCH_NAME, hint=hint
            )
        return min(self._names)

    @property
    def label(self) -> str:
        """A name for messages: the first tensor name that is not a number, or the name of the layer.

        Some converters number tensors, and such names mean nothing to users.
        """
        return next((name for name in self._names if not name.isdecimal()), self._owner)

    @property
    def partial_shape(self) -> PartialShape:
        """The shape, which may be dynamic. It is a copy: changing it does not change the model."""
        return PartialShape.copy_of(self._type.shape)

    @property
    def shape(self) -> Shape:
        """The static shape.

        Raises:
            InputError: if the shape is dynamic; see ``partial_shape``.
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
        """Return the alphabetically first name."""
        return self.any_name

    def get_partial_shape(self) -> PartialShape:
        """Return the shape, which may be dynamic."""
        return self.partial_shape

    def get_shape(self) -> Shape:
        """Return the static shape, like ``shape``."""
        return self.shape

    def get_element_type(self) -> ElementType:
        """Return the element type."""
        return self.element_type

    def __repr__(self) -> str:
        return describe_port(self, type(self).__name__)


class DescriptorTensor(TensorPort):
    """The tensor of an output or an input of a node. As OpenVINO's ``DescriptorTensor``."""

    def __init__(self, port: TensorPort) -> None:
        self._port = port

    @property
    def _type(self) -> TensorType:
        return self._port._type

    @property
    def _names(self) -> tuple[str, ...]:
        return self._port._names

    @property
    def _owner(self) -> str:
        return self._port._owner

    @property
    def size(self) -> int:
        """The size in bytes of a tensor of static shape."""
        count = 1
        for length in self.shape:
            count *= length
        return self.element_type.nbytes(count)

    def set_names(self, names: Iterable[str]) -> None:
        """Replace the names of the tensor."""
        self._port.set_names(names)

    def add_names(self, names: Iterable[str]) -> None:
        """Add names to the tensor."""
        self._port.add_names(names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DescriptorTensor) and self._port == other._port

    def __hash__(self) -> int:
        return hash(self._port)


def describe_port(port: TensorPort, kind: str) -> str:
    """Return the names, shape and element type of a port as text in OpenVINO's format."""
    return (
        f"<{kind}: names[{', '.join(port._names)}] shape{port._type.shape} type: {port._type.element.label}>"
    )


def check_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of a tensor as a tuple.

    Raises:
        ArgumentTypeError: if they are not a collection of strings, or a single string, which would be split
            into letters.
    """
    listed = tuple(names) if isinstance(names, Iterable) and not isinstance(names, str) else (None,)
    if not all(isinstance(name, str) for name in listed):
        raise ArgumentTypeError(f"expected a set of names, got {names!r}", code=Code.BAD_REQUEST)
    return tuple(map(str, listed))
