"""Make the conversions at inputs and outputs explicit that IR version 10 implies.

Such models were made for an API whose tensors were named after layers, whose inputs were never f16, and
whose outputs were f32 or i32. OpenVINO still reads them so, and programs written for them rely on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from ..ir.element import ElementType
from ..ir.graph import Edge, Layer, Port, PortSpec
from ..ir.tensor import TensorType
from ..ops import registry

__all__ = ["convert_version_10"]

_INTEGERS = (ElementType.i64, ElementType.u64, ElementType.i32, ElementType.u32)


def convert_version_10(
    layers: Mapping[int, Layer], edges: Iterable[Edge]
) -> tuple[dict[int, Layer], list[Edge]]:
    """Name inputs and outputs after their layers, and convert between old and new element types."""
    work = _Converter(dict(layers), {edge.target: edge.source for edge in edges}, count(len(layers)))
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


@dataclass(slots=True)
class _Converter:
    layers: dict[int, Layer]
    sources: dict[Port, Port]
    """The output that feeds each input."""
    numbers: Iterator[int]
    """Candidates for an unused id."""
    outputs: dict[int, list[PortSpec]] = field(default_factory=dict)
    """The output ports of layers, where they were changed."""

    def enter(self, layer: Layer, readers: Iterable[Port]) -> None:
        """Make an input f32 where the file declares f16; ``readers`` are the inputs connected to it."""
        port = _also_named(layer.outputs[0], layer.name)
        declared = port.type
        self.layers[layer.id] = replace(layer, outputs=(port, *layer.outputs[1:]))
        if layer.op is None or declared is None or declared.element is not ElementType.f16:
            return
        wide = TensorType(ElementType.f32, declared.shape)
        op = layer.op.replace(element_type=ElementType.f32)
        outputs = (replace(port, type=wide), *layer.outputs[1:])
        self.layers[layer.id] = replace(layer, op=op, outputs=outputs)
        narrow = self._convert(layer, wide, PortSpec(1, declared))
        self.sources |= dict.fromkeys(readers, narrow)
        self.sources[Port(narrow.layer, 0)] = Port(layer.id, 0)

    def leave(self, given: Port, result: Port) -> None:
        """Make an output f32, or i32 where the file declares wider integers."""
        source = self.layers[given.layer]
        outputs = self.outputs.setdefault(given.layer, list(source.outputs))
        port = _also_named(outputs[given.number], _output_name(source, given.number))
        declared = port.type
        if declared is None or declared.element in (ElementType.dynamic, ElementType.string):
            return
        wanted = ElementType.i32 if declared.element in _INTEGERS else ElementType.f32
        if declared.element is wanted:
            outputs[given.number] = port
            return
        outputs[given.number] = replace(port, names=())
        there = PortSpec(1, TensorType(wanted, declared.shape), port.names)
        converted = self._convert(source, declared, there)
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
        self.layers[number] = Layer.inserted(number, name, op, beside.where, (PortSpec(0, given),), (made,))
        return Port(number, 0)


def _output_name(layer: Layer, number: int) -> str:
    return layer.name if len(layer.outputs) == 1 else f"{layer.name}.{number}"


def _also_named(port: PortSpec, name: str) -> PortSpec:
    return port if name in port.names else replace(port, names=(*port.names, name))
