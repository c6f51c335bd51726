"""Derive an immutable graph from nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ...analysis.infer import Inferred
from ...io.reader.weights import Weights
from ...ir.graph import Edge, Graph, Layer, Port, PortSpec
from ..node import GraphNodes, Node

__all__ = ["Members", "derived", "joined_weights", "members_of", "reachable", "undeclared", "with_types"]


@dataclass(slots=True)
class Members:
    """The nodes that define a model; all others follow from their inputs."""

    parameters: list[Node] = field(default_factory=list)
    results: list[Node] = field(default_factory=list)
    sinks: list[Node] = field(default_factory=list)

    def copy(self) -> Members:
        """Return lists of the same nodes."""
        return Members(list(self.parameters), list(self.results), list(self.sinks))


def members_of(nodes: GraphNodes) -> Members:
    """Return what makes the model of a graph."""
    every = [nodes.node(layer) for layer in nodes.graph.layers]
    return Members(
        [node for node in every if node.layer.type == "Parameter"],
        [node for node in every if node.layer.type == "Result"],
        [node for node in every if node.layer.op is not None and node.layer.op.has_side_effects],
    )


def reachable(members: Members) -> list[Node]:
    """Return the nodes of a model in topological order: Parameters first, Results last, both in order."""
    ends = [*members.parameters, *members.results]
    done = {id(node) for node in ends}
    between: list[Node] = []
    for root in (*members.sinks, *members.results):
        between += _needed(root, done)
    return [*members.parameters, *between, *members.results]


def _needed(root: Node, done: set[int]) -> Iterator[Node]:
    """Yield what a node needs, and then the node, unless it is done; each layer once (depth-first)."""
    stack = [(root, iter(root._sources))]
    while stack:
        node, sources = stack[-1]
        for source in sources:
            if source is not None and id(source._node) not in done:
                done.add(id(source._node))
                stack.append((source._node, iter(source._node._sources)))
                break
        else:
            stack.pop()
            if node is not root or id(root) not in done:
                done.add(id(node))
                yield node


def derived(members: Members) -> tuple[Graph, dict[int, Node]]:
    """Return the graph of a model, and the node of each layer."""
    nodes = reachable(members)
    numbers = {id(node): number for number, node in enumerate(nodes)}
    names = _unique(node.layer.name for node in nodes)
    layers = [
        _layer(node, number, name) for number, (node, name) in enumerate(zip(nodes, names, strict=True))
    ]
    edges = [
        Edge(Port(numbers[id(source._node)], source._index), Port(number, index))
        for number, node in enumerate(nodes)
        for index, source in enumerate(node._sources)
        if source is not None
    ]
    return Graph(layers, edges), dict(enumerate(nodes))


def _layer(node: Node, number: int, name: str) -> Layer:
    op = node._operation(name)
    layer = node.layer  # which the operation of a subclass of Op may have changed
    known, where = op is not None, layer.where
    return Layer(
        number,
        name,
        layer.type,
        layer.version,
        op,
        where if where.layer == name else replace(where, layer=name),
        tuple([_port(spec, index, known) for index, spec in enumerate(layer.inputs)]),
        tuple([_port(spec, index, known) for index, spec in enumerate(layer.outputs, len(layer.inputs))]),
        layer.attributes,
        layer.rt_info,
    )


def with_types(graph: Graph, values: Inferred) -> Graph:
    """Return the graph with the types that were inferred at the outputs of its layers."""
    layers = [
        replace(
            layer,
            outputs=tuple(
                replace(spec, type=value.type) if (value := values.get(port)) else spec
                for spec, port in zip(layer.outputs, layer.output_ports, strict=True)
            ),
        )
        for layer in graph.layers.values()
    ]
    return Graph(layers, graph.edges, graph.severed)


def _port(spec: PortSpec, id: int, known: bool) -> PortSpec:
    """Return a port that declares no type, unless nothing else is known about it."""
    return PortSpec(id, None if known else spec.type, spec.names, spec.line, spec.rt_info)


def _unique(names: Iterable[str]) -> Iterator[str]:
    """Yield names, each with a number where it is taken."""
    taken: set[str] = set()
    for name in names:
        found, number = name, 1
        while found in taken:
            found, number = f"{name}_{number}", number + 1
        taken.add(found)
        yield found


def undeclared(nodes: Iterable[Node], members: Members) -> Node | None:
    """Return a Parameter that is read, but is not among those of the model."""
    known = set(members.parameters)
    return next((n for n in nodes if n.layer.type == "Parameter" and n not in known), None)


class _JoinedWeights(Weights):
    """The files that constants of several models are views of."""

    def __init__(self, files: Iterable[Weights]) -> None:
        super().__init__()
        self._files = tuple(files)

    def check(self) -> None:
        for file in self._files:
            file.check()


def joined_weights(known: Weights, nodes: Iterable[Node]) -> Weights:
    """Return the weights of all models that nodes come from."""
    files = {id(w): w for node in nodes if (w := node._weights) is not None}
    if len(files) == 1 and known.data is None:
        return next(iter(files.values()))
    return known if files.keys() <= {id(known)} else _JoinedWeights(files.values())
