"""Read bare ``<layer>`` elements as models.

Unconnected inputs become Parameters, or Constants if the page or the caller gives their value; unread outputs
get a Result. A Constant of the page becomes a Parameter, as its value is in no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from numpy.typing import ArrayLike

from ...codes import Code
from ...diagnostics import Diagnostics, Location
from ...errors import InputError, ParseError
from ...ir.element import ElementType
from ...ir.graph import Edge, Graph, Layer, Port, PortSpec
from ...limits import DEFAULT, Limits
from ...ops import registry
from ...ops.infrastructure.ends import Parameter, Result
from .document import Element, parse
from .edges import read_edges
from .layers import LayerReader, with_outputs
from .model import Document, read_graph
from .pages import Excerpt, excerpts
from .ports import check_size
from .unconnected import comment_value, constant, element_types, parameter, port_name
from .versions import Versions
from .weights import Weights

__all__ = ["Page", "Values", "read_fragments"]

Key: TypeAlias = int | str | tuple[int, int]
Values: TypeAlias = Mapping[Key, ArrayLike]
"""Values by port id, by (layer id, port id), or by the name of the port."""


class Page:
    """The examples on a documentation page, each of which can be read as a document.

    Args:
        text: the page, or just the layers.
        values: contents for input ports; they override the page's comments.
        version: ``"ReduceL2-4"``, ``"opset4"`` or ``4``, where tag and page do not say.
        name: the file, for messages; a versioned name in it is used, too.
        limits: the resource limits.

    Raises:
        ParseError: if it has no layer, or an unclosed one.
        InputError: if ``version`` is not a version.
        LimitError: if there are more examples than the limits allow.
    """

    def __init__(
        self,
        text: str,
        *,
        values: Values | None = None,
        version: str | int | None = None,
        name: str = "<fragment>",
        limits: Limits = DEFAULT,
    ) -> None:
        self._examples = list(islice(excerpts(text, name), limits.examples + 1))
        limits.check("examples", len(self._examples), Location(name))
        if not self._examples:
            raise ParseError("no <layer> element found", code=Code.UNREADABLE, where=Location(name))
        self.name, self._values, self._limits = name, values or {}, limits
        self._versions = Versions(version, f"{Path(name).name} {text}")

    def __len__(self) -> int:
        return len(self._examples)

    def read(self, example: int, report: Diagnostics) -> Document:
        """Read an example by its number, starting from 1; add findings to ``report``.

        Raises:
            ParseError: if it is not well-formed.
            InputError: if the example is unknown, or one of the values fits no port.
        """
        if not 1 <= example <= len(self):
            raise InputError(f"unknown example {example}", hint=f"the page has {len(self)}")
        builder = _Builder(self.name, self._versions, self._values, report, self._limits)
        return builder.build(self._examples[example - 1])


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
    """Read every example on a page, or the one with a number (from 1); see `Page`."""
    page = Page(text, values=values, version=version, name=name, limits=limits)
    if values and example is None and len(page) > 1:
        raise InputError(
            f"{name} has {len(page)} examples", hint="choose the one that the values are for with example="
        )
    numbers = range(1, len(page) + 1) if example is None else (example,)
    return [page.read(number, report) for number in numbers]


@dataclass(slots=True)
class _Builder:
    """Builds a graph from an example on a page; adds layers for unconnected ports."""

    file: str
    versions: Versions
    values: Values
    report: Diagnostics
    limits: Limits
    layers: dict[int, Layer] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    used: set[Key] = field(default_factory=set)
    free: Iterator[int] = field(default_factory=count)

    def build(self, excerpt: Excerpt) -> Document:
        root = parse(excerpt.xml, self.file, comments=True, limits=self.limits)
        elements = list(root.iterfind("layers/layer"))
        self.limits.check("layers", len(elements), Location(self.file, excerpt.line))
        _number(elements)
        reader = LayerReader(self.file, self.report, Weights(), self.limits, read_graph, version=None)
        own = []
        for element in elements:
            parsed = reader.read(element, self._version(element))
            if parsed is None:
                continue
            layer = _name_outputs(self._without_value(parsed), alone=len(elements) == 1)
            if layer.id in self.layers:
                self.report.error(
                    Code.DUPLICATE_ID, f"duplicate layer id {layer.id}: an earlier layer has it", layer.where
                )
                continue
            self.layers[layer.id] = layer
            own.append((layer, element))
        self.free = count(max(self.layers, default=-1) + 1)
        unsure = None if reader.nameless else frozenset(reader.unsure)
        wiring = read_edges(root, self.layers, self.file, self.report, unsure)
        self.edges += wiring.edges
        fed = {edge.target for edge in self.edges} | wiring.severed
        used = {edge.source for edge in self.edges}
        for layer, element in own:
            self._feed(layer, element, fed, alone=len(own) == 1)
        self._refuse_unused(own)
        for layer, _ in own:
            self._end(layer, used)
        self.layers |= {layer.id: with_outputs(layer) for layer in self.layers.values() if not layer.outputs}
        graph = Graph(self.layers.values(), self.edges, wiring.severed)
        title = ", ".join(layer.where.operation for layer, _ in own[:3])
        return Document(graph, title, self.file, 11, MappingProxyType({}), limits=self.limits, is_page=True)

    def _without_value(self, layer: Layer) -> Layer:
        """Replace a Constant by a Parameter: a page has no weights."""
        if layer.type != "Constant" or layer.op is None:
            return layer
        element, shape = (vars(layer.op)[name] for name in ("element_type", "shape"))
        check_size(shape, self.limits, layer.where)
        return replace(layer, type="Parameter", op=Parameter(element_type=element, shape=shape))

    def _version(self, element: Element) -> str:
        """Return a layer's version: from the tag, the caller or the page, or else the newest."""
        type = element.get("type", "")
        if declared := element.get("version") or self.versions.opset(type):
            return str(declared)
        newest = registry.resolve(type)
        if newest is None:
            return ""
        where = Location(self.file, element.sourceline, element.get("name") or element.get("id"), newest.name)
        self.report.warning(
            Code.GUESSED_VERSION,
            f"no version is given; assuming {newest.versioned_name()}, the newest",
            where,
            f'give it: version={newest.versioned_name()!r}, or version="opset{newest.since}" in the tag',
        )
        return f"opset{newest.since}"

    def _feed(self, layer: Layer, element: Element, fed: set[Port], alone: bool) -> None:
        """Add a Parameter or a Constant for each unconnected input port."""
        types = element_types(layer)
        ports = element.findall("input/port")
        # A layer that cannot be read has no ports, whatever its element has.
        for index, (spec, port) in enumerate(zip(layer.inputs, ports, strict=False)):
            if Port(layer.id, index) in fed:
                continue
            name = port_name(layer, index)
            full = name if alone else f"{layer.name}.{name}"
            value = self._take_value(((layer.id, spec.id), spec.id, name, full))
            if value is None:
                value = comment_value(port, spec)
            where = replace(layer.where, line=spec.line)
            source = self._source(full, value, types[index], spec, where)
            self.layers[source.id] = source
            self.edges.append(Edge(Port(source.id, 0), Port(layer.id, index)))

    def _take_value(self, keys: Iterable[Key]) -> ArrayLike | None:
        for key in keys:
            if key in self.values:
                self.used.add(key)
                return self.values[key]
        return None

    def _source(
        self, name: str, value: ArrayLike | None, type: ElementType, spec: PortSpec, where: Location
    ) -> Layer:
        number = next(self.free)
        layer = None
        if value is not None:
            layer = constant(number, name, value, type, spec, where, self.report)
        return layer or parameter(number, name, type, spec, where)

    def _refuse_unused(self, own: Sequence[tuple[Layer, Element]]) -> None:
        unused = [key for key in self.values if key not in self.used]
        if not unused:
            return
        ports = [f"{s.id} ({port_name(la, i)})" for la, _ in own for i, s in enumerate(la.inputs)]
        raise InputError(
            f"unknown input port {unused[0]!r}, which is given a value",
            hint=f"available are {', '.join(ports)}",
        )

    def _end(self, layer: Layer, used: set[Port]) -> None:
        for index in range(len(layer.outputs)):
            if Port(layer.id, index) in used:
                continue
            number = next(self.free)
            end = Layer.inserted(number, f"Result_{number}", Result(), layer.where, (PortSpec(0),))
            self.layers[number] = end
            self.edges.append(Edge(Port(layer.id, index), Port(number, 0)))


def _number(elements: Sequence[Element]) -> None:
    """Number the layers that have no id; ids of pages may use digits of any script."""
    for element in elements:
        text = element.get("id", "").strip()
        if text.isdecimal() and not text.isascii() and len(text) < 18:
            element.set("id", str(int(text)))
    used = {element.get("id", "").strip() for element in elements}
    free = (str(number) for number in count() if str(number) not in used)
    for element in elements:
        if element.get("id") is None:
            element.set("id", next(free))


def _name_outputs(layer: Layer, alone: bool) -> Layer:
    """Name outputs without a tensor name after the ports of the operation."""
    names = [p.name for p in layer.op.outputs] if layer.op else []
    names += [f"output{i}" for i in range(len(names), len(layer.outputs))]
    prefix = "" if alone else f"{layer.name}."
    outputs = [
        port if port.names else replace(port, names=(prefix + name,))
        for port, name in zip(layer.outputs, names, strict=False)
    ]
    return replace(layer, outputs=tuple(outputs))
