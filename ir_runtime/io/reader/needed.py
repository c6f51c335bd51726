"""Find the layers that no output needs: OpenVINO skips them, including any errors in them."""

from __future__ import annotations

from collections.abc import Iterable

from ..._util.deadline import check_periodically
from ...codes import Code
from ...diagnostics import Diagnostic
from ...errors import ParseError
from ...ir.graph import Graph
from .document import Element, integer

__all__ = ["may_be_unneeded", "unneeded_ids"]

_ENDS = ("Result", "Assign")
_ROOTS = (*_ENDS, "Parameter")


def unneeded_ids(root: Element) -> frozenset[int]:
    """Return the ids of layers that no Result or Assign depends on.

    A layer without output ports counts as an end, too: it may be a Result whose type is misspelled.
    Parameters are always kept. Without ends, no layer is unneeded.
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
    """Return the id of a layer, or ``None`` if unreadable, which is reported elsewhere."""
    try:
        return integer(element, attribute, "")
    except ParseError:
        return None


def may_be_unneeded(graph: Graph, errors: Iterable[Diagnostic]) -> bool:
    """Return whether all errors may concern unneeded layers of a graph or of a body in it.

    Invalid edges are missing from the graph, which cannot make more layers needed. Such an edge is reported
    at either end.
    """
    needed: set[str | None] = set()
    unneeded: set[str | None] = set()
    _collect_names(graph, needed, unneeded)
    return bool(unneeded) and (needed - unneeded).isdisjoint(
        error.layer for error in errors if error.code != Code.DANGLING_EDGE
    )


def _collect_names(graph: Graph, needed: set[str | None], unneeded: set[str | None]) -> None:
    ids = graph.ancestors(layer.id for layer in graph.of_type(*_ROOTS))
    for layer in check_periodically(graph.layers.values()):
        (needed if layer.id in ids else unneeded).add(layer.name)
        for body in layer.bodies() if layer.id in ids else ():
            _collect_names(body.graph, needed, unneeded)
