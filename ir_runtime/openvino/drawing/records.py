"""The layers and edges of a model as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import networkx as nx

from ...analysis.infer import Inferred
from ...ir.graph import Graph, Layer, Port
from ...ir.tensor import Value
from ...report.names import scope_of

__all__ = ["VERSION", "as_networkx", "drawn_layers", "record"]

VERSION = 1
"""Of the JSON; it rises when a field changes its meaning or goes."""


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


def as_networkx(graph: Graph, values: Mapping[Port, Value]) -> nx.MultiDiGraph[int]:
    """Export a graph to networkx with plain attributes, so that every writer can save it.

    Nodes are ids of layers, with ``name``, ``type``, ``operation``, ``line``, ``attributes`` and ``outputs``. An edge's
    key is the input that it ends at; it has ``output``, ``input``, ``element`` and ``shape``.
    """
    exported: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    for layer in graph.layers.values():
        types = [f"{type}{shape}" for type, shape in _types(layer, values)]
        line = {} if layer.where.line is None else {"line": layer.where.line}
        exported.add_node(
            layer.id,
            name=layer.name,
            type=layer.type,
            operation=layer.where.operation or layer.type,
            attributes=" ".join(f"{key}={text}" for key, text in layer.attributes.items()),
            outputs=" ".join(types),
            **line,
        )
    for source, target in graph.edges:
        types_of_source = list(_types(graph[source.layer], values))
        element, shape = types_of_source[source.number] if source.number < len(types_of_source) else ("", "")
        exported.add_edge(
            source.layer,
            target.layer,
            target.number,
            output=source.number,
            input=target.number,
            element=element,
            shape=shape,
        )
    return nx.freeze(exported)
