"""Bare ``<layer>`` elements become models that run.

What feeds a layer from outside becomes a Parameter, or a Constant where the page or the caller gives
its value; what nobody reads becomes a Result.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from lxml.etree import Comment

from ..codes import Code
from ..diagnostics import Diagnostics, Location
from ..errors import InputError, ParseError
from ..ir.element import ElementType
from ..ir.graph import Edge, Graph, Layer, Port, PortSpec
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType
from ..limits import DEFAULT, Limits
from ..ops import registry
from ..ops.infrastructure import Constant, Parameter, Result
from .document import Element, parse
from .layers import LayerReader
from .model import Document, read_edges
from .pages import Excerpt, excerpts, value_in
from .weights import Weights

__all__ = ["Values", "read_fragments"]

Values = Mapping[Any, Any]
"""Contents by port id, by (layer id, port id), or by the name of the port."""


def read_fragments(
    text: str,
    report: Diagnostics,
    *,
    values: Values | None = None,
    version: str | int | None = None,
    name: str = "<fragment>",
    example: int | None = None,
    limits: Limits = DEFAULT,
) -> list[Document]:
    """Every example on a page, or the one of that number (from 1), as a document.

    Args:
        text: the page, or just the layers.
        report: takes the findings.
        values: contents for input ports; they win over the page's comments.
        version: ``"ReduceL2-4"``, ``"opset4"`` or ``4``, where tag and page do not say.
        name: the file, for messages; a versioned name in it counts.
        example: which one to read.
        limits: bounds on what the page may ask for.

    Raises:
        ParseError: if there is no layer, or XML that cannot be parsed.
        InputError: if there is no such example or port.
    """
    found = list(excerpts(text, name))
    if not found:
        raise ParseError("there is no <layer> in it", code=Code.UNREADABLE, where=Location(name))
    if example is not None:
        if not 1 <= example <= len(found):
            raise InputError(f"there is no example {example}", hint=f"the page has {len(found)}")
        found = [found[example - 1]]
    said = _said(version, f"{Path(name).name} {text}")
    return [_Builder(name, said, values or {}, report, limits).build(e) for e in found]


def _said(version: str | int | None, page: str) -> tuple[str | None, str]:
    """The version asked for, as an opset, and the text to search for versioned names."""
    if version is None:
        return None, page
    number = re.search(r"(\d+)$", str(version))
    if number is None:
        raise InputError(f"{version!r} is no version", hint="give 'ReduceL2-4', 'opset4' or 4")
    return f"opset{number.group(1)}", page


@dataclass(slots=True)
class _Builder:
    file: str
    said: tuple[str | None, str]
    values: Values
    report: Diagnostics
    limits: Limits
    layers: dict[int, Layer] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    used: set[Any] = field(default_factory=set)

    def build(self, excerpt: Excerpt) -> Document:
        root = parse(excerpt.xml, self.file, comments=True)
        elements = list(root.iterfind("layers/layer"))
        reader = LayerReader(self.file, self.report, Weights(), self.limits)
        for index, element in enumerate(elements):
            if element.get("id") is None:
                element.set("id", str(index))
            layer = reader.layer(element, self._version(element))
            self.layers[layer.id] = _name_outputs(layer, alone=len(elements) == 1)
        own = list(zip(list(self.layers.values()), elements, strict=True))
        self.edges += read_edges(root, self.layers, self.file, self.report)
        fed = {edge.target for edge in self.edges}
        read = {edge.source for edge in self.edges}
        for layer, element in own:
            self._feed(layer, element, fed, alone=len(own) == 1)
        self._refuse_unused(own)
        for layer, _ in own:
            self._end(layer, read)
        graph = Graph(self.layers.values(), self.edges)
        title = ", ".join(layer.where.operation for layer, _ in own[:3])
        return Document(graph, title, self.file, 11, MappingProxyType({}))

    def _version(self, element: Element) -> str | None:
        """The version of a layer's operation: the tag's, the caller's, the page's, or the newest."""
        if element.get("version"):
            return None
        asked, page = self.said
        if asked:
            return asked
        type = element.get("type", "")
        if found := re.search(rf"\b{re.escape(type)}-(\d{{1,4}})\b", page, re.IGNORECASE):
            return f"opset{found.group(1)}"
        newest = registry.resolve(type)
        if newest is None:
            return None
        where = Location(self.file, element.sourceline, element.get("name") or element.get("id"), newest.name)
        self.report.warning(
            Code.GUESSED_VERSION,
            f"no version is given; taken for {newest.versioned_name()}, the newest",
            where,
            f'say which: version={newest.versioned_name()!r}, or version="opset{newest.since}" in the tag',
        )
        return f"opset{newest.since}"

    def _feed(self, layer: Layer, element: Element, fed: set[Port], alone: bool) -> None:
        """Make a Parameter or a Constant for each input port that nothing feeds."""
        types = _elements(layer)
        ports = element.findall("input/port")
        for index, (spec, port) in enumerate(zip(layer.inputs, ports, strict=True)):
            if Port(layer.id, index) in fed:
                continue
            name = _port_name(layer, index)
            where = Location(self.file, spec.line, layer.name, layer.where.operation)
            given = self._given(layer, spec, name, port)
            full = name if alone else f"{layer.name}.{name}"
            source = self._constant(given, types[index], spec, full, where) if given is not None else None
            source = source or _parameter(self._free_id(), full, types[index], spec, where)
            self.layers[source.id] = source
            self.edges.append(Edge(Port(source.id, 0), Port(layer.id, index)))

    def _given(self, layer: Layer, spec: PortSpec, name: str, port: Element) -> Any:
        for key in ((layer.id, spec.id), spec.id, name):
            if key in self.values:
                self.used.add(key)
                return self.values[key]
        found = (value_in(comment) for comment in _comments(port))
        return next((v for v in found if v is not None and _plausible(v, spec)), None)

    def _constant(
        self, given: Any, element: ElementType, spec: PortSpec, name: str, where: Location
    ) -> Layer | None:
        array = _array(given, element, spec, where)
        declared = spec.type.shape if spec.type else PartialShape.dynamic()
        if declared.is_static and math.prod(declared.static) == array.size:
            array = array.reshape(declared.static)
        elif not declared.contains(array.shape):
            self.report.error(
                Code.PORT_VALUE,
                f"input port {spec.id} has the value {array.tolist()}, but dims {declared}",
                where,
                "correct the value or the dims",
            )
            return None
        op = Constant(
            element_type=element, shape=PartialShape(array.shape), offset=0, size=array.nbytes, value=array
        )
        return _outer(self._free_id(), name, op, where)

    def _refuse_unused(self, own: Sequence[tuple[Layer, Element]]) -> None:
        for key in self.values.keys() - self.used:
            known = ", ".join(
                f"{spec.id} ({_port_name(layer, i)})"
                for layer, _ in own
                for i, spec in enumerate(layer.inputs)
            )
            raise InputError(f"there is no input port {key!r} to give a value to", hint=f"ports are {known}")

    def _end(self, layer: Layer, read: set[Port]) -> None:
        for index in range(len(layer.outputs)):
            if Port(layer.id, index) in read:
                continue
            number = self._free_id()
            where = replace(layer.where, layer=f"Result_{number}", operation="Result-1")
            end = Layer(number, f"Result_{number}", "Result", "opset1", Result(), where, (PortSpec(0),))
            self.layers[number] = end
            self.edges.append(Edge(Port(layer.id, index), Port(number, 0)))

    def _free_id(self) -> int:
        return max(self.layers, default=-1) + 1


def _name_outputs(layer: Layer, alone: bool) -> Layer:
    """Outputs without a tensor name get that of the operation's port."""
    names = [p.name for p in layer.op.outputs] if layer.op else []
    names += [f"output{i}" for i in range(len(names), len(layer.outputs))]
    prefix = "" if alone else f"{layer.name}."
    outputs = [
        port if port.names else replace(port, names=(prefix + name,))
        for port, name in zip(layer.outputs, names, strict=False)
    ]
    return replace(layer, outputs=tuple(outputs))


def _port_name(layer: Layer, index: int) -> str:
    port = layer.op.port_of(index) if layer.op else None
    if port is None:
        return f"input{index}"
    return f"{port.name}{index}" if port.variadic else port.name


def _elements(layer: Layer) -> list[ElementType]:
    """Element types for the inputs: the port's precision, else what its type variable is elsewhere."""
    said = [spec.type.element if spec.type else ElementType.dynamic for spec in layer.inputs]
    if layer.op is None:
        return [e if e is not ElementType.dynamic else ElementType.f32 for e in said]
    ports = [layer.op.port_of(i) for i in range(len(said))]
    bound = {
        p.element.name: e for p, e in zip(ports, said, strict=True) if p and e is not ElementType.dynamic
    }
    return [
        e if e is not ElementType.dynamic or p is None else bound.get(p.element.name, p.element.default)
        for p, e in zip(ports, said, strict=True)
    ]


def _array(given: Any, element: ElementType, spec: PortSpec, where: Location) -> Array:
    try:
        numbers = np.asarray(given)
        array = numbers.astype(element.dtype)
        if numbers.dtype.kind != "f" or not element.is_integral or (array == numbers).all():
            return array
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"the value {given!r} of input port {spec.id} is not of type {element}", where=where)


def _comments(port: Element) -> list[str]:
    """The comments inside a port, and the one behind it on the same line."""
    comments = list(port.iterchildren(Comment))
    after = port.getnext()
    if after is not None and after.tag is Comment and "\n" not in (port.tail or ""):
        comments.append(after)
    return [comment.text or "" for comment in comments]


def _plausible(value: list[float], spec: PortSpec) -> bool:
    """A single number in a comment is a value only where one element is expected."""
    shape = spec.type.shape if spec.type else PartialShape.dynamic()
    return shape.rank in (None, 0, 1) and (len(value) != 1 or not shape.is_static or shape in ((), (1,)))


def _parameter(number: int, name: str, element: ElementType, spec: PortSpec, where: Location) -> Layer:
    shape = spec.type.shape if spec.type else PartialShape.dynamic()
    return _outer(number, name, Parameter(element_type=element, shape=shape), where)


def _outer(number: int, name: str, op: Parameter | Constant, where: Location) -> Layer:
    """A layer that the page does not print."""
    port = PortSpec(0, TensorType(op.element_type, op.shape), (name,), where.line)
    place = replace(where, layer=name, operation=op.versioned_name())
    return Layer(number, name, op.name, "opset1", op, place, (), (port,))
