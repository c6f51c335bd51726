"""The read-only interface of a model: its layers, inputs, outputs and runtime information."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .._util.wrong_arguments import checked
from ..io.reader.model import Document
from ..ir.element import ElementType
from ..ir.graph import Graph, Port
from ..ir.sizes import bytes_of
from ..ir.tensor import Array
from .building.ends import Parameter, Result
from .building.order import Order, depth_first, topological
from .const_ports import ConstOutput, show_ports
from .graph_nodes import GraphNodes
from .names import find_port, one_key, unknown_name
from .nodes import Node, Output
from .rt_info import HasRTInfo
from .shapes import PartialShape, Shape

if TYPE_CHECKING:
    import networkx as nx

    from ..analysis.infer import Inferred

__all__ = ["View"]


# Bytes of all tensors from which on loading machine code is worth it.
_LARGE = 1 << 20


class View(HasRTInfo, ABC):
    """The read-only methods of OpenVINO's ``Model``.

    What a model takes and gives, by position, name or layer:

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([-1, 2], np.float32, name="x")
    >>> y = opset1.add(x, opset1.constant(np.float32([1, 2]), name="bias"), name="y")
    >>> model = ov.Model([y], [x], "net")
    >>> model.inputs, [port.partial_shape for port in model.outputs]
    ([<Output: names[x] shape[?,2] type: f32>], [<PartialShape: [?,2]>])
    >>> model.input("x") == model.inputs[0], model.parameters, model.results == [model.result]
    (True, [<Parameter: 'x' ([?,2], float)>], True)
    >>> model.dynamic, model.is_dynamic(), model.get_output_partial_shape(0), model.get_output_element_type(0)
    (True, True, <PartialShape: [?,2]>, <Type: 'float32'>)
    >>> model.get_parameter_index(x), model.get_result_index(y.output(0)), model.get_output_size()
    (0, 0, 1)
    >>> model.get_output_op(0) == model.get_result(), [node.get_type_name() for node in model.get_ops()]
    (True, ['Parameter', 'Result', 'Add', 'Constant'])
    >>> model.constant("bias"), model.graph.number_of_edges()
    (array([1., 2.], dtype=float32), 3)
    >>> model.reshape([3, 2])
    >>> model.get_output_shape(0)
    <Shape: [3,2]>
    >>> model.set_friendly_name("other")
    >>> model.get_name(), model.get_friendly_name()
    ('net', 'other')
    """

    _document: Document
    friendly_name: str

    @abstractmethod
    def _nodes(self) -> GraphNodes:
        """Return the graph as it is now, and its nodes."""

    @property
    @abstractmethod
    def _extra(self) -> Sequence[Port]:
        """Outputs that were added, and have no Result."""

    @property
    def _graph(self) -> Graph:
        return self._nodes().graph

    @property
    def _values(self) -> Inferred:
        return self._nodes().values

    @property
    def graph(self) -> nx.MultiDiGraph[int]:
        """The layers and edges as a frozen networkx graph, which every writer of networkx can save.

        Nodes are layer ids with ``name``, ``type``, ``operation``, ``attributes``, ``outputs`` and ``line`` as text and
        numbers; an edge's key is the input it ends at, its ``output`` the output it starts from.
        """
        from .drawing.records import as_networkx

        nodes = self._nodes()
        made = vars(self).get("_networkx")
        if made is None or made[0] is not nodes.graph or made[1] is not nodes.values:
            made = nodes.graph, nodes.values, as_networkx(nodes.graph, nodes.values)
            vars(self)["_networkx"] = made
        return made[2]

    @property
    def name(self) -> str:
        """The name in the file, which is not that under which the model is saved once `friendly_name` was set."""
        return self._document.name

    @name.setter
    def name(self, name: str) -> None:
        self._document = replace(self._document, name=name)

    @property
    def inputs(self) -> list[Output]:
        """The inputs, in the order of the file."""
        return [output for node in self.parameters for output in node.outputs()[:1]]

    @property
    def outputs(self) -> list[Output]:
        """The outputs, in the order of the file, then those added."""
        found = [output for node in self.results for output in node.outputs()]
        return [*found, *(self._nodes().output(port) for port in self._extra)]

    def input(
        self, key: int | str | None = None, *, index: int | None = None, tensor_name: str | None = None
    ) -> Output:
        """Return an input by index or name; without a key, the only one.

        Args:
            key: the index, the name of the tensor or of the layer.
            index: the index, as OpenVINO calls it.
            tensor_name: the name, as OpenVINO calls it.

        Raises:
            InputError: if the index or the name is unknown; without a key, if the model has none or several.
        """
        return find_port(self.inputs, one_key(key, index, tensor_name), "input")

    def output(
        self, key: int | str | None = None, *, index: int | None = None, tensor_name: str | None = None
    ) -> Output:
        """Return an output by index or name; without a key, the only one.

        Args:
            key: the index, the name of the tensor or of the layer.
            index: the index, as OpenVINO calls it.
            tensor_name: the name, as OpenVINO calls it.

        Raises:
            InputError: if the index or the name is unknown; without a key, if the model has none or several.
        """
        return find_port(self.outputs, one_key(key, index, tensor_name), "output")

    @property
    def parameters(self) -> list[Parameter]:
        """The Parameter layers."""
        return [node for node in self._of_type("Parameter") if isinstance(node, Parameter)]

    @property
    def results(self) -> list[Result]:
        """The Result layers."""
        return [node for node in self._of_type("Result") if isinstance(node, Result)]

    @property
    def result(self) -> Node:
        """The only Result layer."""
        return self.output().node

    def get_parameters(self) -> list[Parameter]:
        """Return the Parameter layers."""
        return self.parameters

    def get_results(self) -> list[Result]:
        """Return the Result layers."""
        return self.results

    def get_ops(self) -> list[Node]:
        """Return every layer that the model needs, each before what it reads, in the order of OpenVINO."""
        return self._listed(depth_first)

    def get_ordered_ops(self) -> list[Node]:
        """Return every layer that the model needs, each after what it reads, in the order of OpenVINO."""
        return self._listed(topological)

    @abstractmethod
    def _listed(self, order: Order) -> list[Node]:
        """Return every layer that the model needs, in an order."""

    def _every_node(self) -> list[Node]:
        """Return every layer, in the order of the file."""
        nodes = self._nodes()
        return list(map(nodes.node, nodes.graph.layers))

    def get_friendly_name(self) -> str:
        """Return the name."""
        return self.friendly_name

    def set_friendly_name(self, name: str) -> None:
        """Give the model another name."""
        self.friendly_name = checked(name, str)

    def get_name(self) -> str:
        """Return the name."""
        return self.name

    @property
    def dynamic(self) -> bool:
        """Whether any shape is not known before the model runs."""
        return self.is_dynamic()

    def get_result(self) -> Node:
        """Return the only Result layer."""
        return self.result

    def get_output_op(self, index: int) -> Node:
        """Return the Result layer of an output."""
        return self.output(index).node

    def is_dynamic(self) -> bool:
        """Return whether any shape is not known before the model runs."""
        return any(output._type.shape.is_dynamic for node in self.get_ops() for output in node.outputs())

    def constant(self, name: str) -> Array:
        """Return the contents of the Constant layer of that name.

        Raises:
            InputError: if the name is unknown.
        """
        layers = [la for la in self._graph.of_type("Constant") if la.name == name]
        if not layers:
            known = [la.name for la in self._graph.of_type("Constant")]
            raise unknown_name("Constant", name, known)
        return self._nodes().node(layers[0].id).elements

    def get_parameter_index(self, parameter: Node) -> int:
        """Return the position of a Parameter among the inputs, or -1.

        Raises:
            ArgumentTypeError: if it is not a Parameter.
        """
        checked(parameter, Parameter)
        return next((i for i, node in enumerate(self.parameters) if node == parameter), -1)

    def get_result_index(self, output: Output | Node) -> int:
        """Return the position of an output: of its Result, or of what that takes; -1 if it is none.

        Raises:
            ArgumentTypeError: if it is neither a Result nor an output.
        """
        checked(output, Result, Output)
        for index, found in enumerate(self.outputs):
            known = [found, found.node, *(found.node.input_values() if found.node.type == "Result" else ())]
            if output in known:
                return index
        return -1

    def get_output_size(self) -> int:
        """Return the number of outputs."""
        return len(self.outputs)

    def get_output_shape(self, index: int) -> Shape:
        """Return the shape of an output, all of which must be known."""
        return self.output(index).shape

    def get_output_partial_shape(self, index: int) -> PartialShape:
        """Return the shape of an output, as far as it is known."""
        return self.output(index).partial_shape

    def get_output_element_type(self, index: int) -> ElementType:
        """Return the element type of an output."""
        return self.output(index).element_type

    def _is_large(self) -> bool:
        """Return whether its tensors, constants and activations, are worth loading machine code for."""
        return sum(bytes_of(value.type) for value in self._values.values()) >= _LARGE

    def _of_type(self, type: str) -> list[Node]:
        nodes = self._nodes()
        return [nodes.node(layer.id) for layer in nodes.graph.of_type(type)]

    def _const_inputs(self) -> list[ConstOutput]:
        """Return the inputs with the types that they have now."""
        nodes = self._nodes()
        ports = (Port(layer.id, 0) for layer in nodes.graph.of_type("Parameter"))
        return [_const(nodes, port, nodes.original(port.layer)) for port in ports]

    def _const_outputs(self) -> list[ConstOutput]:
        """Return the outputs with the types that they have now."""
        nodes = self._nodes()
        results = nodes.graph.of_type("Result")
        found = [(port, nodes.original(layer.id)) for layer in results for port in nodes.graph.reads(layer)]
        added = [(port, nodes.original(port.layer)) for port in self._extra]
        return [_const(nodes, port, node) for port, node in (*found, *added) if port in nodes.values]

    def __repr__(self) -> str:
        return f"<Model: {self.friendly_name!r}\n{show_ports(self.inputs, self.outputs)}>"


def _const(nodes: GraphNodes, port: Port, node: Node) -> ConstOutput:
    is_result = node.layer.type == "Result"
    output = Output(node, 0 if is_result else port.number)
    return ConstOutput(node, output.index, port, nodes.values[port].type, output._names)
