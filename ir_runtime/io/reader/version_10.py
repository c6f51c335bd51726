"""Make the conversions at inputs and outputs explicit that IR version 10 implies.

Such models were made for an API whose tensors were named after layers, whose inputs were never f16, and
whose outputs were f32 or i32. OpenVINO still reads them so, and programs written for them rely on it. It goes by
the types that it infers. They are known only after the file was read: until then, those of the file are taken, and
where they turn out to be others (Model Optimizer declares the f16 of a DetectionOutput as FP32), the file's layers
are converted again.
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
    """Name inputs and outputs after their layers, and convert between old and new element types.

    Args:
        layers: by id.
        edges: between them.
        inferred: the types of outputs where they are not those that the file declares.
    """
    sources = {edge.target: edge.source for edge in edges}
    work = _Converter(dict(layers), sources, count(len(layers)), inferred or {})
    readers: dict[Port, list[Port]] = {}
    for target, source in work.sources.items():
        readers.setdefault(source, []).append(target)
    for layer in layers.values():
        if layer.type == "Parameter" and layer.outputs:
            work.enter(layer, readers.get(Port(layer.id, 0), ()))
    for target, source in [*work.sources.items()]:
        if work.layers[target.layer].type == "Result":
            work.leave(source, target)
    return work.finished(), [Edge(source, target) for target, source in work.sources.items()]


def convert_again(graph: Graph, values: Mapping[Port, Value]) -> Graph | None:
    """Convert the outputs of a file as inferred, if the types of some are not those that it declares.

    Args:
        graph: the layers of the file, without conversions.
        values: what was inferred about them, from operations alone.
    """
    read = {
        source for result in graph.of_type("Result") for source in graph.reads(result) if source in values
    }
    inferred = {port: TensorType(values[port].element, values[port].shape) for port in read}
    if all(_element(graph[port.layer].outputs[port.number]) is inferred[port].element for port in read):
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
    """The output ports of layers, where they were changed."""

    def enter(self, layer: Layer, readers: Iterable[Port]) -> None:
        """Make an input f32 where the file declares f16; ``readers`` are the inputs connected to it."""
        port = _also_named(layer.outputs[0], layer.name)
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

    def leave(self, given: Port, result: Port) -> None:
        """Make an output f32, or i32 where the file declares wider integers."""
        source = self.layers[given.layer]
        outputs = self.outputs.setdefault(given.layer, list(source.outputs))
        port = _also_named(outputs[given.number], _output_name(source, given.number))
        type = self.inferred.get(given, port.type)
        if type is None or type.element in (ElementType.dynamic, ElementType.string):
            return
        wanted = ElementType.i32 if type.element in _INTEGERS else ElementType.f32
        if type.element is wanted:
            outputs[given.number] = port
            return
        outputs[given.number] = replace(port, names=())
        there = PortSpec(1, TensorType(wanted, type.shape), port.names)
        converted = self._convert(source, type, there)
        self._set_input(self.layers[result.layer], there)
        self.sources[result] = converted
        self.sources[Port(converted.layer, 0)] = given

    def finished(self) -> dict[int, Layer]:
        """Return the layers with their changed outputs."""
        for number, outputs in self.outputs.items():
            self.layers[number] = replace(self.layers[number], outputs=tuple(outputs))
        return self.layers

    def _set_input(self, result: Layer, there: PortSpec) -> None:
        """Give a Result the type of the Convert before it, whatever its port declares in the file."""
        inputs = tuple(replace(port, type=there.type) if port.type else port for port in result.inputs)
        self.layers[result.id] = replace(result, inputs=inputs)

    def _convert(self, beside: Layer, given: TensorType, made: PortSpec) -> Port:
        """Add a Convert layer that the file does not have; return its output."""
        assert made.type is not None
        label = made.type.element.label
        number = next(n for n in self.numbers if n not in self.layers)
        name = f"{beside.name}/{label}"
        op = registry.require("Convert").parse({"destination_type": label})
        layer = Layer.inserted(number, name, op, beside.where, (PortSpec(0, given),), (made,))
        self.layers[number] = replace(layer, is_implied=True)
        return Port(number, 0)


def _element(port: PortSpec) -> ElementType | None:
    return port.type.element if port.type else None


def _output_name(layer: Layer, number: int) -> str:
    return layer.name if len(layer.outputs) == 1 else f"{layer.name}.{number}"


def _also_named(port: PortSpec, name: str) -> PortSpec:
    return port if name in port.names else replace(port, names=(*port.names, name))
