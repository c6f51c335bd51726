"""The properties of a layer: its name, operation, attributes, data and shapes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from ..codes import Code
from ..errors import InputError
from ..ir import shape
from ..ir.element import ElementType
from ..ir.graph import Layer
from ..ir.tensor import Array
from .ports import TypedPort
from .rt_info import HasRTInfo
from .shapes import PartialShape, Shape
from .type_info import DiscreteTypeInfo

__all__ = ["LayerInfo"]

# Where files spell an operation differently from OpenVINO's API.
_SPELLED = {"PReLU": "PRelu", "ReLU": "Relu", "SoftMax": "Softmax"}


class LayerInfo(HasRTInfo):
    """A layer by itself, without what it is connected to."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    @property
    def friendly_name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    @property
    def name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    def get_friendly_name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    def get_name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    @property
    def type(self) -> str:
        """The operation as files spell it, such as ``ReLU``."""
        return self.layer.type

    def get_type_name(self) -> str:
        """The operation as OpenVINO spells it, such as ``Relu``."""
        return _SPELLED.get(self.layer.type, self.layer.type)

    @property
    def type_info(self) -> DiscreteTypeInfo:
        """The operation and the opset that introduced the version of it."""
        op = self.layer.op
        return DiscreteTypeInfo(
            self.get_type_name(), self.layer.version if op is None else f"opset{op.since}"
        )

    def get_type_info(self) -> DiscreteTypeInfo:
        """The operation and the opset that introduced the version of it."""
        return self.type_info

    def get_attributes(self) -> dict[str, Any]:
        """The attributes of the operation with their defaults, as numbers, texts and lists."""
        if self.layer.op is None:
            return dict(self.layer.attributes)
        found = self.layer.op.attributes()
        stored = ("offset", "size") if self.layer.type == "Constant" else ()
        return {name: _plain(value) for name, value in found.items() if name not in stored}

    @property
    def _rt_info(self) -> Mapping[str, Any]:  # type: ignore[override]  # it is replaced by `_replace_rt_info`
        return self.layer.rt_info

    @property
    def data(self) -> Array:
        """The contents of a Constant."""
        return self.get_data()

    def get_data(self) -> Array:
        """The contents of a Constant.

        Raises:
            InputError: for other layers.
        """
        if self.layer.type != "Constant" or self.layer.op is None:
            raise InputError(
                f"layer {self.friendly_name!r} is a {self.layer.type}; only a Constant holds data",
                code=Code.BAD_REQUEST,
            )
        return self.layer.op.evaluate()  # type: ignore[no-any-return]

    @abstractmethod
    def output(self, index: int = 0) -> TypedPort:
        """One output."""

    @abstractmethod
    def input_value(self, index: int) -> TypedPort:
        """The output of another layer that an input reads."""

    @property
    def shape(self) -> Shape:
        """The shape of the only output."""
        return self.output(0).shape

    @property
    def partial_shape(self) -> PartialShape:
        """The shape of the only output, as far as it is known."""
        return self.output(0).partial_shape

    @property
    def element_type(self) -> ElementType:
        """The element type of the only output."""
        return self.output(0).element_type

    def get_partial_shape(self) -> PartialShape:
        """The shape of the only output, as far as it is known."""
        return self.partial_shape

    def get_element_type(self) -> ElementType:
        """The element type of the only output."""
        return self.element_type

    def get_output_partial_shape(self, index: int) -> PartialShape:
        """The shape of an output, as far as it is known."""
        return self.output(index).partial_shape

    def get_output_shape(self, index: int) -> Shape:
        """The shape of an output, all of which must be known."""
        return self.output(index).shape

    def get_output_element_type(self, index: int) -> ElementType:
        """The element type of an output."""
        return self.output(index).element_type

    def get_input_partial_shape(self, index: int) -> PartialShape:
        """The shape that an input reads, as far as it is known."""
        return self.input_value(index).partial_shape

    def get_input_shape(self, index: int) -> Shape:
        """The shape that an input reads, all of which must be known."""
        return self.input_value(index).shape

    def get_input_element_type(self, index: int) -> ElementType:
        """The element type that an input reads."""
        return self.input_value(index).element_type


def _plain(value: Any) -> Any:
    if isinstance(value, shape.PartialShape):
        return [-1] if value.rank is None else [d.min if d.is_static else -1 for d in value]
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, ElementType) else value
