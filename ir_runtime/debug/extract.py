"""Cut a part out of a model, with the values that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..analysis.infer import Inferred
from ..api.model import Model
from ..api.names import find_ports
from ..diagnostics import Diagnostics
from ..ir.graph import Edge, Graph, Layer, Port, PortSpec
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType
from ..ops import registry
from .reference import Reference
from .tensors import name_of

__all__ = ["cut", "extract", "values_at"]


def extract(model: Model, outputs: Any, inputs: Any = (), feeds: Any = None) -> tuple[Model, list[Array]]:
    """Cut the part of a model that leads from some tensors to others.

    Args:
        model: the model; it is not changed.
        outputs: the tensors that it is to give: layer names, tensor names, globs or (layer name, output).
        inputs: the tensors that it is to take, likewise; inputs of the model that it needs beside them stay.
        feeds: inputs of the whole model, as for a compiled model.

    Returns:
        the part, and an array for each of its inputs as the reference computes them; none without ``feeds``.

    Raises:
        InputError: if a name is unknown.
    """
    reference = Reference(model)
    starts = find_ports(reference.graph, _listed(inputs))
    part = cut(model, starts, find_ports(reference.graph, _listed(outputs)))
    if feeds is None:
        return part, []
    names = [node.friendly_name for node in part.parameters]
    values = values_at(reference, reference.feeds(feeds), starts)
    given = {
        layer.name: feed
        for layer, feed in zip(reference.graph.of_type("Parameter"), reference.feeds(feeds), strict=True)
    }
    found = {name_of(reference.graph, port): array for port, array in values.items()}
    return part, [{**given, **found}[name] for name in names]


def _listed(asked: Any) -> list[Any]:
    return [asked] if isinstance(asked, str) else list(asked)


def values_at(reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]) -> dict[Port, Array]:
    """Return what a reference computes at some ports; f64 is given back in the types of the model."""
    wanted = {port.layer for port in ports}
    found: dict[Port, Array] = {}

    def keep(layer: Layer, _: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if layer.id in wanted:
            copies = [np.array(array, order="C") for array in outputs]
            found.update(zip(layer.output_ports, copies, strict=False))
        return outputs

    reference.run(feeds, keep)
    given = {
        Port(layer.id, 0): feed
        for layer, feed in zip(reference.graph.of_type("Parameter"), feeds, strict=True)
    }
    return {port: (found | given)[port] for port in ports if port in found or port in given}


def cut(
    model: Model,
    starts: Sequence[Port],
    ends: Sequence[Port],
    shapes: Mapping[Port, PartialShape] | None = None,
) -> Model:
    """Return the layers that lead from some ports to others, as a model of its own.

    Args:
        model: the model.
        starts: the ports that become inputs, each called as its tensor was.
        ends: the ports that become outputs.
        shapes: shapes for some of the inputs in place of those that were inferred.
    """
    runnable = model._runnable()
    graph, values = runnable._graph, runnable._values
    kept = _between(graph, starts, ends)
    number = max(graph.layers) + 1
    known = shapes or {}
    types = {port: TensorType(values[port].element, known.get(port, values[port].shape)) for port in starts}
    inputs = {port: _parameter(graph, port, types[port], number + index) for index, port in enumerate(starts)}
    results = [_result(graph, port, number + len(inputs) + index) for index, port in enumerate(ends)]
    inner = [_typed(layer, values) for layer in graph.layers.values() if layer.id in kept]
    layers = [*inputs.values(), *inner, *results]
    moved = {port: Port(layer.id, 0) for port, layer in inputs.items()}
    edges = [
        Edge(moved.get(edge.source, edge.source), edge.target)
        for edge in graph.edges
        if edge.target.layer in kept and (edge.source in moved or edge.source.layer in kept)
    ]
    edges += [
        Edge(moved.get(port, port), Port(layer.id, 0)) for port, layer in zip(ends, results, strict=True)
    ]
    document = replace(model._document, graph=Graph(layers, edges))
    return Model._read(document, Diagnostics())


def _between(graph: Graph, starts: Sequence[Port], ends: Sequence[Port]) -> set[int]:
    found = {port.layer for port in ends if port not in starts}
    waiting = list(found)
    while waiting:
        for source in graph.reads(graph[waiting.pop()]):
            if source not in starts and source.layer not in found:
                found.add(source.layer)
                waiting.append(source.layer)
    return found


def _parameter(graph: Graph, port: Port, type: TensorType, number: int) -> Layer:
    attributes = {"element_type": type.element, "shape": type.shape}
    return _end(graph, port, number, "Parameter", name_of(graph, port), attributes, (), (PortSpec(0, type),))


def _result(graph: Graph, port: Port, number: int) -> Layer:
    name = f"{name_of(graph, port)}/result"
    return _end(graph, port, number, "Result", name, {}, (PortSpec(0),), ())


def _end(
    graph: Graph,
    port: Port,
    number: int,
    type: str,
    name: str,
    attributes: Mapping[str, Any],
    inputs: tuple[PortSpec, ...],
    outputs: tuple[PortSpec, ...],
) -> Layer:
    cls = registry.resolve(type, 1)
    assert cls is not None
    return Layer.inserted(number, name, cls(**attributes), graph[port.layer].where, inputs, outputs)


def _typed(layer: Layer, values: Inferred) -> Layer:
    """A layer whose outputs declare nothing, as inputs may have other shapes now; or an input as it was reshaped."""
    if layer.type == "Parameter" and layer.op is not None:
        type = values[Port(layer.id, 0)].type
        spec = replace(layer.outputs[0], type=type)
        return replace(layer, op=layer.op.replace(shape=type.shape), outputs=(spec,))
    if layer.type == "Constant":
        return layer
    return replace(layer, outputs=tuple(replace(spec, type=None) for spec in layer.outputs))
