"""Quantized networks: convolutions of levels, and all layers between them.

A quantized subgraph that `find_subgraph` finds is one kernel. It quantizes its inputs, passes levels from layer to
layer, and dequantizes its result. Filters are multiplied by the scales of their data and of their result when the model is
compiled, so that only a shift, rounding and bounds are left of the layers between two convolutions. Data with NaN, which
has no level, is computed by the operations themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ....ir.graph import Layer, Port
from ....ir.tensor import Array, Value
from ....ops.quantization import FakeQuantize
from ... import Fusion, Kernel, KernelObject, MatchContext
from ...common.epilogue import RowKernel
from ...patterns.quantized_graph import find_subgraph
from ...patterns.quantized_nodes import Node, Pooled, Product, Source, Subgraph
from .._backend import backend
from ..tiling.tiled_chain import TiledChain
from ._requantize import dequantize, level_scale, quantize, requantization

__all__: list[str] = []


@backend.pattern(FakeQuantize)
def quantized_network(context: MatchContext, layer: Layer) -> Fusion | None:
    """Match convolutions of quantized data by constant filters, up to a FakeQuantize of the last result."""
    graph = find_subgraph(context, layer)
    if graph is None:
        return None
    inside = {each.id for each in graph.layers}
    constants = (port for each in graph.layers for port in context.sources(each) if port.layer not in inside)
    sources = [node.port for node in graph.nodes if isinstance(node, Source)]
    reads = tuple(dict.fromkeys([*sources, *constants]))
    steps = _Steps(context, graph)
    return Fusion(graph.layers, reads, QuantizedNetwork(context, graph, reads, steps.found))


@dataclass(frozen=True)
class _Step:
    """A kernel, what it reads, and the node that it computes.

    Filters, which it has packed, are zeros of their shape, without memory.
    """

    kernel: Kernel
    reads: tuple[Node | Array, ...]
    node: Node


class _Steps:
    """Builds the kernels of a quantized subgraph: convolutions that can be computed tile by tile are joined."""

    def __init__(self, context: MatchContext, graph: Subgraph) -> None:
        self._context, self.found = context, list[_Step]()
        reads = [read for node in graph.nodes for read in _reads(node)]
        self._readers = {id(node): reads.count(node) for node in graph.nodes}
        for node in graph.nodes:
            if isinstance(node, Pooled):
                self.found.append(_Step(self._pooling(node), (node.data,), node))
            elif isinstance(node, Product):
                self._product(node)

    def _pooling(self, node: Pooled) -> Kernel:
        (layer, *_), unread = node.layers, range(1, len(node.op.outputs))
        values = [self._context.value(port) for port in self._context.sources(layer)]
        kernel = backend.kernel(node.op, values, unread)
        assert kernel is not None
        return kernel

    def _product(self, node: Product) -> None:
        data, filters = (self._context.value(port) for port in self._context.sources(node.layers[0]))
        values = data, _scaled(filters, node)
        zeros = np.broadcast_to(np.float32(0), filters.shape.static)
        more = () if node.other is None else (node.other,)
        before = next((step for step in self.found if step.node is node.data), None)
        if before is not None and self._readers[id(node.data)] == 1 and isinstance(before.kernel, TiledChain):
            joined = before.kernel.fuse(node.op, values, 0)
            if joined is not None:
                self.found.remove(before)
                self.found.append(_Step(_finished(joined, node), (*before.reads, zeros, *more), node))
                return
        kernel = backend.kernel(node.op, values)
        assert kernel is not None
        self.found.append(_Step(_finished(kernel, node), (node.data, zeros, *more), node))


def _reads(node: Node) -> list[Node]:
    """Return the nodes that a node reads."""
    if isinstance(node, Source):
        return []
    return [node.data, *([node.other] if isinstance(node, Product) and node.other is not None else [])]


def _scaled(filters: Value, node: Product) -> Value:
    """Return filters whose products with levels are levels."""
    known = filters.known()
    assert known is not None
    groups = known.ndim - 4  # [groups, outputs, ...] or [outputs, ...]
    scale = level_scale(node).reshape(known.shape[: 1 + groups] + (1,) * 3)
    return Value.constant((known * scale).astype(np.float32))


def _finished(kernel: Kernel, node: Product) -> Kernel:
    """Return the kernel of a convolution that also computes the levels of its result."""
    post_op = requantization(node)
    if isinstance(kernel, TiledChain):
        *before, last = kernel.layers
        return replace(kernel, layers=(*before, replace(last, post_ops=(post_op,))))
    assert isinstance(kernel, RowKernel)
    return replace(kernel, post_ops=(post_op,))


@dataclass(frozen=True)
class QuantizedNetwork(KernelObject):
    """The kernel of a quantized subgraph.

    Args:
        context: the graph around it.
        graph: the subgraph.
        reads: the inputs of the kernel.
        steps: what computes the nodes.
    """

    context: MatchContext
    graph: Subgraph
    reads: tuple[Port, ...]
    steps: Sequence[_Step]
    _prepared: list[Kernel] = field(default_factory=list, compare=False)

    def prepare(self) -> Kernel:
        """Return the kernel, with packed filters."""
        if not self._prepared:
            self._prepared.append(_Network(self))
        return self._prepared[0]

    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Build the kernel if needed, and run it."""
        return self.prepare()(*arrays)


class _Network:
    """Runs the steps of a quantized subgraph in order; every result is released after its last reader."""

    def __init__(self, network: QuantizedNetwork) -> None:
        graph = network.graph
        self._definition = _Definition(network.context, graph, network.reads)
        self._quantizer = graph.result.quantizer
        number = {id(node): index for index, node in enumerate(graph.nodes)}
        self._sources = [
            (number[id(node)], network.reads.index(node.port), node.quantizer)
            for node in graph.nodes
            if isinstance(node, Source)
        ]
        self._result, self._count = number[id(graph.result)], len(graph.nodes)
        last = {id(read): step for step in network.steps for read in step.reads}
        self._steps = [
            (
                step.kernel.prepare() if isinstance(step.kernel, KernelObject) else step.kernel,
                [read if isinstance(read, np.ndarray) else number[id(read)] for read in step.reads],
                number[id(step.node)],
                [number[key] for key, reader in last.items() if reader is step and key in number],
            )
            for step in network.steps
        ]

    def __call__(self, *arrays: Array) -> Array:
        levels: list[Array | None] = [None] * self._count
        for index, place, quantizer in self._sources:
            if np.isnan(arrays[place].min()):
                return self._definition(*arrays)
            levels[index] = quantize(quantizer, arrays[place])
        for kernel, reads, index, done in self._steps:
            found = kernel(*(levels[read] if isinstance(read, int) else read for read in reads))
            levels[index] = found[0] if isinstance(found, tuple) else found
            for each in done:
                levels[each] = None
        result = levels[self._result]
        assert result is not None
        return dequantize(self._quantizer, result)


class _Definition:
    """A quantized subgraph that is computed layer by layer by its operations, for NaN, which has no level."""

    def __init__(self, context: MatchContext, graph: Subgraph, reads: Sequence[Port]) -> None:
        self._reads = reads
        self._layers = [(layer, context.sources(layer)) for layer in graph.layers]

    def __call__(self, *arrays: Array) -> Array:
        found: dict[Port, Array] = dict(zip(self._reads, arrays, strict=True))
        for layer, sources in self._layers:
            assert layer.op is not None
            result: Array | tuple[Array, ...] = layer.op.evaluate(*(found[source] for source in sources))
            found[Port(layer.id, 0)] = result[0] if isinstance(result, tuple) else result
        last: Array = found[Port(self._layers[-1][0].id, 0)]
        return last
