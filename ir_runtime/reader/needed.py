"""Find the layers that no output needs: OpenVINO creates none of them, whatever is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..deadline import check_periodically
from ..diagnostics import Diagnostic, Diagnostics, More, Severity
from ..errors import ParseError
from ..ir.graph import Graph
from .document import Element, integer, parse
from .layers import FORMER_IR
from .model import Document, read_net
from .source import Source

__all__ = ["downgrade", "read_needed", "unneeded_ids"]

_ENDS = ("Result", "Assign")
_ROOTS = (*_ENDS, "Parameter")
_UNNEEDED = "no output needs this layer, so it is left out"


def read_needed(document: Document, source: Source, report: Diagnostics) -> Document | None:
    """Read a file again without the layers that no output needs; ``None`` if it has none.

    Args:
        document: what was read of the file.
        source: the file.
        report: takes the findings.
    """
    if document.is_page or document.version < FORMER_IR or not _has_unneeded(document.graph):
        return None
    root = parse(source.data, source.name, limits=document.limits)
    return read_net(root, source, document.weights, report, document.limits, needed_only=True)


def unneeded_ids(root: Element) -> frozenset[int]:
    """Return the ids of layers from which no edges lead to a Result or an Assign.

    A layer without output ports counts as an end, too: it may be a Result whose type is misspelled. Parameters are
    always created. Without ends, no layer is unneeded.
    """
    inputs: dict[int | None, list[int | None]] = {}
    for edge in check_periodically(root.iterfind("edges/edge")):
        inputs.setdefault(_id(edge, "to-layer"), []).append(_id(edge, "from-layer"))
    ids: set[int | None] = set()
    waiting: list[int | None] = []
    has_ends = False
    for layer in check_periodically(root.iterfind("layers/layer")):
        number, type = _id(layer, "id"), layer.get("type")
        ids.add(number)
        has_ends |= type in _ENDS
        if type in _ROOTS or layer.find("output/port") is None:
            waiting.append(number)
    if not has_ends:
        return frozenset()
    needed: set[int | None] = {None}
    while waiting:
        if (number := waiting.pop()) not in needed:
            needed.add(number)
            waiting += inputs.get(number, ())
    return frozenset(number for number in ids if number is not None and number not in needed)


def _id(element: Element, attribute: str) -> int | None:
    """Return the id of a layer; ``None`` if it cannot be read, which is reported elsewhere."""
    try:
        return integer(element, attribute, "")
    except ParseError:
        return None


def _has_unneeded(graph: Graph) -> bool:
    """Return whether some layers of a graph, or of a body in it, may be unneeded."""
    needed = graph.ancestors(layer.id for layer in graph.of_type(*_ROOTS))
    return len(needed) < len(graph) or any(
        _has_unneeded(body.graph) for layer in graph.layers.values() for body in layer.bodies()
    )


def downgrade(every: Diagnostics, needed: Diagnostics) -> None:
    """Add the findings of all layers to those of the layers that outputs need, of which none is an error: as warnings.

    Args:
        every: what was found while all layers were read.
        needed: what was found without the unneeded ones; takes the findings.
    """
    reported = {_identity(found) for found in needed}
    for found in every:
        if found.severity is Severity.ERROR:
            needed.add(_as_warning(found))
        elif _identity(found) not in reported:
            needed.add(found)
    for more in _beyond(every.more, needed.more):
        severity = Severity.WARNING if more.severity is Severity.ERROR else more.severity
        needed.count_more(more.code, more.times, severity)


def _identity(found: Diagnostic) -> tuple[str, int | None, str, str | None]:
    return found.code, found.line, found.message, found.layer


def _as_warning(found: Diagnostic) -> Diagnostic:
    return replace(found, severity=Severity.WARNING, message=f"{found.message}; {_UNNEEDED}")


def _beyond(every: Iterable[More], needed: Iterable[More]) -> Iterator[More]:
    """Return how many more findings of each kind there are in one list than in the other."""
    counted = {(more.code, more.severity): more.times for more in needed}
    for code, severity, times in every:
        yield More(code, severity, times - counted.get((code, severity), 0))
