"""Conversion of a graph to a wider element type than the model declares.

References are computed in f64. Backends compute f16 in f32, as OpenVINO's CPU plugin does; inputs, outputs and constants
of the model keep the declared type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..analysis.infer import Inferred, infer
from ..diagnostics import Diagnostics
from ..ir.element import ElementType
from ..ir.graph import Body, Edge, Graph, Layer, Port, PortSpec
from ..ir.operation import Operation, is_external
from ..ir.tensor import TensorType, Value
from ..ops import registry

__all__ = ["WIDENED", "Widened", "has_f16", "widen", "widen_f16"]

WIDENED = frozenset({ElementType.f32, ElementType.f16, ElementType.bf16})
"""The element types that references compute in f64."""

_F16 = frozenset({ElementType.f16})


@dataclass(slots=True)
class Widened:
    """A graph in a wider type, and its relation to the original.

    Args:
        graph: the widened layers, which keep their ids, and inserted Converts.
        types: the `Value` of every output.
        outputs: the ports of the requested outputs in their declared types.
        layers: the original layer by the id of its widened layer, and of each Convert inserted for it.
        inserted: the ids of the inserted Converts.
        declared: the declared element type of each port that has another one.
        bodies: the widened bodies, by layer id and name.
    """

    graph: Graph
    types: Inferred
    outputs: Sequence[Port]
    layers: Mapping[int, Layer]
    inserted: Collection[int]
    declared: Mapping[Port, ElementType]
    bodies: Mapping[tuple[int, str], Widened]


def widen(graph: Graph, types: Inferred, to: ElementType = ElementType.f64) -> tuple[Graph, Inferred]:
    """Return the graph in a wider type, including bodies, and its values.

    Constants keep their stored type, and a Convert after each widens it. Inputs and outputs have the wider type. Types are
    replaced without inference, so operations that do not declare the wider type are computed in it as well.

    Args:
        graph: the layers.
        types: their inferred values.
        to: f64, which replaces all narrower floating-point types, or f32, which replaces f16.
    """
    narrow = WIDENED if to is ElementType.f64 else _F16
    widened = _Widening(graph, types, narrow, to, ("Constant",)).result()
    return widened.graph, widened.types


def widen_f16(graph: Graph, types: Inferred, outputs: Sequence[Port], fold: bool) -> Widened:
    """Return the graph with f32 in place of f16, including bodies.

    As in OpenVINO's CPU plugin, a Convert to f16 and back does not round. Operations from outside this package get inputs of
    the declared types.

    Args:
        graph: the layers.
        types: their inferred values.
        outputs: the requested outputs, which keep their types.
        fold: let layers bypass Converts that have become redundant.
    """
    work = _Widening(graph, types, _F16, ElementType.f32, ("Constant", "Parameter"), True, fold)
    narrowed = [work.narrow_output(port) for port in outputs]
    widened = work.result(narrowed)
    # Infer again: contents that inference computed before, such as lengths, were rounded to f16.
    parameters = {layer.id: types[Port(layer.id, 0)] for layer in graph.of_type("Parameter")}
    widened.types = infer(widened.graph, Diagnostics(), parameters)
    return widened


def has_f16(graph: Graph, types: Inferred) -> bool:
    """Return whether a graph or body computes in f16 or has f16 inputs; storage in f16 does not count.

    Args:
        graph: the layers.
        types: their inferred values.
    """
    # f16 is only stored if a Convert reads a Constant, or a Result reads a Convert.
    harmless = {"Constant": "Convert", "Convert": "Result"}
    for port, value in types.items():
        if value.element is not ElementType.f16 or (type := graph[port.layer].type) == "Result":
            continue
        if type not in harmless or any(
            graph[reader.layer].type != harmless[type] for reader in graph.readers(port)
        ):
            return True
    return any(
        (id, body.name) in types.bodies and has_f16(body.graph, types.bodies[id, body.name])
        for id in {id for id, _ in types.bodies}
        for body in graph[id].bodies()
    )


@dataclass(slots=True)
class _Widening:
    """The state of widening a graph.

    Args:
        graph: the layers.
        inferred: their inferred values.
        narrow: the element types to widen.
        wide: the element type that replaces them.
        kept_types: the layer types that keep their declared types.
        keeps_foreign: whether operations that are unknown or from outside this package keep their types, too, as they may not
            support others.
        bypass: whether layers bypass Converts that have become redundant.
    """

    graph: Graph
    inferred: Inferred
    narrow: frozenset[ElementType]
    wide: ElementType
    kept_types: tuple[str, ...]
    keeps_foreign: bool = False
    bypass: bool = False
    literal: set[int] = field(default_factory=set)
    """The ids of Converts that keep their declared type, as they compute outputs; other layers read their input."""
    added: list[Layer] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    layers: dict[int, Layer] = field(default_factory=dict)
    declared: dict[Port, ElementType] = field(default_factory=dict)
    values: dict[Port, Value] = field(default_factory=dict)
    bodies: dict[tuple[int, str], Widened] = field(default_factory=dict)
    converts: dict[Port, Port] = field(default_factory=dict)
    first: int = field(init=False)
    """The id of the first inserted layer."""

    def __post_init__(self) -> None:
        self.first = max(self.graph.layers, default=0) + 1

    def result(self, outputs: Sequence[Port] = ()) -> Widened:
        """Return the widened graph."""
        layers = [self._layer(layer) for layer in self.graph.layers.values()]
        edges = [
            Edge(self._source(edge.source, self.graph[edge.target.layer]), edge.target)
            for edge in self.graph.edges
        ]
        types = Inferred()
        types.update({port: self._value(port, value) for port, value in self.inferred.items()})
        types.update(self.values)
        types.bodies = {key: body.types for key, body in self.bodies.items()}
        graph = Graph([*layers, *self.added], edges + self.edges, self.graph.severed)
        inserted = {layer.id for layer in self.added}
        return Widened(graph, types, outputs, self.layers, inserted, self.declared, self.bodies)

    def narrow_output(self, port: Port) -> Port:
        """Return a requested output in its declared type, after a Convert if it was widened."""
        layer = self.graph[port.layer]
        if layer.type == "Convert" and not any(map(self._is_narrow, self.graph.reads(layer))):
            self.literal.add(layer.id)
        if not self._is_widened(port):
            return port
        results = [
            self.graph[r.layer] for r in self.graph.readers(port) if self.graph[r.layer].type == "Result"
        ]
        owner = results[0] if results else self.graph[port.layer]
        return self._convert(port, self.inferred[port].element, owner)

    def _is_narrow(self, port: Port) -> bool:
        return port in self.inferred and self.inferred[port].element in self.narrow

    def _is_widened(self, port: Port) -> bool:
        return self._is_narrow(port) and not self._keeps(self.graph[port.layer])

    def _keeps(self, layer: Layer) -> bool:
        """Return whether a layer keeps its declared types."""
        if layer.type in self.kept_types or layer.id in self.literal:
            return True
        is_foreign = layer.op is None or layer.op.keeps_types or is_external(layer.op)
        return self.keeps_foreign and is_foreign

    def _value(self, port: Port, value: Value) -> Value:
        """Return the value of a port in the wide type, without contents, which were computed in the narrow type."""
        if not self._is_widened(port):
            return value
        self.declared[port] = value.element
        return Value(TensorType(self.wide, value.shape))

    def _layer(self, layer: Layer) -> Layer:
        if self._keeps(layer):
            return layer
        op = self._operation(layer)
        inputs = tuple([spec.converted(self.narrow, self.wide) for spec in layer.inputs])
        outputs = tuple([spec.converted(self.narrow, self.wide) for spec in layer.outputs])
        if op is layer.op and inputs == layer.inputs and outputs == layer.outputs:
            return layer
        self.layers[layer.id] = layer
        return replace(layer, op=op, inputs=inputs, outputs=outputs)

    def _operation(self, layer: Layer) -> Operation | None:
        """Return the operation of a layer with the wide type in its attributes and bodies."""
        if layer.op is None:
            return None
        changes: dict[str, Any] = {}
        for name, value in vars(layer.op).items():
            if isinstance(value, ElementType) and value in self.narrow:
                changes[name] = self.wide
            elif isinstance(value, Body) and (body := self._body(layer, value)) is not value:
                changes[name] = body
        return layer.op.replace(**changes) if changes else layer.op

    def _body(self, layer: Layer, body: Body) -> Body:
        key = (layer.id, body.name)
        if key not in self.inferred.bodies:  # a branch that is never taken
            return body
        unwidened = ("Constant",)  # but not Parameters: a body gets inputs in the wide type
        work = replace(
            self, graph=body.graph, inferred=self.inferred.bodies[key], kept_types=unwidened, literal=set(), added=[], edges=[],
            layers={}, declared={}, values={}, bodies={}, converts={},
        )  # fmt: skip
        self.bodies[key] = work.result()
        return replace(body, graph=self.bodies[key].graph)

    def _source(self, port: Port, reader: Layer) -> Port:
        """Return the port that ``reader`` reads instead of ``port``, after a Convert if their types differ."""
        if self.bypass:
            port = self._before_converts(port)
        if port.layer in self.literal and self._is_narrow(port):
            return self._before_literal(port)
        if not self._is_narrow(port) or reader.type == "Convert":  # a Convert accepts any type
            return port
        widened, keeps = self._is_widened(port), self._keeps(reader)
        if widened is not keeps:
            return port
        owner = self.graph[port.layer]
        element = self.inferred[port].element if widened else self.wide
        return self._convert(port, element, owner)

    def _before_converts(self, port: Port) -> Port:
        """Return the port that has the same values before Converts between wide types, which are redundant."""
        while self.graph[port.layer].type == "Convert":
            (source,) = self.graph.reads(self.graph[port.layer])
            if not (self._is_widened(port) or self._is_widened(source)):
                break
            if not (self._is_wide(port) and self._is_wide(source)):
                break
            port = source
        return port

    def _before_literal(self, port: Port) -> Port:
        """Return a port with the values before a Convert in `literal` rounds them, in the wide type."""
        (source,) = self.graph.reads(self.graph[port.layer])
        if self.inferred[source].element is self.wide:
            return source
        return self._convert(port, self.wide, self.graph[port.layer], source)

    def _is_wide(self, port: Port) -> bool:
        return self._is_widened(port) or self.inferred[port].element is self.wide

    def _convert(self, port: Port, element: ElementType, owner: Layer, source: Port | None = None) -> Port:
        """Return the output of a Convert after ``port``, which is inserted unless there is one.

        Args:
            port: the port that the Convert stands for.
            element: its destination type.
            owner: the original layer that it belongs to.
            source: the port that it reads; by default ``port``.
        """
        if port in self.converts:
            return self.converts[port]
        number = self.first + len(self.added)
        beside = self.graph[port.layer]
        suffix = f".{port.number}" if port.number else ""
        type = TensorType(element, self.inferred[port].shape)
        self.added.append(
            Layer.inserted(
                number,
                f"{beside.name}/{element.label}{suffix}",
                registry.require("Convert")(destination_type=element),
                beside.where,
                (PortSpec(0),),
                (PortSpec(1, type),),
            )
        )
        self.edges.append(Edge(source or port, Port(number, 0)))
        converted = self.converts[port] = Port(number, 0)
        self.layers[number], self.values[converted] = owner, Value(type)
        if element is self.wide:
            self.declared[converted] = self.inferred[port].element
        return converted
