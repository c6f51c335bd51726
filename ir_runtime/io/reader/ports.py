"""Reading of ports (their ids, names and declared types), and of the edges between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from ..._util.deadline import check_periodically
from ...codes import Code
from ...diagnostics import Diagnostics, Location, Mark
from ...errors import ParseError
from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.graph import Edge, Layer, Port, PortSpec, RtInfo
from ...ir.shape import PartialShape
from ...ir.tensor import TensorType, span_of
from ...limits import Limits
from .document import Element, attributes, integer

__all__ = [
    "NO_INFO",
    "PortReader",
    "Wiring",
    "check_size",
    "dim_text",
    "first_info",
    "read_edges",
    "rt_info",
    "tensor_names",
]


@dataclass(frozen=True, slots=True)
class PortReader:
    """Reads the ports of one file, and adds errors to ``report``."""

    file: str
    report: Diagnostics
    limits: Limits
    types: dict[tuple[str | None, ...], TensorType] = field(default_factory=dict)
    """Cache of types by precision and dims, as many ports of a model declare the same type."""

    def read(self, groups: Sequence[Element], side: str, where: Location) -> list[PortSpec]:
        """Read the ports of a layer; ``groups`` are its elements ``<input>`` or ``<output>``, as ``side`` names them."""
        ports = [self._port(port, where) for group in groups for port in group if port.tag == "port"]
        if len(ports) > 1 and len({port.id for port in ports}) < len(ports):
            self._twice(ports, side, where)
        return ports

    def _port(self, port: Element, where: Location) -> PortSpec:
        number = integer(port, "id", self.file)
        dims = [dim_text(dim) for dim in port if dim.tag == "dim"]
        names = port.get("names")
        return PortSpec(
            number,
            self._type(port, dims, where),
            tensor_names(names) if names else (),
            port.sourceline,
            rt_info(port) if len(port) > len(dims) else NO_INFO,
        )

    def _twice(self, ports: Sequence[PortSpec], side: str, where: Location) -> None:
        seen = set()
        for port in ports:
            if port.id in seen:
                self.report.error(Code.DUPLICATE_ID, f"two {side} ports have the id {port.id}", where)
            seen.add(port.id)

    def _type(self, port: Element, dims: Sequence[str], where: Location) -> TensorType:
        """Return the declared type; without dims the rank is unknown, as files declare scalars in the same way."""
        key = (port.get("precision"), *dims)
        type = self.types.get(key)
        if type is None:
            before = len(self.report)
            type = TensorType(self._precision(port, where), self._dims(port, dims, where))
            if len(self.report) == before:
                self.types[key] = type
        return type

    def _precision(self, port: Element, where: Location) -> ElementType:
        text = port.get("precision")
        try:
            return ElementType.of_port(text) if text else ElementType.dynamic
        except ValueError:
            self._bad_port(
                port,
                f"precision {_brief([text])}, which is not an element type",
                "expected FP32, FP16, BF16, I64, I32, I8, U8, BOOL or the like",
                Mark("precision"),
                where,
            )
            return ElementType.dynamic

    def _dims(self, port: Element, texts: Sequence[str], where: Location) -> PartialShape:
        if not texts:
            return PartialShape.dynamic()
        place = replace(where, line=port.sourceline)
        if len(texts) > self.limits.rank:
            self.limits.check("rank", len(texts), place)
        try:
            shape = PartialShape(texts)
        except ValueError:
            self._bad_port(
                port,
                f"dims {_brief(texts)}, which cannot be read",
                "dims must be integers from 0 to 2^63-1, or -1 where any length is allowed",
                Mark(dim=next((i for i, text in enumerate(texts) if not _is_length(text)), None)),
                where,
            )
            return PartialShape.dynamic()
        if span_of(shape) > self.limits.elements:
            check_size(shape, self.limits, place)
        return shape

    def _bad_port(self, port: Element, what: str, hint: str, mark: Mark, where: Location) -> None:
        side = port.getparent().tag
        number = integer(port, "id", self.file)
        mark = replace(mark, port=number, output=side == "output")
        place = replace(where, line=port.sourceline)
        self.report.error(Code.BAD_ELEMENT, f"{side} port {number} has {what}", place, hint, mark=mark)


def check_size(shape: PartialShape, limits: Limits, where: Location | None = None) -> None:
    """Check the rank and size of a tensor, with dynamic dims at their minimum.

    Raises:
        LimitError: if they exceed the limits.
    """
    if shape.rank is None:
        return
    limits.check("rank", shape.rank, where)
    limits.check("elements", span_of(shape), where)


def dim_text(dim: Element) -> str:
    """Return the text of a ``<dim>``; on a page it may contain a comment."""
    return (dim.xpath("string()") if len(dim) else dim.text) or ""


def _is_length(text: str) -> bool:
    try:
        Dimension(text)
    except ValueError:
        return False
    return True


def _brief(texts: Sequence[str | None]) -> str:
    """Format strings from a file for a message: the first eight, each truncated."""
    return ", ".join(repr(text and text[:20]) for text in texts[:8]) + (" …" if len(texts) > 8 else "")


def tensor_names(text: str | None) -> tuple[str, ...]:
    r"""Split a ``names`` attribute at commas that are not escaped by a backslash.

    >>> tensor_names(r"x,y\,z")
    ('x', 'y,z')
    """
    if not text:
        return ()
    return tuple(n.replace("\\,", ",") for n in re.split(r"(?<!\\),", text))


def rt_info(element: Element) -> RtInfo:
    """Return ``<rt_info>`` as nested read-only mappings of strings."""
    return first_info(list(element.iterchildren("rt_info")))


def first_info(elements: Sequence[Element]) -> RtInfo:
    """Return the first of several ``<rt_info>`` elements, as `rt_info` does; empty if there are none."""
    return _entries(elements[0]) if elements else NO_INFO


NO_INFO: RtInfo = MappingProxyType({})


def _entries(element: Element) -> RtInfo:
    return MappingProxyType(
        {str(child.get("name", child.tag)): _entry(child) for child in element.iterchildren("*")}
    )


def _entry(element: Element) -> RtInfo | str:
    if len(element):
        return _entries(element)
    rest = {key: value for key, value in attributes(element).items() if key != "name"}
    return rest["value"] if rest.keys() == {"value"} else MappingProxyType(rest)


_FROM, _TO = "from", "to"
_OTHER = {_FROM: _TO, _TO: _FROM}
_SIDES = {_FROM: ("starts", "output"), _TO: ("ends", "input")}
# Minimum number of invalid edges of a kind to describe, even if the limit on findings is lower.
_FEW = 10
_NONE: Mapping[int, Port] = {}
# Maximum number of ports listed in a message.
_SHOWN = 100


@dataclass(slots=True)
class Wiring:
    """The valid edges, and the inputs that invalid edges leave unconnected."""

    edges: list[Edge] = field(default_factory=list)
    severed: set[Port] = field(default_factory=set)
    """Inputs with a reported error, whose missing edges are not reported again."""


def read_edges(
    root: Element,
    layers: Mapping[int, Layer],
    file: str,
    report: Diagnostics,
    unsure: frozenset[int] | None,
    left_out: frozenset[int] = frozenset(),
) -> Wiring:
    """Read the ``<edges>`` of a graph; report invalid ones.

    Args:
        root: the element that contains ``<edges>``.
        layers: the layers of the graph, by id.
        file: the name of the file, for messages.
        report: collects the findings.
        unsure: ids of layers that were read only in part, whose unknown ports are not reported; ``None`` if the id of some layer is unreadable.
        left_out: ids of skipped layers; edges to them are ignored.
    """
    reading = _Reading(layers, file, report, unsure, left_out)
    for element in check_periodically(root.iterfind("edges/edge")):
        reading.edge(element)
    reading.end()
    return Wiring([edge for edge, _ in reading.fed.values()], reading.severed)


class _Lost(NamedTuple):
    """An edge to or from a layer that does not exist."""

    end: str
    number: int
    """The id of the missing layer."""
    other: int
    """The layer id at the other end."""
    line: int


@dataclass(slots=True)
class _Reading:
    """The state of reading the edges of a file.

    Errors are collected by kind, and reported after all edges are read.
    """

    layers: Mapping[int, Layer]
    file: str
    report: Diagnostics
    unsure: frozenset[int] | None
    left_out: frozenset[int] = frozenset()
    fed: dict[Port, tuple[Edge, int]] = field(default_factory=dict)
    severed: set[Port] = field(default_factory=set)
    doubtful: set[int] = field(default_factory=set)
    """Layers with an edge to an unknown input port: it may be intended for any of their inputs."""
    lost: list[_Lost] = field(default_factory=list)
    """Dangling edges, up to the number to describe."""
    losing: Counter[str] = field(default_factory=Counter)
    """The number of dangling edges at each end."""
    touched: set[int] = field(default_factory=set)
    """Layers at the other ends of dangling edges."""
    twice: list[tuple[Port, int, int]] = field(default_factory=list)
    """Inputs with a second edge, its line, and the line of the first, up to the number to describe."""
    doubled: int = 0
    """The number of second edges."""
    astray: bool = False
    """Whether some edge is invalid, which explains inputs without edges."""
    outputs: dict[int, dict[int, Port]] = field(default_factory=dict)
    inputs: dict[int, dict[int, Port]] = field(default_factory=dict)
    """Ports by layer id and port id. One table by pairs of ids would take quadratic time for ids chosen so that all pairs have
    the same hash; single integers of up to 18 digits have different hashes."""

    def __post_init__(self) -> None:
        for la in self.layers.values():
            self.outputs[la.id] = {port.id: Port(la.id, i) for i, port in enumerate(la.outputs)}
            self.inputs[la.id] = {port.id: Port(la.id, i) for i, port in enumerate(la.inputs)}

    def edge(self, element: Element) -> None:
        try:
            giver, taker = self._read_end(element, _FROM), self._read_end(element, _TO)
        except ParseError as problem:
            self.report.add(problem.diagnostic)
            self.astray = True
            return
        if taker[0] in self.left_out:
            return
        if (source := self.outputs.get(giver[0], _NONE).get(giver[1])) is None:
            self._missing(element, _FROM, giver, taker[0])
        if (target := self.inputs.get(taker[0], _NONE).get(taker[1])) is None:
            self._missing(element, _TO, taker, giver[0])
        elif source is None:
            self.severed.add(target)
        elif target in self.fed:  # either edge may be wrong, so both are dropped
            self._keep_twice(element, target)
        else:
            self.fed[target] = Edge(source, target), element.sourceline

    def _read_end(self, element: Element, end: str) -> tuple[int, int]:
        """Return the ids of the layer and the port at one end."""
        return integer(element, f"{end}-layer", self.file), integer(element, f"{end}-port", self.file)

    def _keep_twice(self, element: Element, target: Port) -> None:
        self.severed.add(target)
        self.astray = True
        self.doubled += 1
        if len(self.twice) < self._reported:
            self.twice.append((target, element.sourceline, self.fed[target][1]))

    @property
    def _reported(self) -> int:
        """Maximum number of findings of a kind to describe; others are only counted."""
        return max(self.report.most, _FEW)

    def _missing(self, element: Element, end: str, end_ids: tuple[int, int], other: int) -> None:
        """Record an edge with an unknown port at one end; ``other`` is the id of the layer at the other end."""
        number, port = end_ids
        if number in self.left_out:
            return
        if number not in self.layers:
            self._lose(element, end, number, other)
        elif self.unsure is not None and number not in self.unsure:
            self._no_port(element, end, self.layers[number], port)

    def _lose(self, element: Element, end: str, number: int, other: int) -> None:
        self.losing[end] += 1
        self.astray |= end == _TO
        if other in self.layers:
            self.touched.add(other)
        first = self.lost[0].number if self.lost else number
        if len(self.lost) < self._reported or (number != first and self.lost[-1].number == first):
            self.lost.append(_Lost(end, number, other, element.sourceline))

    def _no_port(self, element: Element, end: str, layer: Layer, port: int) -> None:
        verb, side = _SIDES[end]
        ids = self._port_ids(layer, end)
        self.report.error(
            Code.DANGLING_EDGE,
            f"the edge {verb} at {side} port {port}, which the layer does not have",
            replace(layer.where, line=element.sourceline),
            f"its {side} ports are {ids}" if ids else f"it has no {side} ports",
            mark=Mark(attribute=f"{end}-port"),
        )
        if end == _TO:
            self.doubtful.add(layer.id)

    def _port_ids(self, layer: Layer, end: str) -> str:
        """Format the ids of the ports on one side, truncated if there are many."""
        ports = layer.outputs if end == _FROM else layer.inputs
        shown = ", ".join(str(port.id) for port in ports[:_SHOWN])
        return shown if len(ports) <= _SHOWN else f"{shown}, … ({len(ports)} in all)"

    def _say_twice(self, target: Port, line: int, first: int, hint: str) -> None:
        layer = self.layers[target.layer]
        number = layer.inputs[target.number].id
        self.report.error(
            Code.CONNECTED_TWICE,
            f"input port {number} already has an edge, at line {first}",
            replace(layer.where, line=line),
            hint,
            mark=Mark(attribute="to-port"),
        )

    def end(self) -> None:
        """Report dangling edges; drop both of two edges that end at the same input."""
        self.severed |= set(self._open(self.layers[number] for number in self.doubtful))
        if self.twice:
            self._end_twice(self._meant())
        self.fed = {port: edge for port, edge in self.fed.items() if port not in self.severed}
        if self.lost and self.unsure is not None and not self._mistaken_id():
            self._end_lost()
        if self.unsure is None or self.astray:
            self.severed |= set(self._open(self.layers.values()))

    def _end_twice(self, hint: str) -> None:
        """Report inputs with two edges."""
        if self.unsure is None:
            return
        for target, line, first in self.twice:
            if target.layer not in self.unsure:
                self._say_twice(target, line, first, hint)
        self.report.count_more(Code.CONNECTED_TWICE, self.doubled - len(self.twice))

    def _end_lost(self) -> None:
        suggestion, alone = self._meant(), self._alone()
        for lost in self.lost:
            self._nowhere(lost, suggestion, alone)
        self.report.count_more(Code.DANGLING_EDGE, self.losing.total() - len(self.lost))

    def _nowhere(self, lost: _Lost, suggestion: str, alone: Sequence[Layer]) -> None:
        other = self.layers.get(lost.other)
        where = Location(self.file) if other is None else other.where
        hint = suggestion if lost.end == _TO else ""
        if not hint and len(alone) == 1:
            hint = (
                f"layer {alone[0].name!r}, whose id is {alone[0].id}, has no edge; it may be the intended one"
            )
        self.report.error(
            Code.DANGLING_EDGE,
            f"the edge {_SIDES[lost.end][0]} at layer {lost.number}, which does not exist",
            replace(where, line=lost.line),
            hint,
            mark=Mark(attribute=f"{lost.end}-layer"),
        )

    def _alone(self) -> list[Layer]:
        """Return the layers that have ports but no edges."""
        connected = {port.layer for edge, _ in self.fed.values() for port in edge}
        connected |= {port.layer for port in self.severed} | self.touched
        return [la for la in self.layers.values() if la.id not in connected and (la.inputs or la.outputs)]

    def _mistaken_id(self) -> bool:
        """Report a wrong layer id, if edges name one missing layer and one layer has no edges; return whether it was."""
        alone = self._alone()
        number = self.lost[0].number
        if len(alone) != 1 or any(lost.number != number for lost in self.lost):
            return False
        if len(self.lost) == 1:
            return False  # the edge may be wrong as well
        lines = sorted({lost.line for lost in self.lost})
        self.report.error(
            Code.DANGLING_EDGE,
            f"no edge names the layer, whose id is {alone[0].id}; "
            f"edges name layer {number}, which does not exist (line{'s' * (len(lines) > 1)} {', '.join(map(str, lines[:3]))})",
            alone[0].where,
            f"if that is this layer, give it the id {number}",
            mark=Mark(attribute="id"),
        )
        self.severed |= set(self._open(alone))
        return True

    def _meant(self) -> str:
        """Return a hint naming the only unconnected input of the graph; empty if there are several."""
        missing = self._open(self.layers.values())
        if len(missing) != 1:
            return ""
        layer = self.layers[missing[0].layer]
        number = layer.inputs[missing[0].number].id
        return f"input port {number} of layer {layer.name!r} has no edge; it may be the intended one"

    def _open(self, layers: Iterable[Layer]) -> list[Port]:
        ports = (Port(layer.id, i) for layer in layers for i in range(len(layer.inputs)))
        return [port for port in ports if port not in self.fed and port not in self.severed]
