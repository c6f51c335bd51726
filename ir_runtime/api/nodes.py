"""Layers of a model and their inputs, as users hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.graph import Layer, Port
from ..ir.shape import PartialShape, Shape
from ..ir.tensor import Array
from .ports import Output

if TYPE_CHECKING:
    from .view import View

__all__ = ["Input", "Node"]


class Input:
    """An input of a layer. As OpenVINO's ``Input``."""

    def __init__(self, model: View, port: Port) -> None:
        self._model, self._port = model, port

    def get_source_output(self) -> Output:
        """The tensor it reads.

        Raises:
            InputError: if nothing feeds it.
        """
        layer = self._model._graph[self._port.layer]
        source = self._model._graph.sources(layer)[self._port.number]
        if source is None:
            message = f"input port {layer.inputs[self._port.number].id} of layer {layer.name!r} has no edge"
            raise InputError(message, code=Code.BAD_REQUEST)
        return self._model._output(source)

    def get_node(self) -> Node:
        """The layer."""
        return self._model._node(self._model._graph[self._port.layer])

    def get_index(self) -> int:
        """Which input of its layer this is."""
        return self._port.number

    def get_partial_shape(self) -> PartialShape:
        """The shape, as far as it is known."""
        return self.get_source_output().partial_shape

    def get_shape(self) -> Shape:
        """The shape, all of which must be known."""
        return self.get_source_output().shape

    def get_element_type(self) -> ElementType:
        """The element type."""
        return self.get_source_output().element_type

    @property
    def rt_info(self) -> Mapping[str, Any]:
        """What the file says beside."""
        return self._model._graph[self._port.layer].inputs[self._port.number].rt_info

    def get_rt_info(self) -> Mapping[str, Any]:
        """What the file says beside."""
        return self.rt_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Input) and self._port == other._port

    def __hash__(self) -> int:
        return hash(self._port)

    def __repr__(self) -> str:
        try:
            return f"<Input: shape{self.get_partial_shape()} type: {self.get_element_type()}>"
        except InputError as reason:
            return f"<Input: {reason.message}>"


class Node:
    """A layer of a model. As OpenVINO's ``Node``, to look at."""

    def __init__(self, model: View, layer: Layer) -> None:
        self._model, self.layer = model, layer

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

    def get_attributes(self) -> dict[str, Any]:
        """The attributes of the operation with their defaults, as numbers, texts and lists."""
        if self.layer.op is None:
            return dict(self.layer.attributes)
        found = self.layer.op.attributes()
        stored = ("offset", "size") if self.layer.type == "Constant" else ()
        return {name: _plain(value) for name, value in found.items() if name not in stored}

    @property
    def rt_info(self) -> Mapping[str, Any]:
        """What the file says beside."""
        return self.layer.rt_info

    def get_rt_info(self) -> Mapping[str, Any]:
        """What the file says beside."""
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

    def outputs(self) -> list[Output]:
        """Every output. That of a Result is the output of the model."""
        if self.layer.type == "Result":
            return list(self._model._outputs_of(self.layer))
        return [self._model._output(Port(self.layer.id, i)) for i in range(len(self.layer.outputs))]

    def output(self, index: int = 0) -> Output:
        """One output.

        Raises:
            InputError: if there is none of that index.
        """
        return _at(self.outputs(), index, "output", self)

    def inputs(self) -> list[Input]:
        """Every input."""
        return [Input(self._model, Port(self.layer.id, i)) for i in range(len(self.layer.inputs))]

    def input(self, index: int) -> Input:
        """One input.

        Raises:
            InputError: if there is none of that index.
        """
        return _at(self.inputs(), index, "input", self)

    def input_values(self) -> list[Output]:
        """The outputs of other layers that this one reads."""
        return [port.get_source_output() for port in self.inputs()]

    def input_value(self, index: int) -> Output:
        """The output of another layer that an input reads."""
        return self.input(index).get_source_output()

    def get_output_size(self) -> int:
        """How many outputs there are."""
        return len(self.outputs())

    def get_input_size(self) -> int:
        """How many inputs there are."""
        return len(self.layer.inputs)

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
        return self.input(index).get_partial_shape()

    def get_input_shape(self, index: int) -> Shape:
        """The shape that an input reads, all of which must be known."""
        return self.input(index).get_shape()

    def get_input_element_type(self, index: int) -> ElementType:
        """The element type that an input reads."""
        return self.input(index).get_element_type()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.layer is other.layer

    def __hash__(self) -> int:
        return hash(self.layer.id)

    def __repr__(self) -> str:
        shapes = [str(o.partial_shape) for o in self.outputs()]
        element = [o.element_type.c_name for o in self.outputs()] if self.layer.type == "Parameter" else []
        return f"<{self.get_type_name()}: {self.layer.name!r} ({', '.join(shapes + element)})>"


# Where files spell an operation differently from OpenVINO's API.
_SPELLED = {"PReLU": "PRelu", "ReLU": "Relu", "SoftMax": "Softmax"}

_Item = TypeVar("_Item")


def _at(items: Sequence[_Item], index: int, what: str, node: Node) -> _Item:
    if not 0 <= index < len(items):
        message = f"layer {node.friendly_name!r} has no {what} {index}"
        raise InputError(message, code=Code.NO_SUCH_NAME, hint=f"it has {len(items)}")
    return items[index]


def _plain(value: Any) -> Any:
    if isinstance(value, PartialShape):
        return [-1] if value.rank is None else [d.min if d.is_static else -1 for d in value]
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, ElementType) else value
