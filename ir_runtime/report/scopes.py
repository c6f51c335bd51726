"""The scopes of a report: which layers are drawn together, and which scopes are open initially."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from .._util.deadline import check
from ..analysis.infer import Inferred
from ..ir.graph import IO_TYPES, Graph
from .items import Edge, Item, Items, Part, Path, items_of, visible_edges
from .kinds import mark_constants, mark_shapes
from .names import place
from .repeats import collapse
from .split import split
from .tree import Scope, Scopes

__all__ = ["WIDEST", "fold"]

WIDEST = 150
"""The most boxes in a scope; more are split into parts, which also bounds the time of the layout."""
OPEN = 32
"""The most boxes of the initial picture."""
_OPEN_MOST = 72
"""The same if otherwise a scope with half of the model would stay closed."""
_TINY = 8
"""The fewest boxes of an initial picture in which copies of a scope stay in one box."""
_SMALL = 20
"""Scopes with less than this part of the model stay closed in the initial picture, as masks and indices do."""
_PART = 40
_INDICES = "masks and indices"
_FEWEST_INDICES = 4
_TAIL = "after the modules"


def fold(graph: Graph, values: Inferred) -> Scopes:
    """Group the layers of a graph into scopes."""
    listing = items_of(graph, values)
    mark_constants(listing)
    mark_shapes(listing)
    place(listing)
    _place_tails(listing)
    _place_indices(listing)
    _simplify(listing)
    split(listing)
    _simplify(listing)
    _cut(listing)
    _simplify(listing)
    _place_shapes(listing)
    tree = _tree(listing)
    collapse(tree)
    _open(tree.scopes)
    return tree


def _simplify(listing: Items) -> None:
    """Remove scopes of one layer, and merge a scope with the only scope inside it."""
    drawn = [item for item in listing.items if item.is_drawn]
    tree = _Prefixes()
    for item in drawn:
        tree.count(item.path or ())
    for item in drawn:
        path = item.path or ()
        counts = tree.counts(path)
        kept = len(path)
        while kept and path[kept - 1].owner < 0 and counts[kept - 1] == 1:
            kept -= 1
        item.path = path[:kept]
    tree = _Prefixes()
    for item in drawn:
        tree.count(item.path or ())
    for item in drawn:
        item.path = _joined(item.path or (), tree.counts(item.path or ()))


class _Prefixes:
    """Counts of the layers in each scope, those in the scopes inside included; scopes are numbers in a tree."""

    def __init__(self) -> None:
        self._inner: dict[tuple[int, Part], int] = {}
        self._counts: list[int] = [0]

    def count(self, path: Path) -> None:
        """Count a layer."""
        node = 0
        for part in path:
            node = self._inner.setdefault((node, part), len(self._counts))
            if node == len(self._counts):
                self._counts.append(0)
            self._counts[node] += 1

    def counts(self, path: Path) -> list[int]:
        """Return the number of layers in each scope of a path that was counted."""
        node, numbers = 0, []
        for part in path:
            node = self._inner[node, part]
            numbers.append(self._counts[node])
        return numbers


def _joined(path: Path, counts: Sequence[int]) -> Path:
    parts: list[Part] = []
    for k, part in enumerate(path):
        plain = bool(parts) and part.owner < 0 and parts[-1].owner < 0
        if plain and counts[k - 1] == counts[k]:
            last = parts[-1]
            parts[-1] = Part(f"{last.label}.{part.label}", copy=(*last.copy, -1, *part.copy))
        else:
            parts.append(part)
    return tuple(parts)


def _cut(listing: Items) -> None:
    """Split scopes with many boxes into parts in topological order."""
    depth = 0
    while True:
        check()
        members: dict[Path, list[Item]] = defaultdict(list)
        for item in listing.items:
            path = item.path or ()
            if item.is_drawn and len(path) >= depth:
                members[path[:depth]].append(item)
        if not members:
            return
        wide = {path: inside for path, inside in members.items() if len(inside) > WIDEST}
        edges = _edges_inside(listing, wide, depth)
        cut = [_cut_scope(inside, edges[path], depth) for path, inside in wide.items()]
        depth += not any(cut)  # what was cut may be too wide still


def _edges_inside(listing: Items, scopes: Collection[Path], depth: int) -> Mapping[Path, list[Edge]]:
    """Return the edges inside some scopes at a depth."""
    edges: dict[Path, list[Edge]] = {scope: [] for scope in scopes}
    for edge in visible_edges(listing) if scopes else ():
        one, other = (listing.items[index].path or () for index in (edge.source, edge.target))
        scope = one[:depth]
        if scope in edges and len(one) >= depth and len(other) >= depth and other[:depth] == scope:
            edges[scope].append(edge)
    return edges


def _cut_scope(inside: Sequence[Item], edges: Iterable[Edge], depth: int) -> bool:
    ends = {item.index: _end(item, depth) for item in inside}
    order = _order(edges, ends)
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


def _order(edges: Iterable[Edge], ends: Mapping[int, Part | int]) -> list[Part | int]:
    """Return the boxes of a scope in topological order, earlier ones of the file first (Kahn 1962)."""
    first: dict[Part | int, int] = {}
    for index, end in ends.items():
        first[end] = min(first.get(end, index), index)
    after: dict[Part | int, set[Part | int]] = defaultdict(set)
    for edge in edges:
        a, b = ends[edge.source], ends[edge.target]
        if a != b:
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


def _place_tails(listing: Items) -> None:
    """Group the layers of a scope that follow all of its modules, such as the decoding of boxes in a detector.

    Few of them stay outside, as do those of a scope in which modules are the smaller part.
    """
    sizes, tails, scopes_with_modules = Counter[Path](), defaultdict[Path, list[Item]](list), set[Path]()
    leads_into_module: set[int] = set()
    for item in reversed(listing.items):  # readers come before their producers
        if not item.is_drawn or item.path is None:
            continue
        for depth in range(len(item.path) + 1):
            sizes[item.path[:depth]] += 1
        path = item.path
        scopes_with_modules.update(path[:depth] for depth, part in enumerate(path) if part.owner < 0)
        readers = [listing.items[i] for i in listing.below[item.index]]
        within = [reader for reader in readers if (reader.path or ())[: len(path)] == path]
        if any(len(reader.path or ()) > len(path) or reader.index in leads_into_module for reader in within):
            leads_into_module.add(item.index)
        elif item.layer.type not in IO_TYPES and not item.bodies:
            tails[path].append(item)
    for path, items in tails.items():
        if path in scopes_with_modules and len(items) > OPEN and 2 * len(items) < sizes[path]:
            for item in items:
                item.path = (*path, Part(_TAIL))


def _place_indices(listing: Items) -> None:
    """Group the layers of a scope that compute masks, positions and other integers.

    Those that only refine masks from further out belong to these, so that one of many blocks does not have them alone.
    """
    inside: dict[Path, list[Item]] = defaultdict(list)
    indices: set[int] = set()
    for item in filter(_is_index, listing.items):  # producers come before their readers
        above = [listing.items[i] for i in listing.above[item.index] if listing.items[i].is_drawn]
        if above and all(producer.index in indices for producer in above):
            innermost = max((producer.path or () for producer in above), key=len)
            around = [item.path or (), *(producer.path or () for producer in above)]
            if all(path[: len(innermost)] == innermost[: len(path)] for path in around):
                item.path = (item.path or ())[: len(innermost)]
        indices.add(item.index)
        inside[item.path or ()].append(item)
    for path, items in inside.items():
        if len(items) >= _FEWEST_INDICES:
            for item in items:
                item.path = (*path, Part(_INDICES))


def _is_index(item: Item) -> bool:
    """Return whether a layer gives integers or booleans only."""
    if not item.is_drawn or item.bodies or item.layer.type in IO_TYPES:
        return False
    values = [item.value(port) for port in range(len(item.layer.outputs))]
    return bool(values) and all(value is not None and value.element.integral for value in values)


def _place_shapes(listing: Items) -> None:
    """Move arithmetic on shapes into the scopes of the layers that read it."""
    for item in reversed(listing.items):
        if item.is_shape:
            reader = next((listing.items[i] for i in listing.below[item.index]), None)
            path = (reader.path if reader else None) or ()
            inner = (k for k, part in enumerate(path) if part.owner >= 0 and part not in item.base)
            item.path = path[: next(inner, len(path))]


def _tree(listing: Items) -> Scopes:
    scopes = [Scope("", -1, open=True)]
    known: dict[tuple[int, Part], int] = {}
    of: dict[int, int] = {}
    for item in listing.items:
        if item.is_constant:
            continue
        own = 0
        for part in item.path or ():
            inner = known.setdefault((own, part), len(scopes))
            if inner == len(scopes):
                scopes[own].scopes.append(inner)
                scopes.append(Scope(part.label, own, _owner(part)))
            own = inner
        of[item.index] = own
        if item.is_drawn and not item.bodies:
            scopes[own].layers.append(item.index)
        while own >= 0:
            scopes[own].size += item.is_drawn
            own = scopes[own].parent
    _label(scopes)
    return Scopes(listing, scopes, of)


def _owner(part: Part) -> int:
    return part.owner if not part.body else -1


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
    """Open the largest scopes, while the picture stays small; scopes of copies only if it would stay tiny."""
    shown = scopes[0].width
    closed = [(-scopes[k].size, k) for k in scopes[0].scopes]
    repeated: list[int] = []
    heapify(closed)
    while closed or (repeated and shown < _TINY):
        number = heappop(closed)[1] if closed else repeated.pop(0)
        scope = scopes[number]
        if scope.copies and shown >= _TINY:
            repeated.append(number)
        elif shown >= _TINY and (_SMALL * scope.size < scopes[0].size or scope.label.startswith(_INDICES)):
            continue
        elif shown + scope.width <= (OPEN if 2 * scope.size < scopes[0].size else _OPEN_MOST):
            scope.open = True
            shown += scope.width
            for inner in scope.scopes[:1] if scope.copies else scope.scopes:
                heappush(closed, (-scopes[inner].size, inner))
