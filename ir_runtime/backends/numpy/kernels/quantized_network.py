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
from ....ops.convolution.forward import ForwardConvolution
from ....ops.quantization import FakeQuantize
from ... import Fusion, Kernel, KernelTemplate, MatchContext
from ...common.epilogue import RowKernel
from ...common.layout import is_f32
from ...patterns.layer_by_layer import LayerByLayer, with_deferred
from ...patterns.quantized_graph import find_subgraph
from ...patterns.quantized_nodes import MaxPool, Node, Pooled, Product, Source, Subgraph
from .._backend import backend
from ._requantize import dequantize, level_scale, quantize, requantization

__all__: list[str] = []


@backend.pattern(FakeQuantize)
def quantized_network(context: MatchContext, layer: Layer) -> Fusion | None:
    """Match convolutions of quantized data by constant filters, up to a FakeQuantize of the last result."""
    graph = find_subgraph(context, layer, _FilterKernels())
    if graph is None:
        return None
    layers = with_deferred(context, graph.layers)
    reads = context.reads(layers, *(node.port for node in graph.nodes if isinstance(node, Source)))
    steps, definition = _Steps(context, graph).found, LayerByLayer(context, layers, reads)
    return Fusion(layers, reads, QuantizedNetwork(definition, graph, reads, steps))


class _FilterKernels:
    """Kernels of any constant f32 filters; see `Kernels` of `backends.patterns.quantized_graph`."""

    def weights(self, context: MatchContext, filters: Port, op: ForwardConvolution) -> Value | None:
        """Return constant filters."""
        value = context.value(filters)
        return value if value.is_known and is_f32(value) else None

    def compute_pooling(self, op: MaxPool, data: Node[Value]) -> bool:
        """Return whether a pooling is computed: each is."""
        return True

    def add_residual(self, op: ForwardConvolution) -> bool:
        """Return whether a residual can be added: to each product."""
        return True


@dataclass(frozen=True)
class _Step:
    """A kernel, its inputs, and the node that it computes.

    Filters, which it has packed, are zeros of their shape, without memory.
    """

    kernel: KernelTemplate
    reads: tuple[Node[Value] | Array, ...]
    node: Node[Value]


class _Steps:
    """Builds the kernels of a quantized subgraph."""

    def __init__(self, context: MatchContext, graph: Subgraph[Value]) -> None:
        self._context, self.found = context, list[_Step]()
        for node in graph.nodes:
            if isinstance(node, Pooled):
                self.found.append(_Step(self._pooling(node), (node.data,), node))
            elif isinstance(node, Product):
                self.found.append(self._product(node))

    def _pooling(self, node: Pooled[Value]) -> KernelTemplate:
        (layer, *_), unread = node.layers, range(1, len(node.op.outputs))
        values = [self._context.value(port) for port in self._context.sources(layer)]
        kernel = backend.kernel(node.op, values, unread)
        assert kernel is not None
        return kernel

    def _product(self, node: Product[Value]) -> _Step:
        data = self._context.value(self._context.sources(node.layers[0])[0])
        zeros = np.broadcast_to(np.float32(0), node.weights.shape.static)
        kernel = backend.kernel(node.op, (data, _scaled(node)))
        assert isinstance(kernel, RowKernel)
        more = () if node.other is None else (node.other,)
        return _Step(replace(kernel, post_ops=(requantization(node),)), (node.data, zeros, *more), node)


def _scaled(node: Product[Value]) -> Value:
    """Return filters whose products with levels are levels."""
    known = node.weights.known()
    assert known is not None
    groups = known.ndim - 4  # [groups, outputs, ...] or [outputs, ...]
    scale = level_scale(node).reshape(known.shape[: 1 + groups] + (1,) * 3)
    scaled = np.multiply(known, scale, out=np.empty(known.shape, np.float32), casting="same_kind")
    return Value.constant(scaled)


@dataclass(frozen=True)
class QuantizedNetwork(KernelTemplate):
    """The kernel of a quantized subgraph.

    Args:
        definition: computes it layer by layer.
        graph: the subgraph.
        reads: the inputs of the kernel.
        steps: what computes the nodes.
    """

    definition: LayerByLayer
    graph: Subgraph[Value]
    reads: tuple[Port, ...]
    steps: Sequence[_Step]
    _prepared: list[Kernel] = field(default_factory=list, compare=False)

    def prepare(self) -> Kernel:
        """Return the kernel, with packed filters."""
        if not self._prepared:
            self._prepared.append(Kernel(_Network(self)))
        return self._prepared[0]


class _Network:
    """Runs the steps of a quantized subgraph in order; every result is released after its last reader."""

    def __init__(self, network: QuantizedNetwork) -> None:
        graph = network.graph
        self._definition = network.definition
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
                step.kernel.prepare().whole,
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
