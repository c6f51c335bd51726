"""Emulate lower precisions: the layers that each one affects, and their computation.

The layers of a quantized model are computed with and without quantization. Without it, FakeQuantize is skipped, and the
weights of the original model are used. If there is no original, weights are drawn at random from the values that round
to the stored ones, which gives errors of the right size.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Protocol

import numpy as np

from .._util.forks import cached_property
from ..analysis.infer import Inferred
from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.evaluation import evaluate_layer
from ..ir.graph import IO_TYPES, Graph, Layer, Port
from ..ir.tensor import Array
from ..openvino.model import Model
from ..opset13 import constant
from .precision import is_move, rounding_to
from .reference import Change
from .spilling import keep_copy, tensors
from .tensors import computed_layers, end_of_node, is_float
from .terms import PRODUCTS, RECURRENT
from .verdict import error_of

__all__ = ["BITS", "PER_CHANNEL", "PRECISIONS", "STORED", "Scheme", "StoredModel", "scheme_of"]

_EIGHT_BITS = "w8a8"
"""Weights and activations of 8 bits."""
BITS = {"int8": 8, "int4": 4}
"""Bits of a weight, by precision."""
_GROUP = 128
"""Default group size of int4."""
PER_CHANNEL = -1
"""Group size that stands for a whole channel, as in NNCF."""
PRECISIONS = ("bf16", "f16", *BITS, _EIGHT_BITS)
"""Precisions that are emulated for models in f32."""


class Scheme(Protocol):
    """A lower precision applied to the layers of one model."""

    @property
    def layers(self) -> Sequence[Layer]:
        """The layers that the precision affects."""
        ...

    def calibrate(self, layer: Layer, inputs: Sequence[Array], batch: int) -> None:
        """Collect the ranges of a layer's inputs in the exact run.

        Args:
            layer: the layer.
            inputs: its inputs.
            batch: the number of examples per run.
        """

    def change(self, layers: Collection[int]) -> Change:
        """Return a `Change` that computes the layers of these ids in the lower precision."""
        ...


def scheme_of(to: str, graph: Graph, types: Inferred, group: int | None) -> Scheme:
    """Return the scheme of a lower precision for a model.

    Args:
        to: one of `PRECISIONS`.
        graph: the layers of the model.
        types: the inferred values of the model.
        group: the number of weights per scale; by default 128 in int4, a whole channel in int8.
    """
    if to in BITS:
        default = _GROUP if to == "int4" else PER_CHANNEL
        return _StoredWeights(graph, types, BITS[to], default if group is None else group)
    return _EightBits(graph, types) if to == _EIGHT_BITS else _Rounded(graph, to)


def _shift_outputs(
    layer: Layer, inputs: Sequence[Array], changed: Sequence[Array], outputs: tuple[Array, ...]
) -> tuple[Array, ...]:
    """Shift outputs by the effect that changed inputs have in the reference implementation of a layer.

    The kernel that computed the outputs is not run again, as it may have prepacked constant inputs.
    """
    if all(new is old for new, old in zip(changed, inputs, strict=True)):
        return outputs
    with np.errstate(all="ignore"):
        return tuple(
            np.where(after == before, output, output + (after - before))
            for before, after, output in zip(
                evaluate_layer(layer, inputs), evaluate_layer(layer, changed), outputs, strict=True
            )
        )


def _changing_ids(graph: Graph) -> set[int]:
    """Return the ids of the layers that depend on the model inputs."""
    return {layer.id for layer in (*computed_layers(graph), *graph.of_type("Parameter"))}


def _constants(graph: Graph, changing: Collection[int], layer: Layer) -> list[bool]:
    """Return whether each input of a layer is constant."""
    return [source.layer not in changing for source in graph.reads(layer)]


def _products(graph: Graph) -> list[Layer]:
    return [layer for layer in computed_layers(graph) if layer.type in (*PRODUCTS, *RECURRENT)]


class _Rounded:
    """The schemes bf16 and f16: the inputs of products are rounded, and the outputs of their execution nodes."""

    def __init__(self, graph: Graph, to: str) -> None:
        changing = _changing_ids(graph)
        self.layers = _products(graph)
        self._ends = {layer.id: end_of_node(graph, layer, changing) for layer in self.layers}
        self._rounded = rounding_to(to)

    def calibrate(self, layer: Layer, inputs: Sequence[Array], batch: int) -> None:
        """Do nothing: no calibration is needed."""

    def change(self, layers: Collection[int]) -> Change:
        """Return a `Change` that rounds the inputs of these layers, and the output of the execution node of each.

        The execution node is the layer with the bias and activation that a runtime fuses into it (`end_of_node`).
        """
        ends = {self._ends[layer] for layer in layers}

        def change(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            if layer.id in layers:
                outputs = _shift_outputs(layer, inputs, [self._rounded(array) for array in inputs], outputs)
            return tuple(
                self._rounded(array) if port in ends else array
                for port, array in zip(layer.output_ports, outputs, strict=False)
            )

        return change


def _change_inputs(layers: Collection[int], changed: Callable[[Layer, int, Array], Array]) -> Change:
    """Return a `Change` that recomputes layers from changed inputs.

    Args:
        layers: the ids of the layers.
        changed: takes a layer, the number of an input, and its array; returns the same array object if unchanged.
    """

    def change(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if layer.id not in layers or layer.op is None:
            return outputs
        return _shift_outputs(
            layer, inputs, [changed(layer, i, array) for i, array in enumerate(inputs)], outputs
        )

    return change


class _StoredWeights:
    """The schemes int8 and int4: constant weights are quantized as by NNCF's ``compress_weights``."""

    def __init__(self, graph: Graph, types: Inferred, bits: int, group: int) -> None:
        changing = _changing_ids(graph)
        products = _products(graph)
        self._constant = {layer.id: _constants(graph, changing, layer) for layer in products}
        self._bits, self._group = bits, group
        self.layers = [
            layer
            for layer in products
            if any(
                constant and _may_be_weights(graph, types, layer, index)
                for index, constant in enumerate(self._constant[layer.id])
            )
        ]

    def calibrate(self, layer: Layer, inputs: Sequence[Array], batch: int) -> None:
        """Do nothing: no calibration is needed."""

    def change(self, layers: Collection[int]) -> Change:
        """Return a `Change` that recomputes layers with quantized weights."""

        def changed(layer: Layer, index: int, array: Array) -> Array:
            if not (self._constant[layer.id][index] and _is_weights(layer, index, array)):
                return array
            return _quantize_weights(layer, index, array, self._bits, self._group)

        return _change_inputs(layers, changed)


def _may_be_weights(graph: Graph, types: Inferred, layer: Layer, index: int) -> bool:
    """Return whether an input of a layer has the type and the rank of weights."""
    shape = types[graph.reads(layer)[index]].shape
    rank = 2 if shape.rank is None else shape.rank
    return _is_weights(layer, index, np.empty((1,) * rank, np.float32))


_STEPS = 255
"""The number of steps between the levels of an 8-bit activation."""
_WEIGHT_STEPS = 254
"""The number of steps between the levels of an 8-bit weight, which are symmetric around zero."""
_LEAST_OF_CHANNELS, _LEAST = 0.01, 8e-5
"""The smallest range of a channel in NNCF: as a fraction of the largest range, and absolute."""

_ON_DATA = (
    "AvgPool", "GroupNormalization", "Interpolate", "MVN", "NormalizeL2", "ReduceL2", "ReduceMean", "ReduceSum",
)  # fmt: skip
"""Operations without weights whose first input NNCF quantizes."""
_ON_TWO = ("Add", "Divide", "Maximum", "Minimum", "Multiply", "Subtract")
"""Operations whose operands NNCF quantizes if neither is constant."""
_ATTENTION = "ScaledDotProductAttention"
_SEQUENCES = ("GRUSequence", "LSTMSequence")
_SEQUENCE_DATA = ("x", "initial_hidden_state")


@dataclass
class _Range:
    """The range of an activation, collected per example."""

    by_channel: bool
    """Whether each channel has its own range."""
    lows: list[Array] = field(default_factory=list)
    highs: list[Array] = field(default_factory=list)

    def limits(self) -> tuple[Array, Array]:
        """Return the lower and upper limits: symmetric ones, or a lower limit of 0 if no value is negative.

        Over examples, limits per tensor are averaged; limits per channel are maximized. Very small upper limits are raised as in NNCF.
        """
        lows, highs = np.stack(self.lows), np.stack(self.highs)
        high = highs.max(0) if self.by_channel else highs.mean(0)
        high = np.maximum(high, max(float(high.max()) * _LEAST_OF_CHANNELS, _LEAST))
        low = -high * ((_STEPS + 1) / (_STEPS - 1)) if (lows < 0).any() else np.zeros_like(high)
        return low, high


class _EightBits:
    """The scheme w8a8: weights are quantized to 8 bits per channel, activations per tensor, as by NNCF's ``quantize``.

    NNCF quantizes the inputs of each layer that is not ignored, so a layer in f32 reads unquantized tensors. Weights of the
    first quantized convolution use half of the integer range, to avoid saturation on processors without VNNI.
    """

    def __init__(self, graph: Graph, types: Inferred) -> None:
        changing = _changing_ids(graph)
        self._graph = graph
        self._weights: dict[int, set[int]] = {}
        self._data: dict[int, set[int]] = {}
        self.layers: list[Layer] = []
        self._ranges: dict[tuple[int, int], _Range] = {}
        for layer in computed_layers(graph):
            constant = _constants(graph, changing, layer)
            data = {
                index
                for index, port in enumerate(graph.reads(layer))
                if not constant[index]
                and is_float(types, port)
                and _is_quantized_data(layer, index, constant)
            }
            weights = {
                index
                for index, is_constant in enumerate(constant)
                if is_constant
                and layer.type in (*PRODUCTS, *_SEQUENCES)
                and _may_be_weights(graph, types, layer, index)
            }
            if data:
                self.layers.append(layer)
                self._weights[layer.id], self._data[layer.id] = weights, data

    def calibrate(self, layer: Layer, inputs: Sequence[Array], batch: int) -> None:
        """Collect the range of each activation."""
        for index in self._data.get(layer.id, ()):
            array = inputs[index]
            if not np.isfinite(array).all() or not array.size:  # no range has levels for an infinite mask
                continue
            by_channel = layer.type == "GroupConvolution" and inputs[1].shape[2] == 1
            range_ = self._ranges.setdefault((layer.id, index), _Range(by_channel))
            by_rows = batch > 1 and array.ndim > 1 and len(array) == batch
            for part in np.split(array, batch) if by_rows else [array]:
                axes = tuple(axis for axis in range(part.ndim) if not by_channel or axis != 1)
                range_.lows.append(np.asarray(part.min(axes, keepdims=True)))
                range_.highs.append(np.asarray(np.abs(part).max(axes, keepdims=True)))

    def change(self, layers: Collection[int]) -> Change:
        """Return a `Change` that recomputes layers from quantized weights and activations."""
        limits: dict[tuple[int, int], tuple[Array, Array]] = {}
        # A single layer is measured as in the whole model: only the first convolution of the model gets half of the range.
        first = _first_convolutions(self._graph, layers if len(layers) > 1 else self._data)

        def changed(layer: Layer, index: int, array: Array) -> Array:
            if index in self._weights[layer.id] and _is_weights(layer, index, array):
                return self._quantize_to_eight_bits(layer, index, array, layer.id in first)
            key = layer.id, index
            if index not in self._data[layer.id] or key not in self._ranges:
                return array
            if key not in limits:
                limits[key] = self._ranges[key].limits()
            low, high = limits[key]
            return _fake_quantize(array, low.astype(array.dtype), high.astype(array.dtype), _STEPS)

        return _change_inputs(layers, changed)

    def _quantize_to_eight_bits(self, layer: Layer, index: int, weights: Array, is_first: bool) -> Array:
        high = _largest(weights, _channel_axes(layer, index, weights.ndim))
        high = np.maximum(high, max(float(high.max()) * _LEAST_OF_CHANNELS, _LEAST))
        high = 2 * high if is_first else high
        return _fake_quantize(weights, -high, high, _WEIGHT_STEPS)


def _is_quantized_data(layer: Layer, index: int, constant: Sequence[bool]) -> bool:
    """Return whether NNCF quantizes a non-constant input of a layer."""
    if layer.type in _SEQUENCES:
        port = type(layer.op).port_of(index)  # type: ignore[union-attr]
        reset_last = vars(layer.op).get("linear_before_reset")
        return not reset_last and port is not None and port.name in _SEQUENCE_DATA
    if layer.type in _ON_TWO:
        return not any(constant)
    if layer.type == _ATTENTION:
        return index < 3  # query, key and value; not the mask
    return layer.type in PRODUCTS or (layer.type in _ON_DATA and index == 0)


def _first_convolutions(graph: Graph, quantized: Collection[int]) -> set[int]:
    """Return the ids of the first quantized convolutions on paths from the model inputs."""
    first: set[int] = set()
    reached = {layer.id for layer in graph.of_type("Parameter")}
    for layer in graph:
        if any(source.layer in reached for source in graph.reads(layer)):
            if layer.type == "Convolution" and layer.id in quantized:
                first.add(layer.id)
            else:
                reached.add(layer.id)
    return first


_CHANNEL_AXES = {
    "Convolution": (0,),
    "ConvolutionBackpropData": (1,),
    "GroupConvolution": (0, 1),
    "GroupConvolutionBackpropData": (0, 2),
}
_RECURRENT_WEIGHTS = ("w", "r")


def _is_weights(layer: Layer, index: int, array: Array) -> bool:
    """Return whether a constant input of a layer is a weight tensor."""
    if array.ndim < 2 or array.dtype.kind != "f" or not array.size or layer.op is None:
        return False
    if layer.type in RECURRENT:
        port = type(layer.op).port_of(index)
        return port is not None and port.name in _RECURRENT_WEIGHTS
    return layer.type in PRODUCTS and index < 2


def _channel_axes(layer: Layer, index: int, rank: int) -> tuple[int, ...]:
    """Return the axes of weights that have separate scales: all except reduced ones."""
    if layer.type == "MatMul":
        transposed = vars(layer.op)["transpose_b" if index else "transpose_a"]
        summed = rank - 1 if transposed == bool(index) else rank - 2
        return tuple(axis for axis in range(rank) if axis != summed)
    if layer.type in RECURRENT:
        return tuple(range(rank - 1))
    return _CHANNEL_AXES[layer.type]


def _quantize_weights(layer: Layer, index: int, weights: Array, bits: int, group: int = PER_CHANNEL) -> Array:
    """Quantize and dequantize weights, with a scale and a zero point per group.

    Args:
        layer: the layer that reads the weights.
        index: the number of the input.
        weights: the weights.
        bits: the width of the integers.
        group: the number of weights per scale; `PER_CHANNEL` for a whole channel.
    """
    axes = _channel_axes(layer, index, weights.ndim)
    first = np.moveaxis(weights, axes, range(len(axes)))
    rows = first.reshape(*first.shape[: len(axes)], -1)
    stored = np.empty_like(rows)
    size = rows.shape[-1] if group == PER_CHANNEL else group
    for start in range(0, rows.shape[-1], size):
        stored[..., start : start + size] = _rounded(rows[..., start : start + size], (1 << bits) - 1)
    return np.asarray(np.moveaxis(stored.reshape(first.shape), range(len(axes)), axes))


def _rounded(part: Array, steps: int) -> Array:
    """Round the values of each row to a grid of ``steps`` equal steps over the range of the row, extended to include zero."""
    low, high = np.minimum(part.min(-1, keepdims=True), 0), np.maximum(part.max(-1, keepdims=True), 0)
    scale = np.where(high > low, (high - low) / steps, 1)
    zero = np.rint(-low / scale)
    return np.asarray((np.clip(np.rint(part / scale) + zero, 0, steps) - zero) * scale)


def _fake_quantize(array: Array, low: Array, high: Array, steps: int) -> Array:
    """Clip values to limits, and round them to a grid of ``steps`` equal steps between the limits."""
    span = np.where(high > low, high - low, 1)
    level = np.rint((np.clip(array, low, high) - low) / span * steps)
    return np.asarray(level / steps * span + low).astype(array.dtype)


def _largest(array: Array, kept: Sequence[int]) -> Array:
    """Return the largest magnitude over all axes except `kept`, keeping reduced axes with length 1."""
    others = tuple(axis for axis in range(array.ndim) if axis not in kept)
    return np.asarray(np.abs(array).max(others, keepdims=True))


STORED = "stored"
"""The name of the scheme that a quantized model already has."""
_SEED = 0
_MOST_BITS = 8
_MOST_OFF = 0.7
"""The largest relative error that quantizing weights may cause: with two bits, it is about one half."""
_CHAIN = ("Convert", "Multiply", "Subtract", "Divide", "Add")
"""Operations that decompress weights, in addition to those that move elements."""


@dataclass
class _Unit:
    """The quantized inputs of a layer."""

    weights: dict[int, Port] = field(default_factory=dict)
    """The keys of the stored weights, by input number."""
    activations: dict[int, Layer] = field(default_factory=dict)
    """The FakeQuantize of each activation, by input number."""


class _Constants:
    """Computes the constant tensors of a model.

    Args:
        model: the model.
    """

    def __init__(self, model: Model) -> None:
        runnable = model._runnable()
        self.graph, self.types = runnable._graph, runnable._values

    def of(self, port: Port, replaced: Mapping[Port, Array] | None = None) -> Array:
        """Compute a constant tensor, with the arrays of ``replaced`` in place of tensors that it is computed from."""
        if replaced and port in replaced:
            return replaced[port]
        layer = self.graph[port.layer]
        assert layer.op is not None
        if layer.type == "Constant":
            return np.asarray(layer.op.evaluate())
        sources = self.graph.reads(layer)
        elements = [self.types[source].element for source in sources]
        return evaluate_layer(layer, [self.of(source, replaced) for source in sources], elements)[port.number]

    @cached_property
    def _layers(self) -> Mapping[str, Layer]:
        return {layer.name: layer for layer in reversed(self.graph.order)}

    @cached_property
    def _computed(self) -> Collection[int]:
        return {layer.id for layer in (*computed_layers(self.graph), *self.graph.of_type("Parameter"))}

    def input_of(self, name: str, index: int) -> Array | None:
        """Return the constant input of a layer, by name; ``None`` if there is no such input or it is not constant."""
        ports = self.graph.reads(self._layers[name]) if name in self._layers else ()
        if index >= len(ports) or ports[index].layer in self._computed:
            return None
        return self.of(ports[index])


class StoredModel:
    """A quantized model split into a floating-point model and the quantization of each layer.

    Args:
        model: the quantized model; it is not changed.
        original: the model before quantization, whose layers have the same names.

    Raises:
        InputError: if a layer of the original is missing, or has other weights.
    """

    def __init__(self, model: Model, original: Model | None = None) -> None:
        self._original = None if original is None else _Constants(original)
        self._values = _Constants(model)
        self._graph, self._types = self._values.graph, self._values.types
        self._kept, self._limits = tensors(), dict[int, list[Array]]()
        self._units: dict[str, _Unit] = {}
        self._shared: dict[str, set[str]] = {}
        self._computed = {
            layer.id for layer in (*computed_layers(self._graph), *self._graph.of_type("Parameter"))
        }
        self.model = model.clone()
        """The model with floating-point weights; its FakeQuantize layers are skipped by a `Change`."""
        self._nodes = {node.get_friendly_name(): node for node in self.model.get_ordered_ops()}
        for layer in computed_layers(self._graph):
            if not is_move(layer) and layer.type not in (*IO_TYPES, "FakeQuantize", "MaxPool", *_JOINING):
                self._add(layer)

    @property
    def is_quantized(self) -> bool:
        """Whether any layer is quantized."""
        return bool(self._units)

    def scheme(self, graph: Graph) -> StoredLayers:
        """Return the stored quantization as a scheme for the floating-point model.

        Args:
            graph: the graph of `model`.
        """
        return StoredLayers(graph, self._units, self._shared, self._kept, self._limits)

    def _add(self, layer: Layer) -> None:
        unit = _Unit()
        for index, port in enumerate(self._graph.reads(layer)):
            if port.layer not in self._computed:
                if (source := self._find_quantized(port)) is not None:
                    unit.weights[index] = self._replace(layer, index, port, source)
                continue
            quantizers = list(self._quantizers(port))
            if len(quantizers) == 1 and quantizers[0][1]:
                unit.activations[index] = quantizers[0][0]
            for quantizer, is_direct in quantizers:
                readers = self._shared.setdefault(quantizer.name, set())
                if len(quantizers) > 1 or not is_direct:
                    readers.add(layer.name)
                if quantizer.id not in self._limits:
                    self._limits[quantizer.id] = [
                        self._values.of(port) for port in self._graph.reads(quantizer)[1:]
                    ]
                self._units.setdefault(layer.name, unit)
        if unit.weights:
            self._units.setdefault(layer.name, unit)

    def _quantizers(self, port: Port, is_direct: bool = True) -> Iterator[tuple[Layer, bool]]:
        """Yield each FakeQuantize upstream of a tensor, and whether it commutes with the layers in between."""
        layer = self._graph[port.layer]
        sources = self._graph.reads(layer)
        if layer.type == "FakeQuantize":
            if all(source.layer not in self._computed for source in sources[1:]):
                yield layer, is_direct or all(self._values.of(source).size == 1 for source in sources[1:])
        elif layer.type in _JOINING:
            for source in sources:
                for quantizer, _ in self._quantizers(source, False):
                    yield quantizer, False
        elif (is_move(layer) or layer.type == "MaxPool") and sources and sources[0].layer in self._computed:
            yield from self._quantizers(sources[0], False)

    def _find_quantized(self, port: Port) -> Port | None:
        """Return the tensor upstream of constant weights that has the quantized values; ``None`` if weights are not quantized."""
        while True:
            layer = self._graph[port.layer]
            sources = self._graph.reads(layer)
            if layer.type == "FakeQuantize":
                return port
            if layer.type == "Convert" and self._graph[sources[0].layer].type == "Constant":
                element = self._types[sources[0]].element
                has_few_bits = element is not None and element.bits <= _MOST_BITS
                return port if has_few_bits and element is not ElementType.boolean else None
            if not sources or not (is_move(layer) or layer.type in _CHAIN):
                return None
            port = max(sources, key=self._count)

    def _count(self, port: Port) -> int:
        """Return the number of elements of a constant tensor."""
        return prod(dim.min for dim in self._types[port].shape)

    def _replace(self, layer: Layer, index: int, port: Port, source: Port) -> Port:
        """Replace the weights of a layer by floating-point ones, and keep the stored weights; return the port under which they are kept.

        Args:
            layer: the layer that reads the weights.
            index: the number of the input.
            port: the tensor that the input reads.
            source: the tensor with the quantized values, from which ``port`` is computed.
        """
        stored = self._values.of(port)
        if self._original is not None:
            weights = _original_weights(self._original, layer, index, stored)
        else:
            before = self._graph[source.layer]
            read = self._graph.reads(before)[0]
            numbers = (
                self._values.of(read)
                if before.type == "FakeQuantize"
                else _before_rounding(self._values.of(source), self._types[read].element)
            )
            weights = self._values.of(port, {source: numbers})
        node = self._nodes[layer.name]
        node.input(index).replace_source_output(constant(weights.astype(stored.dtype)).output(0))
        key = Port(layer.id, index)
        keep_copy(self._kept, key, stored)
        return key


_JOINING = ("Concat",)


def _original_weights(original: _Constants, layer: Layer, index: int, stored: Array) -> Array:
    """Return the weights of a layer from the original model.

    Raises:
        InputError: if it has no such weights, or they differ by more than rounding.
    """
    weights = original.input_of(layer.name, index)
    hint = "without the original, weights are estimated from what is stored"
    if weights is None or weights.shape != stored.shape:
        raise InputError(
            f"the original has no layer {layer.name!r} with weights {list(stored.shape)}",
            code=Code.NO_SUCH_NAME,
            hint=hint,
        )
    if (off := error_of(stored, weights.astype(np.float64)).relative) > _MOST_OFF:
        raise InputError(
            f"layer {layer.name!r} has other weights in the original: {off:.0%} off, more than by rounding",
            code=Code.BAD_REQUEST,
            hint=hint,
        )
    return weights


def _before_rounding(numbers: Array, element: ElementType | None) -> Array:
    """Draw random values that round to the given values of an element type."""
    random = np.random.default_rng(_SEED)
    part = random.uniform(-0.5, 0.5, numbers.shape)
    exact = numbers.astype(np.float32)
    if element is not None and element.integral:
        return np.asarray(exact + part, np.float32)
    levels = np.unique(exact)
    if len(levels) < 2:
        return exact
    steps = np.diff(levels)
    below, above = np.concatenate([steps[:1], steps]), np.concatenate([steps, steps[-1:]])
    places = np.searchsorted(levels, exact)
    return np.asarray(exact + part * np.where(part < 0, below[places], above[places]), np.float32)


class StoredLayers:
    """The scheme of a quantized model: its own quantization.

    Args:
        graph: the graph of the model in floating point.
        units: the quantized inputs of layers, by layer name.
        shared: for each FakeQuantize, by name, the layers that cannot apply it to their own inputs.
        kept: the stored weights, by layer and input.
        limits: the limits of each FakeQuantize, by layer id.
    """

    def __init__(
        self,
        graph: Graph,
        units: Mapping[str, _Unit],
        shared: Mapping[str, Collection[str]],
        kept: Mapping[Port, Array],
        limits: Mapping[int, Sequence[Array]],
    ) -> None:
        self._units, self._shared, self._kept, self._limits = units, shared, kept, limits
        self.layers = [layer for layer in computed_layers(graph) if layer.name in units]
        self._names = {layer.id: layer.name for layer in self.layers}

    def calibrate(self, layer: Layer, inputs: Sequence[Array], batch: int) -> None:
        """Do nothing: the ranges are stored in the model."""

    def change(self, layers: Collection[int]) -> Change:
        """Return a `Change` that quantizes these layers, and skips FakeQuantize elsewhere."""
        names = {self._names[id] for id in layers}

        def change(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            if layer.type == "FakeQuantize":
                readers = self._shared.get(layer.name)
                return outputs if readers is None or not names.isdisjoint(readers) else (inputs[0],)
            if layer.name not in names:
                return outputs
            unit = self._units[layer.name]
            arrays = list(inputs)
            for index, key in unit.weights.items():
                arrays[index] = self._kept[key]
            for index, quantizer in unit.activations.items():
                arrays[index] = evaluate_layer(quantizer, [inputs[index], *self._limits[quantizer.id]])[0]
            return _shift_outputs(layer, inputs, arrays, outputs)

        return change
