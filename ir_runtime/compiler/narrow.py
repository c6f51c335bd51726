"""Conversion of a graph from f32 to f16, on request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..ir.element import ElementType
from ..ir.graph import Edge, Graph, Layer, Port, PortSpec, bodies_of
from ..ir.operation import Operation
from ..ir.tensor import Value
from ..ops import registry

__all__ = ["narrow"]

WIDE, NARROW = ElementType.f32, ElementType.f16

# Operations whose inputs may have either type.
_INDIFFERENT = ("Convert", "ShapeOf")


def narrow(graph: Graph, values: Mapping[Port, Value]) -> Graph:
    """Return the graph with f16 in place of f32, and Converts where both meet.

    Inputs and outputs of the graph keep their types. So do layers that do not support f16, have bodies, or are random
    or stateful, and shape arithmetic, as f16 represents integers exactly only up to 2048.

    Args:
        graph: the layers.
        values: the inferred values.
    """
    work = _Narrowing(graph, values, _find_exact(graph, values))
    edges = [Edge(work.source(source, graph[target.layer]), target) for source, target in graph.edges]
    layers = {layer.id: work.layer(layer) for layer in graph.layers.values()}
    return Graph([*layers.values(), *work.added], edges + work.edges)


def _find_exact(graph: Graph, values: Mapping[Port, Value]) -> set[int]:
    """Return the ids of layers that keep f32."""
    exact: set[int] = set()
    shapes: set[int] = set()
    for layer in graph:
        sources = [s for s in graph.sources(layer) if s is not None]
        others = {s.layer for s in sources if graph[s.layer].type != "Constant"}
        if layer.type == "ShapeOf":
            shapes.add(layer.id)
        elif others and others <= shapes:
            shapes.add(layer.id)
            exact.add(layer.id)
        if layer.op is None or not _can_be_narrow(layer.op, [values[s].element for s in sources]):
            exact.add(layer.id)
    for layer in graph.of_type("Constant"):
        readers = [graph[r.layer] for r in graph.readers(Port(layer.id, 0))]
        if all(r.id in exact or r.type in _INDIFFERENT for r in readers):
            exact.add(layer.id)
    return exact


def _can_be_narrow(op: Operation, elements: list[ElementType]) -> bool:
    if not op.pure or bodies_of(op) or op.name == "Result" or any(p.element is WIDE for p in op.outputs):
        return False
    ports = [op.port_of(i) for i, element in enumerate(elements) if element is WIDE]
    return all(port is not None and NARROW in port.element.allowed for port in ports)


@dataclass(slots=True)
class _Narrowing:
    graph: Graph
    values: Mapping[Port, Value]
    exact: set[int]
    added: list[Layer] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    _converts: dict[Port, Port] = field(default_factory=dict)

    def layer(self, layer: Layer) -> Layer:
        """Return a layer in f16; the tensor names of outputs that are converted back move to the Converts."""
        if layer.id in self.exact:
            return layer
        ports = layer.output_ports
        outputs = [
            replace(spec.converted({WIDE}, NARROW), names=() if port in self._converts else spec.names)
            for port, spec in zip(ports, layer.outputs, strict=True)
        ]
        return replace(layer, op=_narrow(layer.op), outputs=tuple(outputs))

    def source(self, port: Port, reader: Layer) -> Port:
        """Return the port that ``reader`` reads instead of ``port``, after a Convert if their types differ."""
        is_wide, wants_wide = port.layer in self.exact, reader.id in self.exact
        indifferent = reader.type in _INDIFFERENT
        if self.values[port].element is not WIDE or is_wide == wants_wide or indifferent:
            return port
        if port not in self._converts:
            self._converts[port] = self._convert(port, WIDE if wants_wide else NARROW)
        return self._converts[port]

    def _convert(self, port: Port, element: ElementType) -> Port:
        beside = self.graph[port.layer]
        spec = beside.outputs[port.number].converted({WIDE, NARROW}, element)
        number = max(self.graph.layers) + 1 + len(self.added)
        name = (
            f"{beside.name}/{element.label}"
            if port.number == 0
            else f"{beside.name}/{element.label}.{port.number}"
        )
        self.added.append(
            Layer.inserted(
                number,
                name,
                registry.require("Convert")(destination_type=element),
                beside.where,
                inputs=(PortSpec(0),),
                outputs=(replace(spec, id=1, names=spec.names if element is WIDE else ()),),
            )
        )
        self.edges.append(Edge(port, Port(number, 0)))
        return Port(number, 0)


def _narrow(op: Operation | None) -> Operation | None:
    """Return an operation with f16 in place of f32 in its attributes and constant values; values out of its range are clipped."""
    if op is None:
        return None
    changes: dict[str, Any] = {name: NARROW for name, value in vars(op).items() if value is WIDE}
    if not changes:
        return op
    if isinstance(values := vars(op).get("value"), np.ndarray):
        limit = np.finfo(np.float16).max  # like OpenVINO, clip instead of overflowing to infinity
        changes["value"] = np.clip(values, -limit, limit).astype(np.float16)
    return op.replace(**changes)
