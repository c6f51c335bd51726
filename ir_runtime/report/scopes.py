"""The scopes of a report: which layers are drawn together, and which scopes are open initially."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from ..analysis.infer import Inferred
from ..ir.graph import Graph
from .items import Item, Items, Part, Path, items_of, visible_edges
from .kinds import mark_constants, mark_shapes
from .names import place
from .split import split

__all__ = ["WIDEST", "Scope", "Scopes", "fold"]

WIDEST = 150
"""The most boxes in a scope; more are split into parts, which also bounds the time of the layout."""
OPEN = 32
"""The most boxes of the initial picture."""
_OPEN_MOST = 46
"""The same if otherwise a scope with half of the model would stay closed."""
_PART = 40


@dataclass
class Scope:
    """A box with layers and other scopes inside."""

    label: str
    parent: int
    owner: int = -1
    """The layer whose bodies this is."""
    scopes: list[int] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    size: int = 0
    """Layers in it and in the scopes inside."""
    open: bool = False

    @property
    def width(self) -> int:
        """The number of boxes inside."""
        return len(self.scopes) + len(self.layers)


@dataclass
class Scopes:
    """The layers, and the tree of scopes. The first scope is the whole model."""

    found: Items
    scopes: list[Scope]
    of: dict[int, int]
    """The scope of each layer that is not a constant."""


def fold(graph: Graph, values: Inferred) -> Scopes:
    """Group the layers of a graph into scopes."""
    found = items_of(graph, values)
    mark_constants(found)
    mark_shapes(found)
    place(found)
    _simplify(found)
    split(found)
    _simplify(found)
    _cut(found)
    _simplify(found)
    _place_shapes(found)
    tree = _tree(found)
    _open(tree.scopes)
    return tree


def _simplify(found: Items) -> None:
    """Remove scopes of one layer, and merge a scope with the only scope inside it."""
    drawn = [item for item in found.items if item.is_drawn]
    while True:
        count = _count(drawn)
        lone = [i for i in drawn if i.path and i.path[-1].owner < 0 and count[i.path] == 1]
        if not lone:
            break
        for item in lone:
            item.path = (item.path or ())[:-1]
    for item in drawn:
        item.path = _joined(item.path or (), count)


def _count(items: Iterable[Item]) -> Counter[Path]:
    """Count the layers in each scope, those in the scopes inside included."""
    count: Counter[Path] = Counter()
    for item in items:
        path = item.path or ()
        count.update(path[:k] for k in range(1, len(path) + 1))
    return count


def _joined(path: Path, count: Counter[Path]) -> Path:
    parts: list[Part] = []
    for k, part in enumerate(path):
        plain = bool(parts) and part.owner < 0 and parts[-1].owner < 0
        if plain and count[path[:k]] == count[path[: k + 1]]:
            last = parts[-1]
            parts[-1] = Part(f"{last.label}.{part.label}", copy=(*last.copy, -1, *part.copy))
        else:
            parts.append(part)
    return tuple(parts)


def _cut(found: Items) -> None:
    """Split scopes with many boxes into parts, each of which precedes the next one in topological order."""
    depth = 0
    while True:
        members: dict[Path, list[Item]] = defaultdict(list)
        for item in found.items:
            path = item.path or ()
            if item.is_drawn and len(path) >= depth:
                members[path[:depth]].append(item)
        if not members:
            return
        cut = [_cut_scope(found, inside, depth) for inside in members.values()]
        depth += not any(cut)  # what was cut may be too wide still


def _cut_scope(found: Items, inside: Sequence[Item], depth: int) -> bool:
    ends = {item.index: _end(item, depth) for item in inside}
    order = _order(found, ends)
    if len(order) <= WIDEST:
        return False
    size = max(_PART, -(-len(order) // WIDEST))
    total = len(order)
    parts = {
        end: Part(f"{k // size * size + 1}–{min(total, k // size * size + size)} of {total}")
        for k, end in enumerate(order)
    }
    for item in inside:
        path = item.path or ()
        item.path = (*path[:depth], parts[ends[item.index]], *path[depth:])
    return True


def _end(item: Item, depth: int) -> Part | int:
    path = item.path or ()
    return path[depth] if len(path) > depth else item.index


def _order(found: Items, ends: dict[int, Part | int]) -> list[Part | int]:
    """Return the boxes of a scope in topological order, earlier ones of the file first (Kahn 1962)."""
    first: dict[Part | int, int] = {}
    for index, end in ends.items():
        first[end] = min(first.get(end, index), index)
    after: dict[Part | int, set[Part | int]] = defaultdict(set)
    for edge in visible_edges(found):
        a, b = ends.get(edge.source), ends.get(edge.target)
        if a is not None and b is not None and a != b:
            after[a].add(b)
    degree = Counter(end for readers in after.values() for end in readers)
    ends_by_first = {index: end for end, index in first.items()}
    ready = [index for end, index in first.items() if not degree[end]]
    heapify(ready)
    order = []
    while ready:
        end = ends_by_first[heappop(ready)]
        order.append(end)
        for reader in after[end]:
            degree[reader] -= 1
            if not degree[reader]:
                heappush(ready, first[reader])
    return order


def _place_shapes(found: Items) -> None:
    """Move arithmetic on shapes into the scopes of the layers that read it."""
    for item in reversed(found.items):
        if item.is_shape:
            reader = next((found.items[i] for i in found.below[item.index]), None)
            path = (reader.path if reader else None) or ()
            inner = (k for k, part in enumerate(path) if part.owner >= 0 and part not in item.base)
            item.path = path[: next(inner, len(path))]


def _tree(found: Items) -> Scopes:
    scopes = [Scope("", -1, open=True)]
    known: dict[Path, int] = {(): 0}
    of: dict[int, int] = {}
    for item in found.items:
        if item.is_constant:
            continue
        path = item.path or ()
        for k in range(1, len(path) + 1):
            if path[:k] not in known:
                known[path[:k]] = len(scopes)
                parent = known[path[: k - 1]]
                scopes[parent].scopes.append(len(scopes))
                scopes.append(Scope(path[k - 1].label, parent, _owner(path[:k])))
        own = known[path]
        of[item.index] = own
        if item.is_drawn and not item.bodies:
            scopes[own].layers.append(item.index)
        while own >= 0:
            scopes[own].size += item.is_drawn
            own = scopes[own].parent
    _label(scopes)
    return Scopes(found, scopes, of)


def _owner(path: Path) -> int:
    return path[-1].owner if not path[-1].body else -1


def _label(scopes: Sequence[Scope]) -> None:
    """Give numbers to the parts of a split scope, and name scopes that are called by a number after their parent."""
    for parent in scopes:
        inside = [scopes[k] for k in parent.scopes]
        count, seen = Counter(scope.label for scope in inside), Counter[str]()
        for scope in inside:
            label = scope.label
            if label.partition(".")[0].isdecimal() and parent.label:
                scope.label = f"{parent.label.rpartition('.')[2]}.{label}"
            if count[label] > 1:
                seen[label] += 1
                scope.label += f" ({seen[label]})"


def _open(scopes: Sequence[Scope]) -> None:
    """Open the largest scopes, while the picture stays small."""
    shown = scopes[0].width
    while True:
        inside = [s for s in scopes if not s.open and scopes[s.parent].open]
        fitting = [
            s for s in inside if shown + s.width <= (OPEN if 2 * s.size < scopes[0].size else _OPEN_MOST)
        ]
        if not fitting:
            return
        largest = max(fitting, key=lambda scope: scope.size)
        largest.open = True
        shown += largest.width
