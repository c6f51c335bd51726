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
from ....ops.convolution import ForwardConvolution
from ....ops.quantization import FakeQuantize
from ... import Fusion, Kernel, KernelTemplate, MatchContext
from ...common.activations import Activation, broadcast_binary
from ...common.epilogue import RowKernel, RowPostOp, in_place
from ...common.layout import is_f32
from ...patterns.quantized_graph import (
    LayerByLayer,
    MaxPool,
    Node,
    Pooled,
    Product,
    Quantizer,
    Source,
    Subgraph,
    find_subgraph,
    with_deferred,
)
from .._backend import backend
from .elementwise import apply_activation

__all__: list[str] = []

# A shift of levels below this is less than f32 rounds in levels.
NEGLIGIBLE = 2.0**-16


def quantize(quantizer: Quantizer, x: Array) -> Array:
    """Return the levels of f32 numbers: those of the reference, computed in its order."""
    bottom, top, low, width, steps, *_ = quantizer.parameters

    def passes(source: Array, out: Array) -> None:
        source.clip(bottom, top, out=out)
        if low:
            np.subtract(out, low, out=out)
        np.divide(out, width, out=out)
        np.multiply(out, steps, out=out)
        np.rint(out, out=out)
        if quantizer.zero:
            np.subtract(out, np.float32(quantizer.zero), out=out)

    return apply_activation(passes, x)


def dequantize(quantizer: Quantizer, levels: Array) -> Array:
    """Return the numbers of levels, with the bits of the reference."""
    _, _, _, _, steps, span, first, *_ = quantizer.parameters

    def passes(source: Array, out: Array) -> None:
        np.add(source, np.float32(quantizer.zero), out=out)
        np.divide(out, steps, out=out)
        np.multiply(out, span, out=out)
        np.add(out, first, out=out)

    return apply_activation(passes, levels)


def level_scale(node: Product[Value]) -> Array:
    """Return the factor of the filters of each channel with which products of levels are levels; f64."""
    return np.asarray(node.data.quantizer.scale * node.factor / node.first.step)


@dataclass(frozen=True)
class _Rounding:
    """Rounds shifted sums to levels between bounds.

    Args:
        shift: for each channel, or one number; ``None`` for 0.
        low: the lower bound.
        high: the upper bound.
        odd: 1 if the level of zero is odd, else 0. A tie is rounded to an even level, so it is subtracted after rounding.
    """

    shift: Array | None
    low: np.float32
    high: np.float32
    odd: np.float32

    @classmethod
    def of(cls, quantizer: Quantizer, bounds: tuple[float, float], shift: Array) -> _Rounding:
        """Return the rounding of a quantizer whose numbers have bounds; shifts are relative to its zero."""
        odd = quantizer.zero % 2
        row = shift - quantizer.low / quantizer.step - (quantizer.zero - odd)
        low, high = (np.float32(quantizer.level_of(bound) - quantizer.zero) for bound in bounds)
        return cls(
            None if (abs(row) < NEGLIGIBLE).all() else row.astype(np.float32), low, high, np.float32(odd)
        )

    def activation(self) -> Activation:
        """Return the function of contiguous rows, which also changes its input."""
        add = None if self.shift is None else broadcast_binary(np.add, self.shift)
        low, high, odd = self.low, self.high, self.odd

        def run(x: Array, out: Array) -> None:
            if add is not None:
                add(x, x)
            np.rint(x, out=x)
            if odd:
                np.subtract(x, odd, out=x)
            x.clip(low, high, out=out)

        return run


@dataclass(frozen=True)
class _Residual:
    """Adds levels with another scale, and rounds the sum.

    Args:
        factor: multiplies the levels.
        other_factor: multiplies the others.
        rounding: of the sum.
    """

    factor: np.float32
    other_factor: np.float32
    rounding: _Rounding


def requantization(node: Product[Value]) -> RowPostOp:
    """Return the post-op from the products of levels and scaled filters to the levels of a node."""
    first = _Rounding.of(node.first, node.bounds, node.shift / node.first.step)
    if node.other is None or node.last is None:
        return _post_op(first)
    factor, other = (np.float32(q.scale / node.last.step) for q in (node.first, node.other.quantizer))
    return _post_op(first, _Residual(factor, other, _Rounding.of(node.last, node.sum_bounds, np.zeros(1))))


def _post_op(first: _Rounding, residual: _Residual | None = None) -> RowPostOp:
    round_first = in_place(first.activation())
    if residual is None:
        return RowPostOp(0, round_first)
    round_sum, factor, other = (
        in_place(residual.rounding.activation()),
        residual.factor,
        residual.other_factor,
    )

    def run(block: Array, rows: Array) -> None:
        round_first(block, block)
        np.multiply(block, factor, out=block)
        np.add(block, np.multiply(rows, other), out=block)
        round_sum(block, block)

    return RowPostOp(1, run, full_tensor=True)


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
        steps: the functions that compute the nodes.
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
