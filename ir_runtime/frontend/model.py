"""Whole models: a ``<net>`` with layers and edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..codes import Code
from ..diagnostics import Diagnostics, Location
from ..errors import ParseError
from ..ir.graph import Edge, Graph, Layer, Port
from ..limits import DEFAULT, Limits
from .document import Element, integer
from .layers import LayerReader, rt_info
from .legacy import modernise
from .source import Source
from .weights import Weights

__all__ = ["Document", "read_graph", "read_net"]

_SUPPORTED = (10, 11)
_NAMED_BY_LAYERS = 10


@dataclass(frozen=True, slots=True)
class Document:
    """A file as read: a graph, and what stands beside it."""

    graph: Graph
    name: str
    file: str
    version: int
    rt_info: Mapping[str, Any]


def read_net(
    root: Element, source: Source, weights: Weights, report: Diagnostics, limits: Limits = DEFAULT
) -> Document:
    """Read a ``<net>``; what is wrong inside it goes into ``report``.

    Raises:
        ParseError: if it is no IR, or an IR of a version that is not supported.
    """
    version = _version(root, source.name)
    layers, edges = _parts(root, LayerReader(source.name, report, weights, limits, read_graph))
    if version == _NAMED_BY_LAYERS:
        layers, edges = modernise(layers, edges)
    graph = Graph(layers.values(), edges)
    return Document(graph, root.get("name", ""), source.name, version, rt_info(root))


def read_graph(root: Element, reader: LayerReader) -> Graph:
    """The ``<layers>`` and ``<edges>`` of a body."""
    layers, edges = _parts(root, reader)
    return Graph(layers.values(), edges)


def _parts(root: Element, reader: LayerReader) -> tuple[dict[int, Layer], list[Edge]]:
    elements = list(root.iterfind("layers/layer"))
    reader.limits.check("layers", len(elements), Location(reader.file, root.sourceline))
    layers: dict[int, Layer] = {}
    for element in elements:
        layer = reader.layer(element)
        if layer.id in layers:
            first = layers[layer.id]
            reader.report.error(
                Code.DUPLICATE_ID,
                f"id {layer.id} is that of layer {first.name!r}, at line {first.where.line}",
                layer.where,
            )
            continue
        layers[layer.id] = layer
    return layers, list(read_edges(root, layers, reader.file, reader.report))


def _version(root: Element, file: str) -> int:
    if root.tag != "net":
        raise ParseError(
            f"the root element is <{root.tag}>, not <net>: this is no OpenVINO IR",
            code=Code.UNREADABLE,
            where=Location(file, root.sourceline),
            hint="an IR starts with <net name=... version=...>",
        )
    version = integer(root, "version", file)
    if version not in _SUPPORTED:
        older = version < _SUPPORTED[0]
        raise ParseError(
            f"this is an IR of version {version}; supported are 10 and 11",
            code=Code.IR_VERSION,
            where=Location(file, root.sourceline),
            hint="convert the original model again with OpenVINO 2022 or later" if older else "",
        )
    return version


def read_edges(root: Element, layers: Mapping[int, Layer], file: str, report: Diagnostics) -> Iterator[Edge]:
    """The edges that make sense; the others are reported."""
    fed: dict[Port, int] = {}
    places = {
        "from": {(la.id, p.id): Port(la.id, i) for la in layers.values() for i, p in enumerate(la.outputs)},
        "to": {(la.id, p.id): Port(la.id, i) for la in layers.values() for i, p in enumerate(la.inputs)},
    }
    for element in root.iterfind("edges/edge"):
        ends = []
        for end, ports in places.items():
            layer = integer(element, f"{end}-layer", file)
            port = integer(element, f"{end}-port", file)
            if (layer, port) not in ports:
                report.error(Code.DANGLING_EDGE, *_dangling(layers, end, layer, port, element, file))
                continue
            ends.append(ports[layer, port])
        if len(ends) < 2:
            continue
        source, target = ends
        if target in fed:
            where = replace(layers[target.layer].where, line=element.sourceline)
            message = f"input port {element.get('to-port')} already has an edge, at line {fed[target]}"
            report.error(Code.CONNECTED_TWICE, message, where)
            continue
        fed[target] = element.sourceline
        yield Edge(source, target)


def _dangling(
    layers: Mapping[int, Layer], end: str, layer: int, port: int, element: Element, file: str
) -> tuple[str, Location, str]:
    verb, side = {"from": ("starts", "output"), "to": ("ends", "input")}[end]
    if layer not in layers:
        where = Location(file, element.sourceline)
        return f"the edge {verb} at layer {layer}, which does not exist", where, ""
    found = layers[layer]
    where = replace(found.where, line=element.sourceline)
    ports = found.outputs if end == "from" else found.inputs
    known = ", ".join(str(p.id) for p in ports)
    hint = f"its {side} ports are {known}" if known else f"it has no {side} ports"
    return f"the edge {verb} at {side} port {port}, which the layer does not have", where, hint
