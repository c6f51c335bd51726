"""Lower precisions: the layers that they change, and the emulation of these layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..analysis.infer import Inferred
from ..ir.evaluation import evaluate_layer
from ..ir.graph import Graph, Layer
from ..ir.tensor import Array
from .precision import rounding_to
from .reference import Change
from .tensors import computed_layers, end_of_node, is_float
from .terms import PRODUCTS, RECURRENT

__all__ = [
    "EIGHT_BITS",
    "PRECISIONS",
    "Scheme",
    "moved",
    "scheme_of",
    "BITS",
    "GROUP",
    "PER_CHANNEL",
    "channel_axes",
    "fake_quantize",
    "is_weights",
    "largest",
    "rounded_weights",
]

EIGHT_BITS = "w8a8"
"""Weights and activations of 8 bits."""
BITS = {"int8": 8, "int4": 4}
"""Bits of a weight, by precision."""
GROUP = 128
"""Default group size of int4."""
PER_CHANNEL = -1
"""Group size that stands for a whole channel, as in NNCF."""
PRECISIONS = ("bf16", "f16", *BITS, EIGHT_BITS)
"""Precisions that are emulated for models in f32."""


class Scheme(Protocol):
    """A lower precision for the layers of one model."""

    @property
    def layers(self) -> Sequence[Layer]:
        """The layers that it changes."""
        ...

    def calibrate(self, layer: Layer, inputs: Sequence[Array], batch: int) -> None:
        """Collect the ranges of the inputs of a layer in the exact run.

        Args:
            layer: the layer.
            inputs: its inputs.
            batch: examples per run.
        """

    def change(self, layers: Collection[int]) -> Change:
        """Return a change that computes some layers, by id, in the lower precision."""
        ...


def scheme_of(to: str, graph: Graph, types: Inferred, group: int | None) -> Scheme:
    """Return a lower precision for a model.

    Args:
        to: one of `PRECISIONS`.
        graph: the layers of the model.
        types: what was inferred about them.
        group: weights that share a scale; by default 128 in int4, a channel in int8.
    """
    if to in BITS:
        default = GROUP if to == "int4" else PER_CHANNEL
        return _StoredWeights(graph, types, BITS[to], default if group is None else group)
    return _EightBits(graph, types) if to == EIGHT_BITS else _Rounded(graph, to)


def moved(
    layer: Layer, inputs: Sequence[Array], changed: Sequence[Array], outputs: tuple[Array, ...]
) -> tuple[Array, ...]:
    """Shift outputs by the effect of changed inputs on the definition of a layer.

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


def _changing(graph: Graph) -> set[int]:
    """Return the ids of the layers that depend on the inputs of the model."""
    return {layer.id for layer in (*computed_layers(graph), *graph.of_type("Parameter"))}


def _constants(graph: Graph, changing: Collection[int], layer: Layer) -> list[bool]:
    """Return for each input of a layer whether it is constant."""
    return [source.layer not in changing for source in graph.reads(layer)]


def _products(graph: Graph) -> list[Layer]:
    return [layer for layer in computed_layers(graph) if layer.type in (*PRODUCTS, *RECURRENT)]


class _Rounded:
    """bf16 or f16: the inputs of products are rounded, and the outputs of their nodes."""

    def __init__(self, graph: Graph, to: str) -> None:
        changing = _changing(graph)
        self.layers = _products(graph)
        self._ends = {layer.id: end_of_node(graph, layer, changing) for layer in self.layers}
        self._rounded = rounding_to(to)

    def calibrate(self, layer: Layer, inputs: Sequence[Array], batch: int) -> None:
        """No calibration needed."""

    def change(self, layers: Collection[int]) -> Change:
        """Return a change that rounds the inputs of layers and the outputs of their nodes."""
        ends = {self._ends[layer] for layer in layers}

        def change(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            if layer.id in layers:
                outputs = moved(layer, inputs, [self._rounded(array) for array in inputs], outputs)
            return tuple(
                self._rounded(array) if port in ends else array
                for port, array in zip(layer.output_ports, outputs, strict=False)
            )

        return change


def _changing_inputs(layers: Collection[int], changed: Callable[[Layer, int, Array], Array]) -> Change:
    """Return a change that computes some layers from changed inputs.

    Args:
        layers: their ids.
        changed: takes a layer, the number of an input, and its array; returns the same array if unchanged.
    """

    def change(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if layer.id not in layers or layer.op is None:
            return outputs
        return moved(layer, inputs, [changed(layer, i, array) for i, array in enumerate(inputs)], outputs)

    return change


class _StoredWeights:
    """int8 or int4: constant weights are quantized as by NNCF's `compress_weights`."""

    def __init__(self, graph: Graph, types: Inferred, bits: int, group: int) -> None:
        changing = _changing(graph)
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
        """No calibration needed."""

    def change(self, layers: Collection[int]) -> Change:
        """Return a change that recomputes layers with quantized weights."""

        def changed(layer: Layer, index: int, array: Array) -> Array:
            if not (self._constant[layer.id][index] and is_weights(layer, index, array)):
                return array
            return rounded_weights(layer, index, array, self._bits, self._group)

        return _changing_inputs(layers, changed)


def _may_be_weights(graph: Graph, types: Inferred, layer: Layer, index: int) -> bool:
    """Return whether an input of a layer has the type and the rank of weights."""
    shape = types[graph.reads(layer)[index]].shape
    rank = 2 if shape.rank is None else shape.rank
    return is_weights(layer, index, np.empty((1,) * rank, np.float32))


_STEPS = 255
"""Levels of an activation of 8 bits, less one."""
_WEIGHT_STEPS = 254
"""Levels of a weight, symmetric around zero, less one."""
_LEAST_OF_CHANNELS, _LEAST = 0.01, 8e-5
"""Smallest range of a channel in NNCF: this part of the largest range, but at least this."""

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
    """The range of an activation in each example."""

    by_channel: bool
    """Whether each channel has its own range."""
    lows: list[Array] = field(default_factory=list)
    highs: list[Array] = field(default_factory=list)

    def limits(self) -> tuple[Array, Array]:
        """Return symmetric limits, or limits from zero if no number is negative.

        Per tensor: the mean over examples; per channel: the maximum.
        """
        lows, highs = np.stack(self.lows), np.stack(self.highs)
        high = highs.max(0) if self.by_channel else highs.mean(0)
        high = np.maximum(high, max(float(high.max()) * _LEAST_OF_CHANNELS, _LEAST))
        low = -high * ((_STEPS + 1) / (_STEPS - 1)) if (lows < 0).any() else np.zeros_like(high)
        return low, high


class _EightBits:
    """Weights and activations of 8 bits, quantized as by NNCF's `quantize`: weights per channel, activations per tensor.

    NNCF quantizes the inputs of each layer that it does not ignore, so a layer in f32 reads unquantized tensors. Weights of
    the first quantized convolution use half of their range, against saturation on processors without VNNI.
    """

    def __init__(self, graph: Graph, types: Inferred) -> None:
        changing = _changing(graph)
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
        """Return a change that recomputes layers from quantized weights and activations."""
        limits: dict[tuple[int, int], tuple[Array, Array]] = {}
        # A layer alone is measured as it is among the others: only the first convolution has half of the range.
        first = _first_convolutions(self._graph, layers if len(layers) > 1 else self._data)

        def changed(layer: Layer, index: int, array: Array) -> Array:
            if index in self._weights[layer.id] and is_weights(layer, index, array):
                return self._in_eight_bits(layer, index, array, layer.id in first)
            key = layer.id, index
            if index not in self._data[layer.id] or key not in self._ranges:
                return array
            if key not in limits:
                limits[key] = self._ranges[key].limits()
            low, high = limits[key]
            return fake_quantize(array, low.astype(array.dtype), high.astype(array.dtype), _STEPS)

        return _changing_inputs(layers, changed)

    def _in_eight_bits(self, layer: Layer, index: int, weights: Array, is_first: bool) -> Array:
        high = largest(weights, channel_axes(layer, index, weights.ndim))
        high = np.maximum(high, max(float(high.max()) * _LEAST_OF_CHANNELS, _LEAST))
        high = 2 * high if is_first else high
        return fake_quantize(weights, -high, high, _WEIGHT_STEPS)


def _is_quantized_data(layer: Layer, index: int, constant: Sequence[bool]) -> bool:
    """Return whether NNCF quantizes an input of a layer that is not constant."""
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
    """Return the ids of the first quantized convolutions on the paths from the inputs of the model."""
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


def is_weights(layer: Layer, index: int, array: Array) -> bool:
    """Return whether a constant input of a layer is a weight matrix."""
    if array.ndim < 2 or array.dtype.kind != "f" or not array.size or layer.op is None:
        return False
    if layer.type in RECURRENT:
        port = type(layer.op).port_of(index)
        return port is not None and port.name in _RECURRENT_WEIGHTS
    return layer.type in PRODUCTS and index < 2


def channel_axes(layer: Layer, index: int, rank: int) -> tuple[int, ...]:
    """Return the axes of weights with separate scales: all but the summed ones."""
    if layer.type == "MatMul":
        transposed = vars(layer.op)["transpose_b" if index else "transpose_a"]
        summed = rank - 1 if transposed == bool(index) else rank - 2
        return tuple(axis for axis in range(rank) if axis != summed)
    if layer.type in RECURRENT:
        return tuple(range(rank - 1))
    return _CHANNEL_AXES[layer.type]


def rounded_weights(layer: Layer, index: int, weights: Array, bits: int, group: int = PER_CHANNEL) -> Array:
    """Quantize and dequantize weights, with a scale and a zero point for each group.

    Args:
        layer: the layer that multiplies by them.
        index: the number of the input.
        weights: the weights.
        bits: bits of the integers.
        group: weights that share a scale; `PER_CHANNEL` for a whole channel.
    """
    axes = channel_axes(layer, index, weights.ndim)
    first = np.moveaxis(weights, axes, range(len(axes)))
    rows = first.reshape(*first.shape[: len(axes)], -1)
    stored = np.empty_like(rows)
    size = rows.shape[-1] if group == PER_CHANNEL else group
    for start in range(0, rows.shape[-1], size):
        stored[..., start : start + size] = _rounded(rows[..., start : start + size], (1 << bits) - 1)
    return np.asarray(np.moveaxis(stored.reshape(first.shape), range(len(axes)), axes))


def _rounded(part: Array, steps: int) -> Array:
    """Round numbers to an even grid that includes zero."""
    low, high = np.minimum(part.min(-1, keepdims=True), 0), np.maximum(part.max(-1, keepdims=True), 0)
    scale = np.where(high > low, (high - low) / steps, 1)
    zero = np.rint(-low / scale)
    return np.asarray((np.clip(np.rint(part / scale) + zero, 0, steps) - zero) * scale)


def fake_quantize(array: Array, low: Array, high: Array, steps: int) -> Array:
    """Clip numbers to limits, and round them to an even grid between the limits."""
    span = np.where(high > low, high - low, 1)
    level = np.rint((np.clip(array, low, high) - low) / span * steps)
    return np.asarray(level / steps * span + low).astype(array.dtype)


def largest(array: Array, kept: Sequence[int]) -> Array:
    """Return the largest absolute value along all axes but `kept`, which stay in place."""
    others = tuple(axis for axis in range(array.ndim) if axis not in kept)
    return np.asarray(np.abs(array).max(others, keepdims=True))
