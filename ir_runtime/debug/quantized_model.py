"""Quantized models: their layers with and without quantization.

In floating point, FakeQuantize is skipped, and weights are those of the original model. Without the original, weights are drawn
at random from the numbers that round to the stored ones, which gives errors of the right size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from .._util.forks import cached_property
from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.evaluation import evaluate_layer
from ..ir.graph import IO_TYPES, Graph, Layer, Port
from ..ir.tensor import Array
from ..openvino.model import Model
from ..opset13 import constant
from .precision import is_move
from .reference import Change
from .schemes import moved
from .spilling import keep_copy, tensors
from .tensors import computed_layers
from .verdict import error_of

__all__ = ["STORED", "StoredModel"]

STORED = "stored"
"""Name of the precision that a quantized model has."""
_SEED = 0
_MOST_BITS = 8
_MOST_OFF = 0.7
"""Largest relative error that quantizing weights can cause: two bits cause half of their size."""
_CHAIN = ("Convert", "Multiply", "Subtract", "Divide", "Add")
"""Operations that decompress weights, besides movements."""


@dataclass
class _Unit:
    """The quantized inputs of a layer."""

    weights: dict[int, Port] = field(default_factory=dict)
    """Keys of the stored weights, by input."""
    activations: dict[int, Layer] = field(default_factory=dict)
    """The FakeQuantize of each activation, by input."""


class _Constants:
    """The constant tensors of a model.

    Args:
        model: the model.
    """

    def __init__(self, model: Model) -> None:
        runnable = model._runnable()
        self.graph, self.types = runnable._graph, runnable._values

    def of(self, port: Port, replaced: Mapping[Port, Array] | None = None) -> Array:
        """Compute a constant tensor, with some tensors replaced."""
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
        """Return the constant input of a layer; ``None`` if there is none."""
        ports = self.graph.reads(self._layers[name]) if name in self._layers else ()
        if index >= len(ports) or ports[index].layer in self._computed:
            return None
        return self.of(ports[index])


class StoredModel:
    """A quantized model in floating point, and the quantization of each layer.

    Args:
        model: the quantized model; it is not changed.
        original: the model that was quantized, whose layers have the same names.

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
        """The model with weights in floating point; FakeQuantize is skipped by changes."""
        self._nodes = {node.get_friendly_name(): node for node in self.model.get_ordered_ops()}
        for layer in computed_layers(self._graph):
            if not is_move(layer) and layer.type not in (*IO_TYPES, "FakeQuantize", "MaxPool", *_JOINING):
                self._add(layer)

    @property
    def is_quantized(self) -> bool:
        """Whether any layer is quantized."""
        return bool(self._units)

    def scheme(self, graph: Graph) -> StoredLayers:
        """Return the stored precision as a scheme for the model in floating point.

        Args:
            graph: that of `model`.
        """
        return StoredLayers(graph, self._units, self._shared, self._kept, self._limits)

    def _add(self, layer: Layer) -> None:
        unit = _Unit()
        for index, port in enumerate(self._graph.reads(layer)):
            if port.layer not in self._computed:
                if (source := self._stored_numbers(port)) is not None:
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

    def _stored_numbers(self, port: Port) -> Port | None:
        """Return the tensor upstream of constant weights that holds the rounded numbers; ``None`` if there is none."""
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
        """Replace the weights of a layer by floating-point ones, and keep the stored ones."""
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
    """Draw random numbers that round to the given ones in an element type."""
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
    """The stored precision of a quantized model.

    Args:
        graph: the graph of the model in floating point.
        units: the quantized inputs of layers, by layer name.
        shared: for each FakeQuantize, by name, the layers that cannot apply it to their own inputs.
        kept: the stored weights.
        limits: the limits of each FakeQuantize.
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
        """No calibration needed: the file has the ranges."""

    def change(self, layers: Collection[int]) -> Change:
        """Return a change that quantizes some layers, and skips FakeQuantize elsewhere."""
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
            return moved(layer, inputs, arrays, outputs)

        return change
