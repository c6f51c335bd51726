"""Compute in f64 what a model has in f32, f16 or bf16: the inverse of `narrow`, for reference results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ..analysis.infer import Inferred
from ..ir.element import ElementType
from ..ir.graph import Body, Edge, Graph, Layer, Port, PortSpec
from ..ir.operation import Operation
from ..ir.tensor import TensorType, Value
from ..ops import registry

__all__ = ["WIDENED", "widen"]

WIDENED = frozenset({ElementType.f32, ElementType.f16, ElementType.bf16})
"""The element types that are computed in f64."""

_WIDE = ElementType.f64


def widen(graph: Graph, types: Inferred) -> tuple[Graph, Inferred]:
    """Return the same layers on f64, in bodies too, and the values of their outputs.

    Constants stay as they are stored; a Convert behind each widens what is read. Inference is not asked again, so
    operations whose declaration leaves out f64 are computed in it as well.

    Args:
        graph: the layers.
        types: what was inferred about them.
    """
    work = _Widening(graph, types)
    for port, value in types.items():
        work.types[port] = _widened_value(value)
    layers = [work.layer(layer) for layer in graph.layers.values()]
    edges = [Edge(work.sources.get(edge.source, edge.source), edge.target) for edge in graph.edges]
    return Graph([*layers, *work.added], edges + work.edges), work.types


@dataclass(slots=True)
class _Widening:
    graph: Graph
    inferred: Inferred
    types: Inferred = field(default_factory=Inferred)
    added: list[Layer] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    sources: dict[Port, Port] = field(default_factory=dict)
    """The widened port of each constant."""

    def layer(self, layer: Layer) -> Layer:
        port = Port(layer.id, 0)
        if layer.type == "Constant":
            if self.inferred[port].element in WIDENED:
                self.sources[port] = self._convert(layer)
                self.types[port] = self.inferred[port]
            return layer
        return replace(
            layer,
            op=self._operation(layer),
            outputs=tuple(spec.converted(WIDENED, _WIDE) for spec in layer.outputs),
        )

    def _operation(self, layer: Layer) -> Operation | None:
        """Return the operation with f64 where its attributes say less, and widened bodies."""
        if layer.op is None:
            return None
        changes: dict[str, Any] = {}
        for name, value in vars(layer.op).items():
            if isinstance(value, ElementType) and value in WIDENED:
                changes[name] = _WIDE
            elif isinstance(value, Body):
                changes[name] = self._body(layer, value)
        return layer.op.replace(**changes) if changes else layer.op

    def _body(self, layer: Layer, body: Body) -> Body:
        key = (layer.id, body.name)
        if key not in self.inferred.bodies:  # a branch that is known never to be taken
            return body
        graph, self.types.bodies[key] = widen(body.graph, self.inferred.bodies[key])
        return replace(body, graph=graph)

    def _convert(self, constant: Layer) -> Port:
        """Add a Convert behind a constant; return its output."""
        number = max(self.graph.layers) + 1 + len(self.added)
        name, known = f"{constant.name}/f64", self.inferred[Port(constant.id, 0)]
        type, op = TensorType(_WIDE, known.shape), registry.require("Convert")(destination_type=_WIDE)
        self.added.append(
            Layer.inserted(number, name, op, constant.where, (PortSpec(0),), (PortSpec(1, type),))
        )
        self.edges.append(Edge(Port(constant.id, 0), Port(number, 0)))
        self.types[Port(number, 0)] = Value(type)
        return Port(number, 0)


def _widened_value(value: Value) -> Value:
    """Return the type on f64, without contents: those were computed in f32."""
    return Value(TensorType(_WIDE, value.shape)) if value.element in WIDENED else value
