"""Quantized networks: convolutions of quantized levels, and all layers between them, as one kernel.

The kernel of a quantized subgraph (`find_subgraph`) quantizes its inputs, passes levels from layer to layer, and dequantizes
its result. The scales of data and results are folded into the filters at compile time, so that the layers between two
convolutions reduce to a shift, rounding and clipping. Data with NaN, which has no level, is computed layer by layer.
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
    add_deferred,
    find_subgraph,
)
from .._backend import backend
from .elementwise import apply_activation

__all__: list[str] = []

# A shift below this, in levels, is less than the rounding of f32.
NEGLIGIBLE = 2.0**-16


def quantize(quantizer: Quantizer, x: Array) -> Array:
    """Return the levels of f32 values relative to the zero level, with the arithmetic of the reference."""
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
    """Return the f32 values of levels, with the bits of the reference."""
    _, _, _, _, steps, span, first, *_ = quantizer.parameters

    def passes(source: Array, out: Array) -> None:
        np.add(source, np.float32(quantizer.zero), out=out)
        np.divide(out, steps, out=out)
        np.multiply(out, span, out=out)
        np.add(out, first, out=out)

    return apply_activation(passes, levels)


def level_scale(node: Product[Value]) -> Array:
    """Return the f64 factor of each output channel that turns sums of products of levels and filters into levels of the result."""
    return np.asarray(node.data.quantizer.scale * node.factor / node.first.step)


@dataclass(frozen=True)
class _Rounding:
    """Rounding of sums to levels: add a shift, round to even, and clip.

    Args:
        shift: the shift of each channel, or a single one; ``None`` for 0.
        low: the lower bound, relative to the zero level.
        high: the upper bound, relative to the zero level.
        odd: 1 if the zero level is odd, else 0; added to the shift and subtracted after rounding, since ties round to the
            even level.
    """

    shift: Array | None
    low: np.float32
    high: np.float32
    odd: np.float32

    @classmethod
    def of(cls, quantizer: Quantizer, bounds: tuple[float, float], shift: Array) -> _Rounding:
        """Return the rounding of sums to the levels of a quantizer.

        Args:
            quantizer: the quantizer.
            bounds: the range to which values are clipped before quantization.
            shift: what is added to the sums of each channel, in steps of the quantizer.
        """
        odd = quantizer.zero % 2
        row = shift - quantizer.low / quantizer.step - (quantizer.zero - odd)
        low, high = (np.float32(quantizer.level_of(bound) - quantizer.zero) for bound in bounds)
        return cls(
            None if (abs(row) < NEGLIGIBLE).all() else row.astype(np.float32), low, high, np.float32(odd)
        )

    def activation(self) -> Activation:
        """Return the rounding as a function of contiguous rows, which overwrites its input."""
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
    """The addition of a residual whose levels have another scale.

    Args:
        factor: the factor of the levels of the convolution.
        other_factor: the factor of the levels of the residual.
        rounding: the rounding of the sum.
    """

    factor: np.float32
    other_factor: np.float32
    rounding: _Rounding


def requantization(node: Product[Value]) -> RowPostOp:
    """Return the post-op that turns the sums of a convolution with scaled filters into the levels of a node."""
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
    """Match convolutions of quantized data with constant filters, up to the FakeQuantize of the last result, else return ``None``."""
    graph = find_subgraph(context, layer, _FilterKernels())
    if graph is None:
        return None
    layers = add_deferred(context, graph.layers)
    reads = context.reads(layers, *(node.port for node in graph.nodes if isinstance(node, Source)))
    steps, definition = _Steps(context, graph).steps, LayerByLayer(context, layers, reads)
    return Fusion(layers, reads, QuantizedNetwork(definition, graph, reads, steps))


class _FilterKernels:
    """The support of this backend (`backends.patterns.quantized_graph.Kernels`): any constant f32 filters."""

    def weights(self, context: MatchContext, filters: Port, op: ForwardConvolution) -> Value | None:
        """Return the filters if they are constant f32, else ``None``."""
        value = context.value(filters)
        return value if value.is_known and is_f32(value) else None

    def compute_pooling(self, op: MaxPool, data: Node[Value]) -> bool:
        """Return True: any max pooling is supported."""
        return True

    def add_residual(self, op: ForwardConvolution) -> bool:
        """Return True: any convolution can add a residual."""
        return True


@dataclass(frozen=True)
class _Step:
    """A kernel, its inputs, and the node that it computes.

    In place of filters, which the kernel has packed, it reads a broadcast zero of their shape.
    """

    kernel: KernelTemplate
    reads: tuple[Node[Value] | Array, ...]
    node: Node[Value]


class _Steps:
    """Builds the steps of a quantized subgraph, one for each convolution and pooling."""

    def __init__(self, context: MatchContext, graph: Subgraph[Value]) -> None:
        self._context, self.steps = context, list[_Step]()
        for node in graph.nodes:
            if isinstance(node, Pooled):
                self.steps.append(_Step(self._pooling(node), (node.data,), node))
            elif isinstance(node, Product):
                self.steps.append(self._product(node))

    def _pooling(self, node: Pooled[Value]) -> KernelTemplate:
        (layer, *_), unread = node.layers, range(1, len(node.op.outputs))
        values = [self._context.value(port) for port in self._context.sources(layer)]
        kernel = backend.kernel(node.op, values, unread)
        assert kernel is not None
        return kernel

    def _product(self, node: Product[Value]) -> _Step:
        data = self._context.value(self._context.sources(node.layers[0])[0])
        zeros = np.broadcast_to(np.float32(0), node.weights.shape.static)
        kernel = backend.kernel(node.op, (data, _scale_filters(node)))
        assert isinstance(kernel, RowKernel)
        residual = () if node.other is None else (node.other,)
        return _Step(replace(kernel, post_ops=(requantization(node),)), (node.data, zeros, *residual), node)


def _scale_filters(node: Product[Value]) -> Value:
    """Return the filters of a convolution multiplied by `level_scale`."""
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
        definition: evaluates the subgraph layer by layer.
        graph: the subgraph.
        reads: the inputs of the kernel.
        steps: the kernels of the nodes, in order.
    """

    definition: LayerByLayer
    graph: Subgraph[Value]
    reads: tuple[Port, ...]
    steps: Sequence[_Step]
    _prepared: list[Kernel] = field(default_factory=list, compare=False)

    def prepare(self) -> Kernel:
        """Pack the filters on the first call; return the kernel."""
        if not self._prepared:
            self._prepared.append(Kernel(_Network(self)))
        return self._prepared[0]


class _Network:
    """Runs the steps of a quantized subgraph in order, and releases every result after its last reader."""

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
            out = kernel(*(levels[read] if isinstance(read, int) else read for read in reads))
            levels[index] = out[0] if isinstance(out, tuple) else out
            for released in done:
                levels[released] = None
        result = levels[self._result]
        assert result is not None
        return dequantize(self._quantizer, result)
