"""Find quantized subgraphs: FakeQuantize, convolutions of its levels with constant filters, and FakeQuantize again.

A quantized subgraph ends with a FakeQuantize. Its inputs are f32 and quantized first. A value that layers outside also read
stays outside in f32, and becomes an input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from ...ir.deferred import DeferredValue
from ...ir.graph import Layer, Port
from ...ir.tensor import Array
from ...ops.activation import Clamp, ReLU
from ...ops.arithmetic import Add, Multiply, Subtract
from ...ops.convolution import Convolution, ForwardConvolution, GroupConvolution
from ...ops.elementwise import Binary
from ...ops.pooling import MaxPool1, MaxPool8, MaxPool14
from ...ops.quantization import FakeQuantize
from .. import MatchContext
from ..common.post_op import QuantizeParameter, constant_row, quantize_parameters

__all__ = [
    "MaxPool",
    "Node",
    "Pooled",
    "Product",
    "Quantizer",
    "Source",
    "Subgraph",
    "MAX_LEVEL",
    "find_subgraph",
    "LayerByLayer",
    "add_deferred",
]

Weights = TypeVar("Weights")
"""The constant filters of a convolution, in the form that a backend uses."""

MaxPool: TypeAlias = MaxPool1 | MaxPool8 | MaxPool14


@dataclass(frozen=True)
class Quantizer:
    """A FakeQuantize with scalar limits: ``value = scale * (level - zero)``.

    Args:
        parameters: its parameters, in the order of `QuantizeParameter`.
        scale: the difference of the values of two neighbouring levels.
        zero: the level of the value 0.
    """

    parameters: Array
    scale: float
    zero: int

    @property
    def steps(self) -> int:
        """The highest level."""
        return int(self.parameters[QuantizeParameter.STEPS])

    @property
    def low(self) -> float:
        """The input value of the lowest level."""
        return float(self.parameters[QuantizeParameter.LOW])

    @property
    def step(self) -> float:
        """The difference of the input values of two neighbouring levels."""
        return float(self.parameters[QuantizeParameter.WIDTH]) / self.steps

    def levels(self, x: Array) -> Array:
        """Return the levels of f32 values, as integral f32."""
        bottom, top, low, width, steps, *_ = self.parameters
        levels = x.clip(bottom, top)
        levels -= low
        levels /= width
        levels *= steps
        np.rint(levels, out=levels)
        return levels

    def level_of(self, bound: float) -> int:
        """Return the level of a value, which may be infinite."""
        return int(self.levels(np.array([bound], np.float32))[0])


@dataclass(eq=False)
class Source:
    """An input of the subgraph, and the quantizer that is applied to it."""

    port: Port
    shape: tuple[int, ...]
    quantizer: Quantizer
    layers: list[Layer] = field(default_factory=list)

    @property
    def reads(self) -> tuple[()]:
        """The nodes that it reads; empty."""
        return ()


@dataclass(eq=False)
class Product(Generic[Weights]):
    """A convolution of levels and its epilogue: scale, bias, bounds, quantizer, and an optional residual.

    Args:
        op: the convolution.
        data: the node of its data.
        weights: its constant filters.
        factor: a factor for each output channel.
        shift: added to each output channel after scaling.
        bounds: the range to which the result is clipped before it is quantized.
        first: the quantizer of the result.
        shape: the shape of the result.
        other: the residual, a node whose levels are added to the result, or ``None``.
        sum_bounds: the range to which the sum is clipped.
        last: the quantizer of the sum, or ``None``.
        layers: the layers that it computes, in order.
    """

    op: ForwardConvolution
    data: Node[Weights]
    weights: Weights
    factor: Array
    shift: Array
    bounds: tuple[float, float]
    first: Quantizer
    shape: tuple[int, ...]
    other: Node[Weights] | None = None
    sum_bounds: tuple[float, float] = (-np.inf, np.inf)
    last: Quantizer | None = None
    layers: list[Layer] = field(default_factory=list)

    @property
    def quantizer(self) -> Quantizer:
        """The quantizer of the result, after adding the residual if there is one."""
        return self.last or self.first

    @property
    def reads(self) -> tuple[Node[Weights], ...]:
        """The nodes that it reads: the data, then the residual if there is one."""
        return (self.data,) if self.other is None else (self.data, self.other)


@dataclass(eq=False)
class Pooled(Generic[Weights]):
    """Max pooling of levels."""

    op: MaxPool
    data: Node[Weights]
    shape: tuple[int, ...]
    layers: list[Layer] = field(default_factory=list)

    @property
    def quantizer(self) -> Quantizer:
        """The quantizer of the result, which is that of the data."""
        return self.data.quantizer

    @property
    def reads(self) -> tuple[Node[Weights], ...]:
        """The node that it reads."""
        return (self.data,)


Node: TypeAlias = Source | Product[Weights] | Pooled[Weights]


@dataclass(frozen=True)
class Subgraph(Generic[Weights]):
    """A quantized subgraph: its result, nodes and layers in topological order."""

    result: Node[Weights]
    nodes: tuple[Node[Weights], ...]
    layers: tuple[Layer, ...]


MAX_LEVEL = 255
# The largest deviation from an integer of the level of 0.
ZERO_TOLERANCE = 1e-3
# The recursion limit of the search; deeper values become inputs of the subgraph.
MAX_DEPTH = 64


class Kernels(Protocol[Weights]):
    """The support of a backend for operations in quantized subgraphs."""

    def weights(self, context: MatchContext, filters: Port, op: ForwardConvolution) -> Weights | None:
        """Return the constant filters of a convolution in the form of the backend, or ``None`` if unsupported."""

    def compute_pooling(self, op: MaxPool, data: Node[Weights]) -> bool:
        """Return whether a kernel supports this max pooling of levels."""

    def add_residual(self, op: ForwardConvolution) -> bool:
        """Return whether the kernel of a convolution can add a residual."""


def find_subgraph(context: MatchContext, layer: Layer, kernels: Kernels[Weights]) -> Subgraph[Weights] | None:
    """Return the quantized subgraph that ends with a FakeQuantize, or ``None`` if there is none that contains a convolution."""
    shared: set[Port] = set()
    while True:
        result = _Search(context, shared, kernels).levels(Port(layer.id, 0))
        nodes = () if result is None else tuple(_topological_order(result, set()))
        if result is None or not any(isinstance(node, Product) for node in nodes):
            return None
        layers = tuple(layer for node in nodes for layer in node.layers)
        escaping = _read_elsewhere(context, layers, layer)
        if not escaping:
            return Subgraph(result, nodes, layers)
        if escaping <= shared:
            return None
        shared |= escaping


def _topological_order(node: Node[Weights], seen: set[int]) -> Iterator[Node[Weights]]:
    """Yield a node after the nodes that it reads, each once, residuals before data.

    Residuals are cheap, so the convolution before a node takes long enough to prefetch the node's weights.
    """
    seen.add(id(node))
    for read in reversed(node.reads):
        if id(read) not in seen:
            yield from _topological_order(read, seen)
    yield node


def _read_elsewhere(context: MatchContext, layers: Sequence[Layer], last: Layer) -> set[Port]:
    """Return the output ports of all layers but the last that are also read outside."""
    inside = {layer.id for layer in layers}
    ports = (port for layer in layers if layer.id != last.id for port in layer.output_ports)
    readers = context.graph.readers
    return {port for port in ports if any(reader.layer not in inside for reader in readers(port))}


@dataclass
class _Affine:
    """The affine epilogue of a product: ``factor * x + shift`` for each channel."""

    factor: Array
    shift: Array


@dataclass
class _Search(Generic[Weights]):
    """Walks back from a FakeQuantize; ``shared`` ports become inputs of the subgraph."""

    context: MatchContext
    shared: set[Port]
    kernels: Kernels[Weights]
    known: dict[Port, Node[Weights] | None] = field(default_factory=dict)
    depth: int = 0

    def levels(self, port: Port) -> Node[Weights] | None:
        """Return the node that computes the levels of a port, or ``None`` if the port is not quantized."""
        if port not in self.known:
            self.depth += 1
            self.known[port] = self._levels(port)
            self.depth -= 1
        return self.known[port]

    def _levels(self, port: Port) -> Node[Weights] | None:
        layer, shape = self.context.graph[port.layer], self._shape(port)
        if shape is None or port.number:
            return None
        if isinstance(layer.op, MaxPool):
            return None if port in self.shared else self._match_pooling(layer, shape)
        quantizer = self._quantizer(layer)
        if quantizer is None:
            return None
        if port in self.shared or self.depth > MAX_DEPTH:
            return Source(port, shape, quantizer)
        data = self.context.sources(layer)[0]
        node: Node[Weights] | None = self._match_product(data, quantizer, shape) or self._match_sum(
            data, quantizer, shape
        )
        if node is None:
            node = Source(data, shape, quantizer)
        node.layers.append(layer)
        return node

    def _shape(self, port: Port) -> tuple[int, ...] | None:
        shape = self.context.value(port).shape
        return shape.static if shape.rank == 4 and shape.is_static and 0 not in shape.static else None

    def _quantizer(self, layer: Layer) -> Quantizer | None:
        if not isinstance(layer.op, FakeQuantize) or layer.op.levels > MAX_LEVEL + 1:
            return None
        ports = self.context.sources(layer)
        if self.context.value(ports[0]).known() is not None:
            return None
        parameters = quantize_parameters(layer.op, [self.context.value(port) for port in ports])
        if parameters is None or parameters[0].size != 1:
            return None
        numbers = parameters.reshape(-1)
        _, _, _, width, steps, span, first, *_ = numbers.astype(np.float64)
        if width <= 0 or span <= 0:
            return None
        zero = -first / (span / steps)
        if abs(zero - round(zero)) > ZERO_TOLERANCE or not 0 <= round(zero) <= steps:
            return None
        return Quantizer(numbers, span / steps, round(zero))

    def _match_pooling(self, layer: Layer, shape: tuple[int, ...]) -> Node[Weights] | None:
        op = layer.op
        assert isinstance(op, MaxPool)
        unread = all(not self.context.graph.readers(port) for port in layer.output_ports[1:])
        data = self.levels(self.context.sources(layer)[0]) if unread and len(op.kernel) == 2 else None
        if data is None or not self.kernels.compute_pooling(op, data):
            return None
        return Pooled(op, data, shape, [layer])

    def _sole_producer(self, port: Port) -> Layer | None:
        """Return the layer that produces a port if the port has a single reader, else ``None``."""
        layer = self.context.graph[port.layer]
        single = len(layer.outputs) == 1 and len(self.context.graph.readers(port)) == 1
        return layer if single and layer.op is not None and not self.context.value(port).is_known else None

    def _bounds(self, port: Port) -> tuple[Port, tuple[float, float], list[Layer]]:
        """Walk back over ReLU and Clamp; return the port before them, the bounds that they impose, and the layers."""
        low, high, layers = -np.inf, np.inf, []
        while (layer := self._sole_producer(port)) is not None and isinstance(layer.op, Clamp | ReLU):
            first, last = (layer.op.min, layer.op.max) if isinstance(layer.op, Clamp) else (0.0, np.inf)
            low, high = min(max(first, low), high), min(max(last, low), high)
            layers.append(layer)
            port = self.context.sources(layer)[0]
        return port, (low, high), layers

    def _match_product(
        self, port: Port, quantizer: Quantizer, shape: tuple[int, ...]
    ) -> Product[Weights] | None:
        start, bounds, layers = self._bounds(port)
        affine = _Affine(np.ones(shape[1]), np.zeros(shape[1]))
        while (layer := self._sole_producer(start)) is not None and isinstance(layer.op, Binary):
            step = self._affine(layer, affine)
            if step is None:
                return None
            layers.append(layer)
            start = step
        if layer is None or not isinstance(layer.op, Convolution | GroupConvolution):
            return None
        data, filters = self.context.sources(layer)
        weights = self.kernels.weights(self.context, filters, layer.op)
        node = None if weights is None else self.levels(data)
        if weights is None or node is None:
            return None
        return Product(
            layer.op, node, weights, affine.factor, affine.shift, bounds, quantizer, shape,
            layers=[layer, *reversed(layers)],
        )  # fmt: skip

    def _affine(self, layer: Layer, affine: _Affine) -> Port | None:
        """Merge a layer that scales or shifts each channel into ``affine``; return its data, or ``None`` if it does neither."""
        ports = self.context.sources(layer)
        values = [self.context.value(port) for port in ports]
        for place, other in ((0, 1), (1, 0)):
            if values[other].known() is None or values[place].known() is not None:
                continue
            row = constant_row(values[other], values[place], 1)
            if row is None or layer.op is None or not np.isfinite(row).all():
                return None
            if isinstance(layer.op, Multiply):
                affine.factor = affine.factor * row
            elif isinstance(layer.op, Add) or (isinstance(layer.op, Subtract) and place == 0):
                sign = 1 if isinstance(layer.op, Add) else -1
                affine.shift = affine.shift + sign * affine.factor * row
            else:
                return None
            return ports[place]
        return None

    def _match_sum(self, port: Port, quantizer: Quantizer, shape: tuple[int, ...]) -> Product[Weights] | None:
        start, bounds, layers = self._bounds(port)
        layer = self._sole_producer(start)
        if layer is None or not isinstance(layer.op, Add) or layer.op.auto_broadcast != "numpy":
            return None
        ports = self.context.sources(layer)
        for own, other in (ports, ports[::-1]):
            product = self._match_own_product(own, shape)
            added = None if product is None or self._shape(other) != shape else self.levels(other)
            if product is not None and added is not None:
                product.layers += [self.context.graph[own.layer], layer, *reversed(layers)]
                product.other, product.sum_bounds, product.last = added, bounds, quantizer
                return product
        return None

    def _match_own_product(self, port: Port, shape: tuple[int, ...]) -> Product[Weights] | None:
        """Return the product that computes a port with a single reader, or ``None``."""
        layer = self._sole_producer(port)
        quantizer = None if layer is None or port in self.shared else self._quantizer(layer)
        if layer is None or quantizer is None or self._shape(port) != shape:
            return None
        product = self._match_product(self.context.sources(layer)[0], quantizer, shape)
        return product if product is not None and self.kernels.add_residual(product.op) else None


class LayerByLayer:
    """A function that evaluates layers one by one, which defines what a fused kernel computes."""

    def __init__(self, context: MatchContext, layers: Sequence[Layer], reads: Sequence[Port]) -> None:
        self._reads = reads
        self._layers = [(layer, context.sources(layer)) for layer in layers]

    def __call__(self, *arrays: Array) -> Array:
        """Evaluate the layers on arrays in the order of ``reads``; return the first output of the last layer."""
        values: dict[Port, Array] = dict(zip(self._reads, arrays, strict=True))
        for layer, sources in self._layers:
            assert layer.op is not None
            result: Array | tuple[Array, ...] = layer.op.evaluate(*(values[source] for source in sources))
            values[Port(layer.id, 0)] = result[0] if isinstance(result, tuple) else result
        return values[Port(self._layers[-1][0].id, 0)]


def add_deferred(context: MatchContext, layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Return fused layers, preceded by the layers that dequantize weights which no other layer reads.

    These weights are then computed only if the layers run one by one.
    """
    inside = {layer.id for layer in layers}
    ports = dict.fromkeys(port for layer in layers for port in context.sources(layer))
    alone = (port for port in ports if all(user.layer in inside for user in context.graph.readers(port)))
    values = map(context.value, alone)
    deferred = [layer for value in values if isinstance(value, DeferredValue) for layer in value.layers]
    return (*deferred, *layers)
