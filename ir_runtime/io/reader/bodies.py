"""Read the bodies of a layer, and their port maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...codes import Code
from ...diagnostics import Location
from ...errors import ParseError
from ...ir.graph import Body, Graph, PortSpec
from ...ir.port_map import PORT_MAPS, BackEdge, BodyInput, BodyOutput, Cut
from .document import Element, integer

__all__ = ["read_body"]


@dataclass(frozen=True, slots=True)
class _Ties:
    """The layers and ports that a port map may refer to."""

    graph: Graph
    inputs: Mapping[int, int]
    outputs: Mapping[int, int]
    where: Location

    def inner(self, entry: Element, attribute: str, type: str) -> int:
        """Return the id of a Parameter or Result of the body."""
        number = integer(entry, attribute, self.where.file)
        if number not in self.graph.layers or self.graph[number].type != type:
            ids = [layer.id for layer in self.graph.of_type(type)]
            ends = (
                f"the ids of its {type}s are {', '.join(map(str, ids[:8]))}" if ids else f"it has no {type}s"
            )
            raise self._missing(entry, attribute, f"{number}, but no {type} of the body has that id", ends)
        return number

    def outer(self, entry: Element, ports: Mapping[int, int]) -> int:
        """Return the index of a port of the layer."""
        number = integer(entry, "external_port_id", self.where.file)
        if number not in ports:
            numbers = ", ".join(map(str, ports)) or "none"
            what = f"{number}, but the layer has no such {entry.tag} port"
            raise self._missing(entry, "external_port_id", what, f"its {entry.tag} ports are {numbers}")
        return ports[number]

    def _missing(self, entry: Element, attribute: str, what: str, hint: str) -> ParseError:
        message = f"{attribute!r} of <{entry.tag}> is {what}"
        return ParseError(message, code=Code.DANGLING_EDGE, where=_place(entry, self.where), hint=hint)


def read_body(
    element: Element,
    name: str,
    graph: Graph,
    inputs: Sequence[PortSpec],
    outputs: Sequence[PortSpec],
    where: Location,
) -> Body:
    """Read the body ``name`` of a layer, with its port map.

    Raises:
        ParseError: if the port map names layers or ports that do not exist.
    """
    entries = element.find(PORT_MAPS[name])
    ins = [] if entries is None else list(entries.iterfind("input"))
    outs = [] if entries is None else list(entries.iterfind("output"))
    ties = _Ties(graph, _places(inputs), _output_places(outputs, outs, where), where)
    back = element.iterfind("back_edges/edge") if name == "body" else ()
    return Body(
        name,
        graph,
        tuple(
            BodyInput(
                ties.outer(e, ties.inputs), ties.inner(e, "internal_layer_id", "Parameter"), _cut(e, where)
            )
            for e in ins
            if not _purpose(e, where)
        ),
        tuple(
            BodyOutput(
                ties.outer(e, ties.outputs), ties.inner(e, "internal_layer_id", "Result"), _cut(e, where)
            )
            for e in outs
            if not _purpose(e, where)
        ),
        tuple(
            BackEdge(ties.inner(e, "from-layer", "Result"), ties.inner(e, "to-layer", "Parameter"))
            for e in back
        ),
        _special(ties, ins, "current_iteration", "Parameter"),
        _special(ties, outs, "execution_condition", "Result"),
    )


def _places(ports: Sequence[PortSpec]) -> dict[int, int]:
    return {port.id: place for place, port in enumerate(ports)}


def _output_places(ports: Sequence[PortSpec], entries: Sequence[Element], where: Location) -> dict[int, int]:
    """Return whether an entry of the port map only marks the iteration or the condition."""
    places = _places(ports)
    tied = [entry for entry in entries if not _purpose(entry, where)]
    ids = {integer(entry, "external_port_id", where.file, signed=True) for entry in tied}
    counted = dict(zip(range(len(ports)), range(len(ports)), strict=True))
    return counted if ids == counted.keys() and not ids <= places.keys() else places


def _purpose(entry: Element, where: Location) -> bool:
    """Return whether an entry of the port map has no port, but marks the iteration or the condition."""
    return entry.get("purpose") is not None and _number(entry, "external_port_id", where) == -1


def _special(ties: _Ties, entries: Sequence[Element], purpose: str, type: str) -> int | None:
    matches = [e for e in entries if e.get("purpose") == purpose]
    return ties.inner(matches[0], "internal_layer_id", type) if matches else None


def _cut(entry: Element, where: Location) -> Cut | None:
    if entry.get("axis") is None:
        return None
    names = [name for name in Cut._fields if entry.get(name) is not None]
    return Cut(**{name: _number(entry, name, where) for name in names})


def _number(entry: Element, attribute: str, where: Location) -> int:
    try:
        return integer(entry, attribute, where.file, signed=True)
    except ParseError as problem:
        raise ParseError(problem.message, code=problem.code, where=_place(entry, where)) from None


def _place(entry: Element, where: Location) -> Location:
    """Return the location of an entry of the port map."""
    return replace(where, line=entry.sourceline)
