"""Layers of a model with their inputs and outputs, and the graph that connects them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ..analysis.infer import Inferred
from ..codes import Code
from ..errors import InputError
from ..ir import shape
from ..ir.element import ElementType
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import TensorType, Value
from .layers import LayerInfo
from .layout import Layout
from .layout_info import check_layout, layout_of, with_layout
from .ports import TypedPort
from .shapes import PartialShape, Shape

__all__ = ["ConstOutput", "GraphView", "Input", "Node", "Output", "show_ports"]


class GraphView:
    """A graph with what was inferred about it, from which nodes and ports are made."""

    def __init__(self, graph: Graph, values: Inferred) -> None:
        self._graph, self._values = graph, values

    def _node(self, layer: Layer) -> Node:
        return Node(self, layer)

    def _readers(self, port: Port) -> set[Input]:
        return {Input(self, reader) for reader in self._graph.readers(port)}

    def _outputs_of(self, result: Layer) -> Iterable[Output]:
        """The output of the model that a Result gives."""
        for source in self._graph.sources(result):
            if source is not None and source in self._values:
                yield self._output(source, result)

    def _output(self, port: Port, result: Layer | None = None) -> Output:
        specs = self._graph[port.layer].outputs[port.number : port.number + 1]
        names = tuple(name for spec in specs for name in spec.names)
        if result is not None:
            names = tuple(dict.fromkeys((*(n for spec in result.inputs for n in spec.names), *names)))
        value = self._values.get(port)
        unknown = TensorType(ElementType.dynamic, shape.PartialShape.dynamic())
        return Output(self, port, value.type if isinstance(value, Value) else unknown, names, result)


class Output(TypedPort):
    """An output of a layer: a tensor of the model. As OpenVINO's ``Output``."""

    def __init__(
        self,
        model: GraphView,
        port: Port,
        type: TensorType,
        names: tuple[str, ...] = (),
        result: Layer | None = None,
    ) -> None:
        super().__init__(model._graph[port.layer], port, type, names, result)
        self._model = model

    @property
    def node(self) -> Node:
        """The layer: for an output of a model, its Result."""
        return self._model._node(self._result or self._layer)

    @property
    def target_inputs(self) -> set[Input]:
        """The inputs of layers that read it; an output of a model is read by nobody."""
        return set() if self._result else self._model._readers(self._port)

    def get_node(self) -> Node:
        """The layer."""
        return self.node

    def get_target_inputs(self) -> set[Input]:
        """The inputs of layers that read it."""
        return self.target_inputs

    @property
    def _layout(self) -> Layout:
        """The layout; an empty one where the model does not say."""
        return layout_of(self._model._graph, self._port)

    @_layout.setter
    def _layout(self, layout: Layout) -> None:
        check_layout(layout, self._type.shape, self.label)
        self._model._graph = with_layout(self._model._graph, self._port, layout)


class ConstOutput(Output):
    """An input or output of a model that is compiled. As OpenVINO's ``ConstOutput``."""

    @classmethod
    def of(cls, port: Output) -> ConstOutput:
        """The same tensor of the compiled model."""
        return cls(port._model, port._port, port._type, port._names, port._result)


def show_ports(inputs: Iterable[Output], outputs: Iterable[Output]) -> str:
    """Inputs and outputs as OpenVINO shows them."""
    shown = (",\n".join(repr(ConstOutput.of(port)) for port in ports) for ports in (inputs, outputs))
    return "inputs[\n{}\n]\noutputs[\n{}\n]".format(*shown)


class Input:
    """An input of a layer. As OpenVINO's ``Input``."""

    def __init__(self, model: GraphView, port: Port) -> None:
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
        """The runtime information in the file."""
        return self._model._graph[self._port.layer].inputs[self._port.number].rt_info

    def get_rt_info(self) -> Mapping[str, Any]:
        """The runtime information in the file."""
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


class Node(LayerInfo):
    """A layer of a model. As OpenVINO's ``Node``, to look at."""

    def __init__(self, model: GraphView, layer: Layer) -> None:
        super().__init__(layer)
        self._model = model

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
    def layout(self) -> Layout:
        """The layout of a Parameter or a Result; an empty one where the model does not say."""
        if self.layer.type not in ("Parameter", "Result"):
            raise AttributeError(f"only Parameters and Results have a layout, not {self.friendly_name!r}")
        return self.output(0)._layout

    @layout.setter
    def layout(self, layout: Layout) -> None:
        if self.layer.type not in ("Parameter", "Result"):
            raise AttributeError(f"only Parameters and Results have a layout, not {self.friendly_name!r}")
        self.output(0)._layout = layout

    def get_layout(self) -> Layout:
        """The layout of a Parameter or a Result; an empty one where the model does not say."""
        return self.layout

    def set_layout(self, layout: Layout) -> None:
        """Give a Parameter or a Result a layout; an empty one removes it."""
        self.layout = layout

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


_Item = TypeVar("_Item")


def _at(items: Sequence[_Item], index: int, what: str, node: Node) -> _Item:
    if not 0 <= index < len(items):
        message = f"layer {node.friendly_name!r} has no {what} {index}"
        raise InputError(message, code=Code.NO_SUCH_NAME, hint=f"it has {len(items)}")
    return items[index]
