"""The execution nodes of OpenVINO's CPU plugin: their layers, precisions and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..bench.openvino_process import Node as ReportedNode
from ..ir.graph import Graph, Port
from .decisions import following_decisions
from .precision import is_move
from .reference import Reference
from .tensors import is_float

__all__ = ["Node", "boundaries", "held", "nodes_of", "precisions_of", "probable", "wide"]


class Node(NamedTuple):
    """An execution node: its type, layers, precision, and the precision of its first result."""

    type: str
    members: tuple[str, ...]
    precision: str
    result: str


def boundaries(reference: Reference, ports: Sequence[Port], node_of: Mapping[str, str]) -> list[Port]:
    """Return the tensors that leave an execution node."""
    graph, nodes = reference.graph, _by_layer(reference.graph, node_of)
    outputs = {port._port for port in reference.outputs}
    return [
        port
        for port in ports
        if port in outputs or any(nodes[r.layer] != nodes[port.layer] for r in graph.readers(port))
    ]


def _by_layer(graph: Graph, node_of: Mapping[str, str]) -> dict[int, str]:
    """Return the execution node of each layer, by id; unnamed layers belong to the node of their consumer."""
    nodes: dict[int, str] = {}
    for layer in reversed(graph.order):
        readers = {
            nodes.get(reader.layer, "") for port in layer.output_ports for reader in graph.readers(port)
        }
        alone = readers.pop() if len(readers) == 1 else layer.name
        nodes[layer.id] = node_of.get(layer.name, alone)
    return nodes


def probable(
    reference: Reference,
    ports: Sequence[Port],
    node_of: Mapping[str, str],
    nodes: Mapping[str, Node],
) -> list[Port]:
    """Return the observable tensors, if numbers are rounded at the ends of execution nodes.

    A layer without a named node is inside of one, such as the cache of an attention, and another consumer
    would split that node. Integers that follow from shapes and inputs alone are not rounded.
    """
    graph, outputs = reference.graph, {port._port for port in reference.outputs}
    decided, inside = following_decisions(graph, reference.types), _inside(graph, node_of, nodes)
    return [
        port
        for port in ports
        if port in outputs
        or (
            graph[port.layer].name in node_of
            and port.layer not in inside
            and (is_float(reference.types, port) or port.layer in decided)
        )
    ]


def _inside(graph: Graph, node_of: Mapping[str, str], nodes: Mapping[str, Node]) -> set[int]:
    """Return the ids of layers whose node ends with a layer added by the plugin."""
    names, inside = {layer.name for layer in graph}, set[int]()
    for layer in graph:
        members = (
            [name for name in nodes[node_of[layer.name]].members if name] if layer.name in node_of else []
        )
        moved = is_move(layer) and any(port.layer in inside for port in graph.reads(layer)[:1])
        if moved or (members and members[-1] not in names):
            inside.add(layer.id)
    return inside


def wide(reference: Reference, node_of: Mapping[str, str], nodes: Mapping[str, Node]) -> tuple[int, ...]:
    """Return the ids of layers in nodes that compute in f32, except constants."""
    of = _by_layer(reference.graph, node_of)
    node_names = {name for name, node in nodes.items() if node.precision == "f32" or node.type == "RoPE"}
    return tuple(
        layer.id for layer in reference.graph if layer.type != "Constant" and of[layer.id] in node_names
    )


def held(reference: Reference, node_of: Mapping[str, str], nodes: Mapping[str, Node]) -> tuple[int, ...]:
    """Return the ids of layers at the end of a node with f32 output."""
    graph, of = reference.graph, _by_layer(reference.graph, node_of)
    node_names = {name for name, node in nodes.items() if node.result == "f32"}
    return tuple(
        layer.id
        for layer in graph
        if layer.type != "Constant"
        and of[layer.id] in node_names
        and any(of[r.layer] != of[layer.id] for port in layer.output_ports for r in graph.readers(port))
    )


def nodes_of(reported: Sequence[ReportedNode]) -> tuple[dict[str, Node], dict[str, str]]:
    """Return the execution nodes by name, and the node of each layer named by one."""
    nodes: dict[str, Node] = {}
    node_of: dict[str, str] = {}
    for node in reported:
        nodes[node.name] = Node(node.type, node.members, _precision(node), node.result)
        node_of |= dict.fromkeys(node.members, node.name)
    return nodes, node_of


def _precision(node: ReportedNode) -> str:
    """Return the precision of a node: that of its kernel if only compressed weights are reported."""
    kernel = node.kernel.rpartition("_")[2]
    if node.type in _PRODUCTS and node.precision not in NUMBERS and kernel in NUMBERS:
        return kernel
    return node.precision


NUMBERS = ("bf16", "f16", "f32")
_PRODUCTS = (
    "Convolution",
    "Deconvolution",
    "FullyConnected",
    "MatMul",
    "RNNCell",
    "RNNSeq",
    "ScaledDotProductAttention",
)


def precisions_of(nodes: Mapping[str, Node]) -> tuple[str, ...]:
    of_products = {node.precision for node in nodes.values() if node.type in _PRODUCTS}
    precisions = of_products or {node.precision for node in nodes.values()} - {"i8", "u8"}
    return tuple(sorted(precisions & {*NUMBERS, "i8", "u8"}))
