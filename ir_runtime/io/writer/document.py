"""Write a graph as an IR of version 11, or 10."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO

from ...analysis.infer import Inferred
from ...ir.element import ElementType
from ...ir.graph import Body, Graph, Layer, Port, PortSpec, RtInfo
from ...ir.tensor import TensorType
from ..reader.layers import NEWEST_IR
from .attributes import attribute_texts
from .bodies import write_back_edges, write_port_map
from .names import join_names, output_names
from .printer import Printer
from .rt_info import write_layer_info, write_model_info
from .weights import WeightsWriter, raw_bytes

__all__ = ["Content", "write"]

_TYPES = {"Constant": "Const"}  # as files spell them


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file.

    ``declared`` tells whether the declared dims still hold, which is not so after reshaping inputs. They may
    be more specific than the inferred ones.
    """

    name: str
    graph: Graph
    known: Inferred
    rt_info: RtInfo
    declared: bool = True
    version: int = NEWEST_IR


def write(content: Content, xml: IO[bytes], weights: IO[bytes]) -> None:
    """Write a model, deterministically.

    Raises:
        InputError: if a name has characters that XML does not allow.
    """
    out = Printer(xml)
    with out.inside("net", {"name": content.name, "version": str(content.version)}):
        _GraphWriter(out, WeightsWriter(weights), content.known, content.declared).graph(content.graph)
        write_model_info(out, content.rt_info)


@dataclass(slots=True)
class _GraphWriter:
    """Writes the layers and edges of a graph and of its bodies."""

    out: Printer
    weights: WeightsWriter
    known: Inferred
    declared: bool
    path: str = ""
    """The prefix of the names of layers in a body."""

    def graph(self, graph: Graph) -> None:
        with self.out.inside("layers"):
            for layer in graph.layers.values():
                self._layer(layer, graph.sources(layer))
        with self.out.inside("edges"):
            for source, target in graph.edges:
                ends = {
                    "from-layer": source.layer,
                    "from-port": graph[source.layer].outputs[source.number].id,
                    "to-layer": target.layer,
                    "to-port": graph[target.layer].inputs[target.number].id,
                }
                self.out.element("edge", {end: str(number) for end, number in ends.items()})

    def _layer(self, layer: Layer, sources: Sequence[Port | None]) -> None:
        head = {
            "id": str(layer.id),
            "name": layer.name.removeprefix(self.path),
            "type": _TYPES.get(layer.type, layer.type),
            "version": layer.version,
        }
        if names := output_names(layer):
            head["output_names"] = names
        with self.out.inside("layer", head):
            if data := attribute_texts(layer, self._changed_attributes(layer)):
                self.out.element("data", data)
            write_layer_info(self.out, layer.rt_info)
            bodies = layer.bodies()
            for body in reversed(bodies):  # as OpenVINO has them
                write_port_map(self.out, layer, body)
            write_back_edges(self.out, bodies)
            self._ports("input", layer, zip(layer.inputs, sources, strict=True))
            self._ports("output", layer, ((p, Port(layer.id, i)) for i, p in enumerate(layer.outputs)))
            for body in bodies:
                self._body(layer, body)

    def _changed_attributes(self, layer: Layer) -> dict[str, object]:
        """Return the attributes that do not follow from the operation alone."""
        if layer.type == "Constant":
            op = vars(layer.op)
            place = self.weights.place(raw_bytes(op["value"], op["element_type"], min(op["size"], 1)))
            return place._asdict()
        value = self.known.get(Port(layer.id, 0))
        if layer.type == "Parameter" and value is not None and not (self.path and self.declared):
            return {"shape": value.shape}
        return {}

    def _ports(self, side: str, layer: Layer, ports: Iterable[tuple[PortSpec, Port | None]]) -> None:
        specs = list(ports)
        if not specs:
            return
        with self.out.inside(side):
            for spec, source in specs:
                head = {"id": str(spec.id)}
                type = self._type(spec, source)
                if type is not None:
                    head["precision"] = precision(type.element)
                if spec.names and layer.type != "Result":
                    head["names"] = join_names(spec.names)
                self._port(head, type, spec)

    def _port(self, head: Mapping[str, str], type: TensorType | None, spec: PortSpec) -> None:
        dims = () if type is None or type.shape.rank is None else type.shape
        if not dims and not spec.rt_info:
            self.out.element("port", head)
            return
        with self.out.inside("port", head):
            for dim in dims:
                self.out.text("dim", str(dim) if dim.is_static else "-1")
            write_layer_info(self.out, spec.rt_info)

    def _type(self, spec: PortSpec, source: Port | None) -> TensorType | None:
        """Return the inferred type of a tensor, completed by the declared one."""
        value = self.known.get(source) if source else None
        if value is None or spec.type is None or not self.declared:
            return value.type if value else spec.type
        both = value.shape.merge(spec.type.shape)
        element = value.element if value.element.is_static() else spec.type.element
        return TensorType(element, value.shape if both is None else both)

    def _body(self, layer: Layer, body: Body) -> None:
        values = self.known.bodies.get((layer.id, body.name), Inferred())
        inner = replace(self, known=values, path=f"{layer.name}/{body.name}/")
        with self.out.inside(body.name):
            inner.graph(body.graph)
            self.out.element("rt_info")


def precision(element: ElementType) -> str:
    """Return the name of an element type in ports of files.

    >>> precision(ElementType.f32), precision(ElementType.i64), precision(ElementType.boolean)
    ('FP32', 'I64', 'BOOL')
    """
    return _PRECISIONS.get(element.label, element.label.upper())


_PRECISIONS = {
    "boolean": "BOOL",
    "f16": "FP16",
    "f32": "FP32",
    "f64": "FP64",
    "u1": "BIN",
    "dynamic": "UNSPECIFIED",
}
