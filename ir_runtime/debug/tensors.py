"""The observable tensors of a model, and their names: ``layer``, or ``layer:output`` for layers with several outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from ..analysis.infer import Inferred
from ..compiler.widen import WIDENED
from ..ir.element import ElementType
from ..ir.graph import IO_TYPES, Graph, Layer, Port
from ..ops._define.describe import group
from ..ops.elementwise import Binary, Unary

__all__ = [
    "FLOATS",
    "Names",
    "computed_layers",
    "end_of_node",
    "is_float",
    "name_of",
    "named_ports",
    "ports_by_name",
    "read_ports",
    "unit_of",
]

FLOATS = WIDENED | {ElementType.f64}
"""The element types of numbers that are rounded."""

Names: TypeAlias = "str | Iterable[str | tuple[str, int] | Port]"
"""Tensors that a user asks for: tensor names, layer names, globs or (layer name, output)."""


def computed_layers(graph: Graph) -> list[Layer]:
    """Return the layers that depend on the model inputs, in topological order."""
    dependent: set[int] = {layer.id for layer in graph.of_type("Parameter")}
    layers = []
    for layer in graph:
        if layer.type in (*IO_TYPES, "Constant"):
            continue
        stateful = layer.op is not None and not layer.op.pure
        if stateful or any(source.layer in dependent for source in graph.reads(layer)):
            dependent.add(layer.id)
            layers.append(layer)
    return layers


def read_ports(graph: Graph, outputs: Collection[Port]) -> Iterator[Port]:
    """Yield the non-constant tensors that some layer reads, or that are model outputs.

    Runtimes may skip others, such as an unused output of a Split.
    """
    ports = (port for layer in computed_layers(graph) for port in layer.output_ports)
    return (port for port in ports if port in outputs or graph.readers(port))


def name_of(graph: Graph, port: Port) -> str:
    """Return the name of a tensor: ``layer`` or ``layer:output``."""
    layer = graph[port.layer]
    return layer.name if len(layer.outputs) == 1 else f"{layer.name}:{port.number}"


def named_ports(graph: Graph, ports: Iterable[Port]) -> Iterator[tuple[Port, str]]:
    """Yield tensors with their names."""
    return ((port, name_of(graph, port)) for port in ports)


def ports_by_name(graph: Graph, layers: Iterable[Layer]) -> dict[str, Port]:
    """Return the tensors of layers by name; the first layer wins for duplicate names."""
    ports: dict[str, Port] = {}
    for layer in layers:
        for port in layer.output_ports:
            ports.setdefault(name_of(graph, port), port)
    return ports


def is_float(types: Inferred, port: Port) -> bool:
    """Return whether a tensor is floating point, and so subject to rounding."""
    return types[port].element in FLOATS


def unit_of(
    graph: Graph, port: Port, observed: Mapping[Port, object], computed: set[int]
) -> tuple[Layer, ...]:
    """Return the layers that compute a tensor from other observed tensors, in topological order.

    Args:
        graph: the graph.
        port: the tensor.
        observed: the observed tensors.
        computed: the ids of layers that depend on the model inputs; others are omitted.
    """
    members, waiting = {port.layer}, [port.layer]
    while waiting:
        for source in graph.reads(graph[waiting.pop()]):
            if source not in observed and source.layer in computed and source.layer not in members:
                members.add(source.layer)
                waiting.append(source.layer)
    return tuple(layer for layer in graph if layer.id in members)


def end_of_node(graph: Graph, layer: Layer, changing: Collection[int]) -> Port:
    """Return the output tensor of the execution node that starts with a layer such as a MatMul or a Convolution.

    An execution node is a layer as a runtime executes it: a bias and an activation that follow are fused into the node, and
    its result is rounded once.

    Args:
        graph: the graph.
        layer: the layer.
        changing: the ids of layers that are not constant.
    """
    end = layer.output_ports[0]
    while len(readers := graph.readers(end)) == 1:
        reader = graph[readers[0].layer]
        operands = [source for source in graph.reads(reader) if source.layer in changing]
        if not _is_pointwise(reader) or len(operands) > 1:
            break
        end = reader.output_ports[0]
    return end


def _is_pointwise(layer: Layer) -> bool:
    """Return whether each result element depends on a single element of each operand, unlike in SoftMax."""
    if isinstance(layer.op, Unary | Binary):
        return layer.op.flops_per_element == 1
    return group(type(layer.op)) == "activation"
