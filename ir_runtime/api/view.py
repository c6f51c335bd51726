"""The read-only interface of a model: its layers, inputs, outputs and runtime information."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..ir.element import ElementType
from ..ir.graph import Port
from ..ir.sizes import bytes_of
from ..ir.tensor import Array
from ..reader.model import Document
from .names import find_port, unknown_name
from .nodes import GraphView, Node, Output, show_ports
from .rt_info import HasRTInfo
from .shapes import PartialShape, Shape

if TYPE_CHECKING:
    import networkx as nx

    from ..analysis.infer import Inferred

__all__ = ["View"]


# Bytes of all tensors from which on loading machine code is worth it.
_LARGE = 1 << 20


class View(GraphView, HasRTInfo):
    """The read-only methods of OpenVINO's ``Model``."""

    def __init__(self, document: Document, values: Inferred) -> None:
        super().__init__(document.graph, values)
        self._document = document
        self._rt_info = document.rt_info
        self._extra: list[Port] = []
        self.friendly_name = document.name

    @property
    def graph(self) -> nx.MultiDiGraph:
        """The layers and edges as a frozen networkx graph.

        Nodes are layer ids with a ``layer``; an edge's key is the input it ends at, its ``source``
        the output it starts from.
        """
        return self._graph.network

    @property
    def name(self) -> str:
        """The name in the file."""
        return self._document.name

    @property
    def inputs(self) -> list[Output]:
        """The inputs, in the order of the file."""
        return [self._output(Port(layer.id, 0)) for layer in self._graph.of_type("Parameter")]

    @property
    def outputs(self) -> list[Output]:
        """The outputs, in the order of the file, then those added."""
        return [*self._results(), *map(self._output, self._extra)]

    def input(self, key: int | str | None = None) -> Output:
        """An input by index or name; without a key, the only one."""
        return find_port(self.inputs, key, "input")

    def output(self, key: int | str | None = None) -> Output:
        """An output by index or name; without a key, the only one."""
        return find_port(self.outputs, key, "output")

    @property
    def parameters(self) -> list[Node]:
        """The Parameter layers."""
        return list(map(self._node, self._graph.of_type("Parameter")))

    @property
    def results(self) -> list[Node]:
        """The Result layers."""
        return list(map(self._node, self._graph.of_type("Result")))

    @property
    def result(self) -> Node:
        """The only Result layer."""
        return self.output().node

    def get_parameters(self) -> list[Node]:
        """The Parameter layers."""
        return self.parameters

    def get_results(self) -> list[Node]:
        """The Result layers."""
        return self.results

    def get_ops(self) -> list[Node]:
        """Every layer, in the order of the file."""
        return list(map(self._node, self._graph.layers.values()))

    def get_ordered_ops(self) -> list[Node]:
        """Every layer in topological order."""
        return list(map(self._node, self._graph))

    def get_friendly_name(self) -> str:
        """The name."""
        return self.friendly_name

    def set_friendly_name(self, name: str) -> None:
        """Give the model another name."""
        self.friendly_name = name

    def get_name(self) -> str:
        """The name."""
        return self.name

    @property
    def dynamic(self) -> bool:
        """Whether any shape is not known before the model runs."""
        return self.is_dynamic()

    def get_result(self) -> Node:
        """The only Result layer."""
        return self.result

    def get_output_op(self, index: int) -> Node:
        """The Result layer of an output."""
        return self.output(index).node

    def is_dynamic(self) -> bool:
        """Whether any shape is not known before the model runs."""
        return any(value.shape.is_dynamic for value in self._values.values())

    def constant(self, name: str) -> Array:
        """The contents of the Constant layer of that name."""
        layers = [la for la in self._graph.of_type("Constant") if la.name == name]
        if not layers:
            known = [la.name for la in self._graph.of_type("Constant")]
            raise unknown_name("Constant", name, known)
        return self._node(layers[0]).get_data()

    def get_parameter_index(self, parameter: Node) -> int:
        """The position of a Parameter among the inputs, or -1."""
        return next((i for i, node in enumerate(self.parameters) if node == parameter), -1)

    def get_result_index(self, output: Output | Node) -> int:
        """The position of an output, or -1."""
        nodes = [o.node if isinstance(output, Node) else o for o in self.outputs]
        return nodes.index(output) if output in nodes else -1

    def get_output_size(self) -> int:
        """How many outputs there are."""
        return len(self.outputs)

    def get_output_shape(self, index: int) -> Shape:
        """The shape of an output, all of which must be known."""
        return self.output(index).shape

    def get_output_partial_shape(self, index: int) -> PartialShape:
        """The shape of an output, as far as it is known."""
        return self.output(index).partial_shape

    def get_output_element_type(self, index: int) -> ElementType:
        """The element type of an output."""
        return self.output(index).element_type

    def get_variables(self) -> list[Any]:
        """The variables of the model."""
        return []

    def _is_large(self) -> bool:
        """Whether its tensors, constants and activations, are worth loading machine code for."""
        return sum(bytes_of(value.type) for value in self._values.values()) >= _LARGE

    def _results(self) -> Iterable[Output]:
        for layer in self._graph.of_type("Result"):
            yield from self._outputs_of(layer)

    def __repr__(self) -> str:
        return f"<Model: {self.friendly_name!r}\n{show_ports(self.inputs, self.outputs)}>"
