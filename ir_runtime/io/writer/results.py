"""Add Results for added outputs."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Edge, Graph, Layer, Port, PortSpec
from ...ops import registry

__all__ = ["with_results"]


def with_results(graph: Graph, ports: Sequence[Port]) -> Graph:
    """Return the graph with a Result added for each of the given outputs."""
    if not ports:
        return graph
    first = max(graph.layers, default=-1) + 1
    results = [_result(graph, number, port) for number, port in enumerate(ports, first)]
    edges = [Edge(port, Port(layer.id, 0)) for port, layer in zip(ports, results, strict=True)]
    return Graph([*graph.layers.values(), *results], [*graph.edges, *edges])


def _result(graph: Graph, number: int, port: Port) -> Layer:
    names = {layer.name for layer in graph.layers.values()}
    name = f"Result_{number}"
    while name in names:
        name += "_"
    op = registry.require("Result")()
    return Layer.inserted(number, name, op, graph[port.layer].where, (PortSpec(0),))
