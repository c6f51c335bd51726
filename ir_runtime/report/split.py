"""Split scopes that a path leaves and enters again, so that closed scopes are not on a cycle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import networkx as nx

from .items import Edge, Item, Items, Path, visible_edges

__all__ = ["split"]


def split(found: Items) -> None:
    """Give the parts of scopes separate paths, until no scope is on a cycle.

    Only layers with boxes count: edges that carry shapes would split scopes that belong together.
    """
    items = [item for item in found.items if item.is_drawn]
    above: dict[int, list[int]] = defaultdict(list)
    for edge in visible_edges(found):
        above[edge.target].append(edge.source)
    edges = list(visible_edges(found))
    depth = 0
    while any(len(item.path or ()) > depth for item in items):
        while cycles := _cycles(found, edges, depth):
            for groups in cycles:
                _break(items, above, groups, depth)
        depth += 1


def _cycles(found: Items, edges: Iterable[Edge], depth: int) -> list[list[Path]]:
    """Return the scopes at a depth that are on cycles, those of each cycle together."""
    quotient: nx.DiGraph[Path | int] = nx.DiGraph()
    for edge in edges:
        a, b = found.items[edge.source], found.items[edge.target]
        if (a.path or ())[:depth] != (b.path or ())[:depth]:
            continue
        one, other = _end(a, depth), _end(b, depth)
        if one != other:
            quotient.add_edge(one, other)
    rings = [ring for ring in nx.strongly_connected_components(quotient) if len(ring) > 1]
    return [sorted(end for end in ring if isinstance(end, tuple)) for ring in rings]


def _end(item: Item, depth: int) -> Path | int:
    """Return the scope at a depth that a layer is in, or the layer itself."""
    path = item.path or ()
    return path[: depth + 1] if len(path) > depth else item.index


def _break(items: list[Item], above: Mapping[int, list[int]], groups: list[Path], depth: int) -> None:
    """Split each scope of a cycle where paths enter it again; if none does, dissolve the smallest."""
    members = {group: {i.index for i in items if (i.path or ())[: depth + 1] == group} for group in groups}
    changed = False
    for inside in members.values():
        levels = _levels(items, above, inside)
        if any(levels.values()):
            changed = True
            _number(items, levels, depth)
    if not changed:
        smallest = min(groups, key=lambda group: (len(members[group]), group))
        for item in (item for item in items if item.index in members[smallest]):
            path = item.path or ()
            item.path = (*path[:depth], *path[depth + 1 :])


def _levels(items: list[Item], above: Mapping[int, list[int]], inside: Collection[int]) -> dict[int, int]:
    """Return how many times the longest path to each layer of a scope has left the scope and come back."""
    level: dict[int, int] = {}
    first, last = min(inside), max(inside)
    for index in (item.index for item in items if first <= item.index <= last):
        entered = [level[a] + (index in inside and a not in inside) for a in above[index] if a in level]
        if entered or index in inside:
            level[index] = max(entered, default=0)
    return {index: level[index] for index in inside}


def _number(items: list[Item], levels: Mapping[int, int], depth: int) -> None:
    for item in items:
        if item.index in levels:
            path = item.path or ()
            part = path[depth]
            part = part._replace(copy=(*part.copy, levels[item.index]))
            item.path = (*path[:depth], part, *path[depth + 1 :])
