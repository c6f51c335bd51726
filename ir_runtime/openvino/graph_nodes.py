"""The nodes of a graph."""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.infer import Inferred
from ..io.reader.weights import Weights
from ..ir.graph import Graph, Port
from .nodes import Node, Output

__all__ = ["GraphNodes"]


class GraphNodes:
    """The nodes of an immutable graph, each created when it is first asked for.

    Args:
        graph: the layers.
        values: what was inferred about them.
        origin: has the nodes of layers with the same ids, where the graph is a variant of another.
        nodes: the nodes by layer, where the graph was derived from them.
    """

    def __init__(
        self,
        graph: Graph,
        values: Inferred,
        origin: GraphNodes | None = None,
        nodes: Mapping[int, Node] | None = None,
    ) -> None:
        self.graph: Graph = graph
        self.values: Inferred = values
        self.origin: GraphNodes | None = origin
        self.weights: Weights | None = None
        self.is_sound: bool = False
        """Whether nothing is wrong with the graph, so that the values of each layer follow from what it reads."""
        self.made: dict[int, Node] = dict(nodes or {})
        self.is_settled: bool = nodes is not None
        """Whether the nodes know by themselves what they read, and may differ from the graph."""

    def node(self, layer: int) -> Node:
        """Return the node of a layer."""
        if layer not in self.made:
            self.made[layer] = Node._of(self, self.graph[layer])
        return self.made[layer]

    def original(self, layer: int) -> Node:
        """Return the node of the layer in the graph that this is a variant of, if it is one."""
        known = self.origin is not None and layer in self.origin.graph.layers
        return self.origin.original(layer) if known and self.origin is not None else self.node(layer)

    def output(self, port: Port) -> Output:
        """Return an output of a layer."""
        return Output(self.node(port.layer), port.number)

    def port(self, output: Output) -> Port | None:
        """Return the port of an output, unless it belongs to another graph."""
        if self.origin is not None and (found := self.origin.port(output)):
            return found
        if not self.is_settled:
            id = output._node.layer.id
            return Port(id, output._index) if self.made.get(id) is output._node else None
        ids = (id for id, node in self.made.items() if node is output._node)
        return next((Port(id, output._index) for id in ids), None)

    def follow(self) -> None:
        """Let the nodes have the layers of a graph that took the place of the former one."""
        for id, node in self.made.items():
            node.layer = self.graph[id]

    def settle(self) -> None:
        """Create every node, and let them keep what they read themselves, so that they can be changed."""
        if self.is_settled:
            return
        for layer in self.graph.layers:
            self.node(layer)
        for node in self.made.values():
            node._settle()
        self.is_settled = True
