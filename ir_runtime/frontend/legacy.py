"""What IR version 10 means by its inputs and outputs, made explicit.

Such models were made for an API whose tensors were named after layers, whose inputs were never f16, and
whose outputs were f32 or i32. OpenVINO still reads them so, and programs written for them rely on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count

from ..ir.element import ElementType
from ..ir.graph import Edge, Layer, Port, PortSpec
from ..ir.tensor import TensorType
from ..ops import registry

__all__ = ["modernise"]

_INTEGERS = (ElementType.i64, ElementType.u64, ElementType.i32, ElementType.u32)


def modernise(layers: Mapping[int, Layer], edges: Iterable[Edge]) -> tuple[dict[int, Layer], list[Edge]]:
    """Name inputs and outputs after their layers, and convert between old and new element types."""
    work = _Modern(dict(layers), list(edges))
    for layer in layers.values():
        if layer.type == "Parameter" and layer.outputs:
            work.enter(layer)
    for edge in [e for e in work.edges if work.layers[e.target.layer].type == "Result"]:
        work.leave(edge)
    return work.layers, work.edges


@dataclass(slots=True)
class _Modern:
    layers: dict[int, Layer]
    edges: list[Edge]

    def enter(self, layer: Layer) -> None:
        """An input takes f32 where the file says f16."""
        port = _also_named(layer.outputs[0], layer.name)
        declared = port.type
        self.layers[layer.id] = replace(layer, outputs=(port,))
        if layer.op is None or declared is None or declared.element is not ElementType.f16:
            return
        wide = TensorType(ElementType.f32, declared.shape)
        op = type(layer.op)(element_type=ElementType.f32, shape=vars(layer.op)["shape"])
        self.layers[layer.id] = replace(layer, op=op, outputs=(replace(port, type=wide),))
        own = Port(layer.id, 0)
        narrow = self._convert(layer, wide, PortSpec(1, declared))
        self.edges = [Edge(narrow, e.target) if e.source == own else e for e in self.edges]
        self.edges.append(Edge(own, Port(narrow.layer, 0)))

    def leave(self, edge: Edge) -> None:
        """An output gives f32, or i32 where the file has wide integers."""
        source = self.layers[edge.source.layer]
        port = _also_named(source.outputs[edge.source.number], _output_name(source, edge.source.number))
        declared = port.type
        if declared is None or declared.element in (ElementType.dynamic, ElementType.string):
            return
        wanted = ElementType.i32 if declared.element in _INTEGERS else ElementType.f32
        if declared.element is wanted:
            self._set_output(source, edge.source.number, port)
            return
        self._set_output(source, edge.source.number, replace(port, names=()))
        there = PortSpec(1, TensorType(wanted, declared.shape), port.names)
        converted = self._convert(source, declared, there)
        self.edges = [Edge(converted, e.target) if e == edge else e for e in self.edges]
        self.edges.append(Edge(edge.source, Port(converted.layer, 0)))

    def _set_output(self, layer: Layer, number: int, port: PortSpec) -> None:
        outputs = (*layer.outputs[:number], port, *layer.outputs[number + 1 :])
        self.layers[layer.id] = replace(layer, outputs=outputs)

    def _convert(self, beside: Layer, given: TensorType, made: PortSpec) -> Port:
        """Add a Convert layer that the file does not have; return its output."""
        cls = registry.resolve("Convert", 1)
        assert cls is not None
        assert made.type is not None
        label = made.type.element.label
        number = next(n for n in count(len(self.layers)) if n not in self.layers)
        name = f"{beside.name}/{label}"
        self.layers[number] = Layer(
            id=number,
            name=name,
            type=cls.name,
            version="opset1",
            op=cls.parse({"destination_type": label}),
            where=replace(beside.where, layer=name, operation=cls.versioned_name()),
            inputs=(PortSpec(0, given),),
            outputs=(made,),
        )
        return Port(number, 0)


def _output_name(layer: Layer, number: int) -> str:
    return layer.name if len(layer.outputs) == 1 else f"{layer.name}.{number}"


def _also_named(port: PortSpec, name: str) -> PortSpec:
    return port if name in port.names else replace(port, names=(*port.names, name))
