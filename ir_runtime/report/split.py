"""Split scopes that a path leaves and enters again, so that closed scopes are not on a cycle."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import networkx as nx

from .._util.deadline import check
from .items import Edge, Item, Items, Part, visible_edges

__all__ = ["split"]

# Rounds, each of which takes time in proportion to the model, after which scopes on cycles are dissolved by halves, then
# with all scopes inside them. Networks need a few.
_BY_HALVES, _ALL = 24, 48
_VISITS = 64
"""The most times that the layers of a model are visited to split the scopes of one cycle: more scopes are dissolved."""


class _Group(NamedTuple):
    """A scope at the current depth: the number of the one that it is in, and its own part of the path."""

    within: int
    part: Part


_Members: TypeAlias = Mapping[_Group, Sequence[Item]]


def split(listing: Items) -> None:
    """Give the parts of scopes separate paths, until no scope is on a cycle.

    Only layers with boxes count: edges that carry shapes would split scopes that belong together.
    """
    edges = list(visible_edges(listing))
    splitter = _Splitter([item for item in listing.items if item.is_drawn], edges)
    inside = {item.index: 0 for item in splitter.items}
    depth = 0
    while inside:
        splitter.split_at(depth, inside)
        numbers: dict[_Group, int] = {}
        deeper = _groups(splitter.items, inside, depth)
        inside = {index: numbers.setdefault(group, len(numbers)) for index, group in deeper.items()}
        depth += 1


def _groups(items: Iterable[Item], inside: Mapping[int, int], depth: int) -> dict[int, _Group]:
    """Return the scope at a depth that each layer is in; ``inside`` has the numbers of those above."""
    return {
        item.index: _Group(inside[item.index], item.path[depth])
        for item in items
        if item.index in inside and item.path is not None and len(item.path) > depth
    }


class _Splitter:
    """Splits the scopes of one model, within a bound on its work."""

    def __init__(self, items: Sequence[Item], edges: Sequence[Edge]) -> None:
        self.items, self._edges = items, edges
        self._indices = [item.index for item in items]
        self._above: dict[int, list[int]] = defaultdict(list)
        for edge in edges:
            self._above[edge.target].append(edge.source)
        self._rounds = 0

    def split_at(self, depth: int, inside: Mapping[int, int]) -> None:
        """Split the scopes at a depth, until none is on a cycle."""
        while True:
            check()
            groups = _groups(self.items, inside, depth)
            cycles = self._cycles(groups, inside)
            if not cycles:
                return
            self._rounds += 1
            cyclic = {group for cycle in cycles for group in cycle}
            members: dict[_Group, list[Item]] = {group: [] for group in cyclic}
            for item in self.items:
                if (group := groups.get(item.index)) in cyclic:
                    members[group].append(item)
            for cycle in cycles:
                self._break(cycle, members, depth)

    def _cycles(self, groups: Mapping[int, _Group], inside: Mapping[int, int]) -> list[list[_Group]]:
        """Return the scopes that are on cycles, those of each cycle together."""
        quotient: nx.DiGraph[_Group | int] = nx.DiGraph()
        for edge in self._edges:
            a, b = edge.source, edge.target
            if a not in inside or b not in inside or inside[a] != inside[b]:
                continue
            one, other = groups.get(a, a), groups.get(b, b)
            if one != other:
                quotient.add_edge(one, other)
        rings = [ring for ring in nx.strongly_connected_components(quotient) if len(ring) > 1]
        return [sorted(end for end in ring if isinstance(end, _Group)) for ring in rings]

    def _break(self, groups: Sequence[_Group], members: _Members, depth: int) -> None:
        """Split each scope of a cycle where paths enter it again; if none does, dissolve the smallest."""
        if self._rounds <= _BY_HALVES and self._visits(groups, members) <= _VISITS * len(self.items):
            changed = False
            for group in groups:
                levels = self._levels({item.index for item in members[group]})
                if any(levels.values()):
                    changed = True
                    _number(members[group], levels, depth)
            if changed:
                return
        count = 1 if self._rounds <= _BY_HALVES else -(-len(groups) // 2)
        smallest = sorted(groups, key=lambda group: (len(members[group]), group))[:count]
        for item in (item for group in smallest for item in members[group]):
            path = item.path or ()
            item.path = path[:depth] if self._rounds > _ALL else (*path[:depth], *path[depth + 1 :])

    def _visits(self, groups: Iterable[_Group], members: _Members) -> int:
        """Return the total number of layers between the first and the last layer of each scope."""
        return sum(len(self._between(members[g][0].index, members[g][-1].index)) for g in groups)

    def _between(self, first: int, last: int) -> range:
        """Return the places of the layers from one index to another."""
        return range(bisect_left(self._indices, first), bisect_right(self._indices, last))

    def _levels(self, inside: Collection[int]) -> dict[int, int]:
        """Return how many times the longest path to each layer of a scope has left the scope and come back."""
        level: dict[int, int] = {}
        for place in self._between(min(inside), max(inside)):
            index = self._indices[place]
            entered = [
                level[a] + (index in inside and a not in inside) for a in self._above[index] if a in level
            ]
            if entered or index in inside:
                level[index] = max(entered, default=0)
        return {index: level[index] for index in inside}


def _number(items: Iterable[Item], levels: Mapping[int, int], depth: int) -> None:
    for item in items:
        path = item.path or ()
        part = path[depth]
        part = part._replace(copy=(*part.copy, levels[item.index]))
        item.path = (*path[:depth], part, *path[depth + 1 :])
