"""The pass ``quantized-weights``: find quantized weights that kernels can read in stored form.

Converters write ``Constant → Convert → Subtract → Multiply → Reshape → Convert``; all but the Constant are optional. The
chain computes one matrix, which kernels of some backends read in packed form.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..ir.array import Packed
from ..ir.element import ElementType
from ..ir.graph import Graph, Layer, Port
from ..ir.quantized_weights import QuantizedWeights
from ..ir.tensor import Array, Value
from ..limits import current
from ..ops.conversion import convert
from ..ops.infrastructure import Constant
from ..ops.type import Convert
from .evaluate import evaluate_constant
from .program import Options, Program, StoredWeights

__all__ = ["find_quantized_weights", "keep_quantized", "unpack"]

# Weights with fewer elements are folded to f32, which costs little memory. Kernels gain less from 16-bit weights, so their
# minimum is higher: 128 KiB.
MIN_NUMBERS, MIN_HALVES = 1 << 10, 1 << 16


def keep_quantized(program: Program, options: Options) -> None:
    """Keep quantized weights that a kernel can read in stored form.

    Before: nothing is folded.
    After: ``packed`` has these weights by the port where they would be dequantized; ``values`` has no contents of that
    port and of the layers that lead to it.
    """
    readers = {op for backend in options.backends for op in backend.packed_readers}
    if not program.fold or not readers:
        return
    values = program.values
    program.packed = find_quantized_weights(
        program.graph, program.layers, program.types, program.outputs, readers
    )
    for stored in program.packed.values():
        for layer in stored.layers:
            values[Port(layer.id, 0)] = Value(values[Port(layer.id, 0)].type)


def unpack(program: Program, ports: Iterable[Port]) -> None:
    """Dequantize packed weights to f32, for layers whose kernel cannot read the stored form."""
    values = program.values
    for port in ports:
        if program.is_fixed(port):
            continue
        layers = program.packed[port].layers
        for layer in layers:
            (array,) = evaluate_constant(program.graph, layer, values, current().memory)
            values[Port(layer.id, 0)] = Value.constant(array, values[Port(layer.id, 0)].element)
        for layer in layers[:-1]:
            values[Port(layer.id, 0)] = Value(values[Port(layer.id, 0)].type)


def find_quantized_weights(
    graph: Graph,
    layers: Iterable[Layer],
    types: Mapping[Port, Value],
    outputs: Collection[Port],
    readers: Collection[str],
) -> dict[Port, StoredWeights]:
    """Return the quantized matrices of a graph, by the port where they are dequantized.

    Args:
        graph: the layers.
        layers: the needed layers.
        types: the `Value` of every port.
        outputs: the outputs of the program, which are not left in stored form.
        readers: names of operations that may read stored weights; matrices that other operations also read are left out.
    """
    needed = {layer.id: layer for layer in layers}
    search = _Search(graph, needed, types, outputs)
    matrices: dict[Port, StoredWeights] = {}
    for layer in needed.values():
        port = Port(layer.id, 0)
        if layer.type not in _STEPS or port in outputs:
            continue
        consumers = [needed[r.layer].op for r in graph.readers(port) if r.layer in needed]
        supported = consumers and all(op is not None and op.name in readers for op in consumers)
        if supported and (weights := search.at(port)) is not None:
            matrices[port] = weights
    return matrices


_STEPS = ("Convert", "Multiply", "Subtract", "Reshape")
# The types that a Convert in a chain may have: narrower ones would round values.
_WIDE = ("f16", "bf16", "f32")


@dataclass(slots=True)
class _Dequantization:
    """The parameters of a dequantization: the scale, the zero point, and the final shape."""

    scale: Array | None = None
    zero: Array | None = None
    shape: tuple[int, ...] | None = None


@dataclass(slots=True)
class _Search:
    """Follows dequantization steps back from a port to the quantized Constant."""

    graph: Graph
    needed: Mapping[int, Layer]
    types: Mapping[Port, Value]
    outputs: Collection[Port]

    def at(self, port: Port) -> StoredWeights | None:
        steps: list[Layer] = []
        parameters = _Dequantization()
        layer = self.graph[port.layer]
        while layer.type in _STEPS and layer.op is not None:
            steps.append(layer)
            following = self._sole_producer(layer) if self._is_step(layer, parameters) else None
            if following is None:
                return None
            layer = following
        return self._build_weights(layer, steps, parameters)

    def _is_step(self, layer: Layer, parameters: _Dequantization) -> bool:
        """Return whether a layer is a dequantization step at its place in the chain, and note its parameters.

        Layers are visited backwards, so a Reshape is met before the Multiply, and that before the Subtract.
        """
        if layer.type == "Convert":
            return self._widens(layer)
        if layer.type == "Reshape" and parameters.shape is None and parameters.scale is None:
            parameters.shape = self._static(layer)
            return parameters.shape is not None
        if layer.type == "Multiply" and parameters.scale is None and parameters.zero is None:
            parameters.scale = self._parameter(layer, 1)
            return parameters.scale is not None
        if layer.type == "Subtract" and parameters.zero is None:
            parameters.zero = self._parameter(layer, 1)
            return parameters.zero is not None
        return False

    def _build_weights(
        self, layer: Layer, steps: list[Layer], parameters: _Dequantization
    ) -> StoredWeights | None:
        op, scale, zero, shape = layer.op, parameters.scale, parameters.zero, parameters.shape
        if not steps or not isinstance(op, Constant):
            return None
        codes = op.value
        if not isinstance(codes, Packed | np.ndarray) or math.prod(codes.shape) < (
            MIN_HALVES if op.element_type.bits == 16 else MIN_NUMBERS
        ):
            return None
        shape = tuple(codes.shape) if shape is None else shape
        if len(shape) != 2 or 0 in shape or (op.element_type.real and zero is not None):
            return None
        if self._element(steps[0]) is not ElementType.f32 or steps[-1].type != "Convert":
            return None
        arithmetic = self._arithmetic(steps)
        if arithmetic is None or {arithmetic, op.element_type} == {ElementType.f16, ElementType.bf16}:
            return None
        weights = QuantizedWeights(codes, op.element_type, scale, zero, (shape[0], shape[1]), arithmetic)
        return StoredWeights(weights, tuple(reversed(steps)))

    def _arithmetic(self, steps: list[Layer]) -> ElementType | None:
        """Return the element type in which a dequantization subtracts and multiplies.

        Returns ``None`` if these steps have several types, or if a later step has another type than the one before it and f32.
        """
        first, wide = self._element(steps[-1]), ElementType.f32
        outward = [(step.type, self._element(step)) for step in reversed(steps)]
        same = all(element is first for type, element in outward if type in ("Subtract", "Multiply"))
        widening = all(b is a or b is wide for (_, a), (_, b) in pairwise(outward))
        return first if same and widening else None

    def _sole_producer(self, layer: Layer) -> Layer | None:
        """Return the producer of a layer's first input.

        Returns ``None`` if that input is an output of the program, or if other layers also read it and it is not a Constant.
        """
        source = self.graph.sources(layer)[0]
        if source is None or source in self.outputs:
            return None
        feeding = self.graph[source.layer]
        readers = [r for r in self.graph.readers(source) if r.layer in self.needed]
        return feeding if feeding.type == "Constant" or len(readers) == 1 else None

    def _widens(self, layer: Layer) -> bool:
        return self._element(layer).label in _WIDE

    def _element(self, layer: Layer) -> ElementType:
        return self.types[Port(layer.id, 0)].element

    def _static(self, layer: Layer) -> tuple[int, ...] | None:
        shape = self.types[Port(layer.id, 0)].shape
        return shape.static if shape.is_static else None

    def _parameter(self, layer: Layer, index: int) -> Array | None:
        """Return the scales or zero points that a layer reads; ``None`` if they are not constant, or of no floating-point type."""
        source = self.graph.sources(layer)[index]
        steps: list[Layer] = []
        while source is not None and self.graph[source.layer].type in ("Convert", "Reshape"):
            steps.append(self.graph[source.layer])
            source = self.graph.sources(steps[-1])[0]
        if source is None or source.layer not in self.needed:
            return None
        op = self.graph[source.layer].op
        if not isinstance(op, Constant):
            return None
        array, element = op.evaluate(), op.element_type
        for step in reversed(steps):
            if step.type == "Reshape":
                if (shape := self._static(step)) is None:
                    return None
                array = array.reshape(shape)
            elif isinstance(step.op, Convert):
                array = convert(array, step.op.destination_type, element)
                element = step.op.destination_type
        return array if element.real else None
