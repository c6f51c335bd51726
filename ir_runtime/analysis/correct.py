"""Replace declared types that contradict the inferred ones."""

from __future__ import annotations

from dataclasses import replace

from ..ir.graph import Graph, Layer, Port, PortSpec
from ..ir.operation import Operation
from ..ir.tensor import TensorType, Value
from .declared import agree
from .infer import Inferred

__all__ = ["correct_types"]


def correct_types(graph: Graph, values: Inferred) -> Graph:
    """Return the graph with the types of ports and Parameters corrected to the inferred ones.

    The result of a loop without iterations follows from the declared ports of its body.
    """
    layers = [_correct_layer(graph, layer, values) for layer in graph.layers.values()]
    return Graph(layers, graph.edges, graph.severed)


def _correct_layer(graph: Graph, layer: Layer, values: Inferred) -> Layer:
    own = layer.output_ports
    sources = [None if source is None else values.get(source) for source in graph.sources(layer)]
    return replace(
        layer,
        op=None if layer.op is None else _operation(layer, layer.op, values),
        inputs=tuple(map(_port, layer.inputs, sources)),
        outputs=tuple(_port(spec, values.get(port)) for spec, port in zip(layer.outputs, own, strict=True)),
    )


def _port(spec: PortSpec, value: Value | None) -> PortSpec:
    fits = value is None or spec.type is None or agree(spec.type, value.type)
    return spec if fits or value is None else replace(spec, type=value.type)


def _operation(layer: Layer, op: Operation, known: Inferred) -> Operation:
    """Return the operation with the types in its bodies corrected, and those of Parameters in bodies."""
    value = known.get(Port(layer.id, 0))
    if layer.type == "Parameter" and value is not None:
        return _parameter(op, value.type)
    inner = {body.name: known.bodies.get((layer.id, body.name)) for body in layer.bodies()}
    bodies = {
        body.name: replace(body, graph=correct_types(body.graph, values))
        for body in layer.bodies()
        if (values := inner[body.name]) is not None
    }
    return op.replace(**bodies) if bodies else op


def _parameter(op: Operation, type: TensorType) -> Operation:
    declared = op.infer_types()[0]
    return op if agree(declared, type) else op.replace(element_type=type.element, shape=type.shape)
