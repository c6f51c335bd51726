"""Edges: which make sense, and which inputs are left open by one that does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..codes import Code
from ..diagnostics import Diagnostics, Location, Mark
from ..errors import ParseError
from ..ir.graph import Edge, Layer, Port
from .document import Element, integer

__all__ = ["Wiring", "read_edges"]

_FROM, _TO = "from", "to"
_OTHER = {_FROM: _TO, _TO: _FROM}
_SIDES = {_FROM: ("starts", "output"), _TO: ("ends", "input")}


@dataclass(slots=True)
class Wiring:
    """The edges that make sense, and the inputs that would have one if all did."""

    edges: list[Edge] = field(default_factory=list)
    severed: set[Port] = field(default_factory=set)
    """Inputs about which something has been reported, so that nobody need ask for their edge again."""


def read_edges(
    root: Element, layers: Mapping[int, Layer], file: str, report: Diagnostics, unsure: frozenset[int] | None
) -> Wiring:
    """The ``<edges>`` of a graph; those that make no sense are reported.

    Args:
        root: the element with ``<edges>`` in it.
        layers: the layers of the graph, by id.
        file: its name, for messages.
        report: takes the findings.
        unsure: layers of which not all could be read, so that their ports are not all known; ``None`` if
            there are layers of which not even the id is known. What has been said of them is not said
            again of their edges.
    """
    reading = _Reading(layers, file, report, unsure)
    for element in root.iterfind("edges/edge"):
        reading.edge(element)
    reading.end()
    return Wiring([edge for edge, _ in reading.fed.values()], reading.severed)


@dataclass(slots=True)
class _Reading:
    layers: Mapping[int, Layer]
    file: str
    report: Diagnostics
    unsure: frozenset[int] | None
    fed: dict[Port, tuple[Edge, int]] = field(default_factory=dict)
    severed: set[Port] = field(default_factory=set)
    lost: dict[int, list[tuple[str, Element]]] = field(default_factory=dict)
    """Edges that name a layer that does not exist, by its id."""
    twice: list[tuple[Element, Port, int]] = field(default_factory=list)
    """Edges that end where another does, the input, and the line of the other."""
    astray: bool = False
    """Whether some edge does not end where it should, so that an input without one is no wonder."""
    _places: dict[str, dict[tuple[int, int], Port]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        layers = self.layers.values()
        outputs = {(la.id, port.id): Port(la.id, i) for la in layers for i, port in enumerate(la.outputs)}
        inputs = {(la.id, port.id): Port(la.id, i) for la in layers for i, port in enumerate(la.inputs)}
        self._places = {_FROM: outputs, _TO: inputs}

    def edge(self, element: Element) -> None:
        try:
            source, target = self._end(element, _FROM), self._end(element, _TO)
        except ParseError as problem:
            self.report.found.append(problem.diagnostic)
            self.astray = True
            return
        if target is None:
            return
        if source is None:
            self.severed.add(target)
        elif target in self.fed:  # which of the two is wrong is not known; so neither is followed
            self.severed.add(target)
            self.twice.append((element, target, self.fed[target][1]))
            self.astray = True
        else:
            self.fed[target] = Edge(source, target), element.sourceline

    def _end(self, element: Element, end: str) -> Port | None:
        layer = integer(element, f"{end}-layer", self.file)
        port = integer(element, f"{end}-port", self.file)
        found = self._places[end].get((layer, port))
        if found is None and layer not in self.layers:
            self.lost.setdefault(layer, []).append((end, element))
            self.astray |= end == _TO
        elif found is None and self.unsure is not None and layer not in self.unsure:
            self._no_port(element, end, self.layers[layer], port)
        return found

    def _no_port(self, element: Element, end: str, layer: Layer, port: int) -> None:
        verb, side = _SIDES[end]
        ports = layer.outputs if end == _FROM else layer.inputs
        known = ", ".join(str(p.id) for p in ports)
        self.report.error(
            Code.DANGLING_EDGE,
            f"the edge {verb} at {side} port {port}, which the layer does not have",
            replace(layer.where, line=element.sourceline),
            f"its {side} ports are {known}" if known else f"it has no {side} ports",
            mark=Mark(attribute=f"{end}-port"),
        )
        if end == _TO:
            self._sever(layer)

    def _say_twice(self, element: Element, target: Port, line: int, meant: str) -> None:
        layer = self.layers[target.layer]
        number = layer.inputs[target.number].id
        self.report.error(
            Code.CONNECTED_TWICE,
            f"input port {number} already has an edge, at line {line}",
            replace(layer.where, line=element.sourceline),
            meant,
            mark=Mark(attribute="to-port"),
        )

    def _sever(self, layer: Layer) -> None:
        """An edge that is wrong may belong to any input of the layer that has none."""
        self.severed |= {Port(layer.id, i) for i in range(len(layer.inputs))} - self.fed.keys()

    def end(self) -> None:
        """Say what is wrong with edges to and from nowhere; drop those of which one of two is wrong."""
        meant = self._meant() if self.twice else ""
        for element, target, line in self.twice:
            if self.unsure is not None and target.layer not in self.unsure:
                self._say_twice(element, target, line, meant)
        self.fed = {port: edge for port, edge in self.fed.items() if port not in self.severed}
        if self.lost and self.unsure is not None and not self._mistaken_id():
            meant, alone = self._meant(), self._alone()
            for number, ends in self.lost.items():
                for end, element in ends:
                    self._nowhere(end, element, number, meant, alone)
        if self.unsure is None or self.astray:
            self.severed |= set(self._open(self.layers.values()))

    def _nowhere(self, end: str, element: Element, number: int, meant: str, alone: Sequence[Layer]) -> None:
        other = self.layers.get(integer(element, f"{_OTHER[end]}-layer", self.file))
        where = Location(self.file) if other is None else other.where
        hint = meant if end == _TO else ""
        if not hint and len(alone) == 1:
            hint = f"layer {alone[0].name!r}, whose id is {alone[0].id}, has no edge; it may be meant"
        self.report.error(
            Code.DANGLING_EDGE,
            f"the edge {_SIDES[end][0]} at layer {number}, which does not exist",
            replace(where, line=element.sourceline),
            hint,
            mark=Mark(attribute=f"{end}-layer"),
        )

    def _alone(self) -> list[Layer]:
        """Layers that could have edges and have none."""
        connected = {port.layer for edge, _ in self.fed.values() for port in edge}
        connected |= {port.layer for port in self.severed}
        for ends in self.lost.values():
            connected |= {integer(e, f"{_OTHER[end]}-layer", self.file) for end, e in ends}
        return [la for la in self.layers.values() if la.id not in connected and (la.inputs or la.outputs)]

    def _mistaken_id(self) -> bool:
        """Whether all that is missing is one layer, and one layer has no edges: its id is wrong."""
        alone = self._alone()
        if len(self.lost) != 1 or len(alone) != 1:
            return False
        ((number, ends),) = self.lost.items()
        if len(ends) == 1:
            return False  # the edge may be wrong as well
        lines = sorted({element.sourceline for _, element in ends})
        self.report.error(
            Code.DANGLING_EDGE,
            f"no edge names the layer, whose id is {alone[0].id}; "
            f"edges name layer {number}, which does not exist (line {', '.join(map(str, lines[:3]))})",
            alone[0].where,
            f"if that is this layer, give it the id {number}",
            mark=Mark(attribute="id"),
        )
        self.severed |= set(self._open(alone))
        return True

    def _meant(self) -> str:
        """For an edge that ends where none should: the input that lacks one, if there is just one."""
        missing = self._open(self.layers.values())
        if len(missing) != 1:
            return ""
        layer = self.layers[missing[0].layer]
        number = layer.inputs[missing[0].number].id
        return f"input port {number} of layer {layer.name!r} has no edge; it may be meant"

    def _open(self, layers: Iterable[Layer]) -> list[Port]:
        ports = (Port(layer.id, i) for layer in layers for i in range(len(layer.inputs)))
        return [port for port in ports if port not in self.fed and port not in self.severed]
