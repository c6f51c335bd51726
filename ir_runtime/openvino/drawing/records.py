"""The layers and edges of a model as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...analysis.infer import Inferred
from ...ir.graph import Graph, Layer, Port
from ...ir.tensor import Value
from ...report.names import scope_of

__all__ = ["VERSION", "describe", "drawn_layers", "record"]

VERSION = 1
"""The version of the JSON, increased when a field changes its meaning or is removed."""


def record(graph: Graph, values: Mapping[Port, Value], name: str, constants: bool = True) -> dict[str, Any]:
    """Return a graph as JSON data.

    ``nodes`` have ``id``, ``name``, ``type``, ``operation``, ``line``, ``scope`` (a list of names, from the
    name of the layer), ``attributes`` (as in the file), ``outputs`` (each with ``type``, ``shape`` and
    ``names``) and ``bodies``: graphs of the same form. ``edges`` have ``source``, ``output``, ``target`` and
    ``input``: ids of nodes, and numbers of ports from 0.

    Args:
        graph: the layers.
        values: the inferred values.
        name: the name of the model or body.
        constants: whether to include constants.
    """
    layers = drawn_layers(graph, constants)
    ids = {layer.id for layer in layers}
    edges = [
        {"source": s.layer, "output": s.number, "target": t.layer, "input": t.number}
        for s, t in graph.edges
        if s.layer in ids
    ]
    nodes = [_node(layer, values, constants) for layer in layers]
    return {"version": VERSION, "name": name, "nodes": nodes, "edges": edges}


def drawn_layers(graph: Graph, constants: bool) -> list[Layer]:
    """Return the layers in the order of the file, with or without constants."""
    return [layer for layer in graph.layers.values() if constants or layer.type != "Constant"]


def _node(layer: Layer, values: Mapping[Port, Value], constants: bool) -> dict[str, Any]:
    return {
        "id": layer.id,
        "name": layer.name,
        "type": layer.type,
        "operation": layer.where.operation or layer.type,
        "line": layer.where.line,
        "scope": list(scope_of(layer.name) or ()),
        "attributes": dict(layer.attributes),
        "outputs": [
            {"type": type, "shape": shape, "names": list(spec.names)}
            for (type, shape), spec in zip(_types(layer, values), layer.outputs, strict=False)
        ],
        "bodies": [
            record(body.graph, _inside(values, layer, body.name), body.name, constants)
            for body in layer.bodies()
        ],
    }


def _inside(values: Mapping[Port, Value], layer: Layer, body: str) -> Mapping[Port, Value]:
    return values.bodies.get((layer.id, body), {}) if isinstance(values, Inferred) else {}


def _types(layer: Layer, values: Mapping[Port, Value]) -> Iterator[tuple[str, str]]:
    for port in layer.output_ports:
        value = values.get(port)
        yield ("dynamic", "[...]") if value is None else (value.element.label, str(value.shape))


def describe(graph: Graph, values: Mapping[Port, Value]) -> None:
    """Describe layers and tensors at the nodes and edges of ``graph.network``, for those who work with networkx.

    Attributes are text and numbers, so that every writer of networkx can save them. Nodes have ``name``, ``type``,
    ``operation``, ``attributes``, ``outputs`` and ``line``, edges ``output``, ``input``, ``element`` and ``shape``.
    """
    types = {layer.id: list(_types(layer, values)) for layer in graph.layers.values()}
    for id, layer in graph.layers.items():
        described: dict[str, object] = graph.network.nodes[id]
        described.update(
            name=layer.name,
            type=layer.type,
            operation=layer.where.operation or layer.type,
            attributes=" ".join(f"{key}={text}" for key, text in layer.attributes.items()),
            outputs=" ".join(f"{element}{shape}" for element, shape in types[id]),
        )
        if layer.where.line is not None:
            described["line"] = layer.where.line
    for source, target, number, output in graph.network.edges(keys=True, data="output"):
        element, shape = types[source][output] if output < len(types[source]) else ("", "")
        graph.network.edges[source, target, number].update(input=number, element=element, shape=shape)
