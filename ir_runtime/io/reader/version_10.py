"""Explicit Converts for the implicit conversions of IR version 10 at inputs and outputs.

Models of this version were made for an API with tensors named after layers, no f16 inputs, and outputs in f32 or i32.
OpenVINO still reads them so, and programs rely on it. It uses the inferred types, which are known only after
reading. Until then, the declared types are used; if they differ (Model Optimizer declares the f16 of a DetectionOutput
as FP32), the layers of the file are converted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from ...ir.element import ElementType
from ...ir.graph import Edge, Graph, Layer, Port, PortSpec
from ...ir.tensor import TensorType, Value
from ...ops import registry

__all__ = ["convert_again", "convert_version_10"]

_INTEGERS = (ElementType.i64, ElementType.u64, ElementType.i32, ElementType.u32)


def convert_version_10(
    layers: Mapping[int, Layer], edges: Iterable[Edge], inferred: Mapping[Port, TensorType] | None = None
) -> tuple[dict[int, Layer], list[Edge]]:
    """Name inputs and outputs after their layers, and insert Converts where their element types are implied.

    Args:
        layers: the layers of the file, by id.
        edges: the edges between them.
        inferred: the inferred types of outputs, which replace the declared ones.
    """
    sources = {edge.target: edge.source for edge in edges}
    work = _Converter(dict(layers), sources, count(len(layers)), inferred or {})
    readers: dict[Port, list[Port]] = {}
    for target, source in work.sources.items():
        readers.setdefault(source, []).append(target)
    for layer in layers.values():
        if layer.type == "Parameter" and layer.outputs:
            work.convert_input(layer, readers.get(Port(layer.id, 0), ()))
    for target, source in [*work.sources.items()]:
        if work.layers[target.layer].type == "Result":
            work.convert_output(source, target)
    return work.finish(), [Edge(source, target) for target, source in work.sources.items()]


def convert_again(graph: Graph, values: Mapping[Port, Value]) -> Graph | None:
    """Return the graph converted by inferred types; ``None`` if they equal the declared types of all outputs.

    Args:
        graph: the layers of the file, without conversions.
        values: their inferred values, regardless of declared types.
    """
    ports = {
        source for result in graph.of_type("Result") for source in graph.reads(result) if source in values
    }
    inferred = {port: TensorType(values[port].element, values[port].shape) for port in ports}
    if all(_element(graph[port.layer].outputs[port.number]) is inferred[port].element for port in ports):
        return None
    layers, edges = convert_version_10(graph.layers, graph.edges, inferred)
    return Graph(layers.values(), edges, graph.severed)


@dataclass(slots=True)
class _Converter:
    layers: dict[int, Layer]
    sources: dict[Port, Port]
    """The output that feeds each input."""
    numbers: Iterator[int]
    """Candidates for an unused id."""
    inferred: Mapping[Port, TensorType]
    outputs: dict[int, list[PortSpec]] = field(default_factory=dict)
    """The changed output ports, by layer id."""

    def convert_input(self, layer: Layer, readers: Iterable[Port]) -> None:
        """Make an f16 input of the model f32, with a Convert for its ``readers``."""
        port = _add_name(layer.outputs[0], layer.name)
        self.layers[layer.id] = replace(layer, outputs=(port, *layer.outputs[1:]))
        if layer.op is None or layer.op.attributes()["element_type"] is not ElementType.f16:
            return
        op = layer.op.replace(element_type=ElementType.f32)
        wide, half = (
            TensorType(e, layer.op.attributes()["shape"]) for e in (ElementType.f32, ElementType.f16)
        )
        outputs = (replace(port, type=wide), *layer.outputs[1:])
        self.layers[layer.id] = replace(layer, op=op, outputs=outputs)
        narrow = self._convert(layer, wide, PortSpec(1, half))
        self.sources |= dict.fromkeys(readers, narrow)
        self.sources[Port(narrow.layer, 0)] = Port(layer.id, 0)

    def convert_output(self, output: Port, result: Port) -> None:
        """Convert an output of the model to f32, or integers of 32 or 64 bits to i32."""
        source = self.layers[output.layer]
        outputs = self.outputs.setdefault(output.layer, list(source.outputs))
        port = _add_name(outputs[output.number], _output_name(source, output.number))
        type = self.inferred.get(output, port.type)
        if type is None or type.element in (ElementType.dynamic, ElementType.string):
            return
        target = ElementType.i32 if type.element in _INTEGERS else ElementType.f32
        if type.element is target:
            outputs[output.number] = port
            return
        outputs[output.number] = replace(port, names=())
        spec = PortSpec(1, TensorType(target, type.shape), port.names)
        converted = self._convert(source, type, spec)
        self._set_input(self.layers[result.layer], spec)
        self.sources[result] = converted
        self.sources[Port(converted.layer, 0)] = output

    def finish(self) -> dict[int, Layer]:
        """Return all layers, with their changed outputs."""
        for number, outputs in self.outputs.items():
            self.layers[number] = replace(self.layers[number], outputs=tuple(outputs))
        return self.layers

    def _set_input(self, result: Layer, spec: PortSpec) -> None:
        """Set the declared input type of a Result to that of the Convert before it."""
        inputs = tuple(replace(port, type=spec.type) if port.type else port for port in result.inputs)
        self.layers[result.id] = replace(result, inputs=inputs)

    def _convert(self, beside: Layer, input_spec: TensorType, output_spec: PortSpec) -> Port:
        """Add a Convert layer, and return its output."""
        assert output_spec.type is not None
        label = output_spec.type.element.label
        number = next(n for n in self.numbers if n not in self.layers)
        name = f"{beside.name}/{label}"
        op = registry.require("Convert").parse({"destination_type": label})
        layer = Layer.inserted(number, name, op, beside.where, (PortSpec(0, input_spec),), (output_spec,))
        self.layers[number] = replace(layer, is_implied=True)
        return Port(number, 0)


def _element(port: PortSpec) -> ElementType | None:
    return port.type.element if port.type else None


def _output_name(layer: Layer, number: int) -> str:
    return layer.name if len(layer.outputs) == 1 else f"{layer.name}.{number}"


def _add_name(port: PortSpec, name: str) -> PortSpec:
    return port if name in port.names else replace(port, names=(*port.names, name))
