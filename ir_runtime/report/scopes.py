"""Group the layers of a report into scopes, and choose which scopes are open initially.

Constants and shape arithmetic get no boxes in the initial picture (`_mark_constants`, `_mark_shapes`). A scope that
some path leaves and reenters is split, so that the graph of closed scopes is acyclic (`_split`). Sibling scopes with
the same structure become one box, ``12 × layer`` (`_collapse`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import NamedTuple, TypeAlias

import networkx as nx

from .._util.deadline import check
from ..analysis.infer import Inferred
from ..ir.graph import IO_TYPES, Graph
from .items import PART_LABEL, Edge, Item, Items, Part, Path, Scope, Scopes, items_of, visible_edges
from .names import place

__all__ = ["WIDEST", "fold"]

WIDEST = 150
"""The most boxes in a scope; more are split into parts, which also bounds the time of the layout."""
OPEN = 32
"""The maximum number of boxes in the initial picture."""
_OPEN_MOST = 72
"""The maximum for opening a scope that has at least half of the model."""
_TINY = 8
"""From this number of boxes in the initial picture, copied scopes stay closed."""
_SMALL = 20
"""Scopes smaller than the model by more than this factor stay closed in the initial picture, as do masks and indices."""
_PART = 40
_INDICES = "masks and indices"
_FEWEST_INDICES = 4
_TAIL = "after the modules"


def fold(graph: Graph, values: Inferred) -> Scopes:
    """Group the layers of a graph into scopes."""
    listing = items_of(graph, values)
    _mark_constants(listing)
    _mark_shapes(listing)
    place(listing)
    _place_tails(listing)
    _place_indices(listing)
    _simplify(listing)
    _split(listing)
    _simplify(listing)
    _split_wide(listing)
    _simplify(listing)
    _place_shapes(listing)
    tree = _tree(listing)
    _collapse(tree)
    _open(tree.scopes)
    return tree


def _simplify(listing: Items) -> None:
    """Remove scopes with a single layer, and merge a scope with its only inner scope."""
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
        item.path = _merge_path(item.path or (), tree.counts(item.path or ()))


class _Prefixes:
    """A prefix tree of paths that counts the layers in each scope, including its inner scopes."""

    def __init__(self) -> None:
        self._inner: dict[tuple[int, Part], int] = {}
        self._counts: list[int] = [0]

    def count(self, path: Path) -> None:
        """Count a layer with this path."""
        node = 0
        for part in path:
            node = self._inner.setdefault((node, part), len(self._counts))
            if node == len(self._counts):
                self._counts.append(0)
            self._counts[node] += 1

    def counts(self, path: Path) -> list[int]:
        """Return the number of layers in each scope of a path."""
        node, numbers = 0, []
        for part in path:
            node = self._inner[node, part]
            numbers.append(self._counts[node])
        return numbers


def _merge_path(path: Path, counts: Sequence[int]) -> Path:
    parts: list[Part] = []
    for k, part in enumerate(path):
        plain = bool(parts) and part.owner < 0 and parts[-1].owner < 0
        if plain and counts[k - 1] == counts[k]:
            last = parts[-1]
            parts[-1] = Part(f"{last.label}.{part.label}", copy=(*last.copy, -1, *part.copy))
        else:
            parts.append(part)
    return tuple(parts)


def _split_wide(listing: Items) -> None:
    """Split scopes with too many boxes into consecutive parts in topological order."""
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
        cut = [_split_wide_scope(inside, edges[path], depth) for path, inside in wide.items()]
        depth += not any(cut)  # a scope that was split may still be too wide


def _edges_inside(listing: Items, scopes: Collection[Path], depth: int) -> Mapping[Path, list[Edge]]:
    """Return the edges inside each of the given scopes at a depth."""
    edges: dict[Path, list[Edge]] = {scope: [] for scope in scopes}
    for edge in visible_edges(listing) if scopes else ():
        one, other = (listing.items[index].path or () for index in (edge.source, edge.target))
        scope = one[:depth]
        if scope in edges and len(one) >= depth and len(other) >= depth and other[:depth] == scope:
            edges[scope].append(edge)
    return edges


def _split_wide_scope(inside: Sequence[Item], edges: Iterable[Edge], depth: int) -> bool:
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
    """Return the boxes of a scope in topological order, breaking ties by file order (Kahn 1962)."""
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
    """Group the layers of a scope that follow all of its modules, such as box decoding in a detector.

    They are left alone if they are few, or if the modules have fewer layers than they.
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
    """Group the layers of each scope that compute masks, positions and other integers.

    Layers that only refine masks computed in an outer scope are moved there, so that repeated blocks stay alike.
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
    """Return whether all outputs of a layer are integers or booleans."""
    if not item.is_drawn or item.bodies or item.layer.type in IO_TYPES:
        return False
    values = [item.value(port) for port in range(len(item.layer.outputs))]
    return bool(values) and all(value is not None and value.element.integral for value in values)


def _place_shapes(listing: Items) -> None:
    """Move shape arithmetic into the scopes of its consumers."""
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
    """Number the parts of split scopes, and prefix scopes named by a number with the name of their parent."""
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
    """Open the largest scopes while the picture stays small; open copies only if it would otherwise be tiny."""
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


_MOST = 64
"""The most elements of a tensor that counts as a shape."""


def _mark_constants(listing: Items) -> None:
    """Mark constants, and layers computed from constants alone, which are shown with their consumers."""
    for item in listing.items:  # producers come before their readers
        above = listing.above[item.index]
        computed = bool(above) and _is_plain(item) and all(listing.items[i].is_constant for i in above)
        item.is_constant = item.layer.type == "Constant" or computed


def _mark_shapes(listing: Items) -> None:
    """Mark layers that compute small tensors from shapes and constants alone."""
    for item in listing.items:
        if item.layer.type == "ShapeOf" and not item.is_constant:
            item.is_shape = True
        elif not item.is_constant and _is_plain(item) and _is_small(item):
            above = [listing.items[i] for i in listing.above[item.index]]
            item.is_shape = any(a.is_shape for a in above) and all(a.is_shape or a.is_constant for a in above)


def _is_plain(item: Item) -> bool:
    op = item.layer.op
    return item.layer.type not in IO_TYPES and not item.bodies and (op is None or op.pure)


def _is_small(item: Item) -> bool:
    """Return whether every output is a scalar or a short vector of static length."""
    values = [item.value(port) for port in range(len(item.layer.outputs))]
    shapes = [value.shape for value in values if value is not None]
    return len(shapes) == len(values) and all(
        shape.rank is not None and shape.rank <= 1 and all(d.is_static and d.min <= _MOST for d in shape)
        for shape in shapes
    )


# Numbers of splitting rounds after which half of the scopes on a cycle are dissolved at a time, then together with their
# inner scopes. A round takes time linear in the model; real networks need a few.
_BY_HALVES, _ALL = 24, 48
_VISITS = 64
"""The maximum number of passes over a model's layers to split the scopes of one cycle; costlier ones are dissolved."""


class _Group(NamedTuple):
    """A scope at the current depth: the number of its parent, and its own part of the path."""

    within: int
    part: Part


_Members: TypeAlias = Mapping[_Group, Sequence[Item]]


def _split(listing: Items) -> None:
    """Split scopes, by giving their parts separate paths, until no scope is on a cycle.

    Only layers with boxes count, as edges that carry shapes would split scopes that belong together.
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
    """Return the scope of each layer that has one at a depth, by layer index.

    Args:
        items: the layers.
        inside: the number of the parent scope of each layer, by layer index; other layers are omitted.
        depth: the number of scopes around.
    """
    return {
        item.index: _Group(inside[item.index], item.path[depth])
        for item in items
        if item.index in inside and item.path is not None and len(item.path) > depth
    }


class _Splitter:
    """Splits the scopes of a model so that none is on a cycle, with bounded work."""

    def __init__(self, items: Sequence[Item], edges: Sequence[Edge]) -> None:
        self.items, self._edges = items, edges
        self._indices = [item.index for item in items]
        self._above: dict[int, list[int]] = defaultdict(list)
        for edge in edges:
            self._above[edge.target].append(edge.source)
        self._rounds = 0

    def split_at(self, depth: int, inside: Mapping[int, int]) -> None:
        """Split the scopes at a depth until none is on a cycle."""
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
        """Return the scopes on cycles, as one list per strongly connected component."""
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
        """Split each scope of a cycle where paths reenter it; if there are no such scopes, dissolve the smallest."""
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
        """Return the cost of `_levels` for some scopes: the total number of layers from first to last layer of each."""
        return sum(len(self._between(members[g][0].index, members[g][-1].index)) for g in groups)

    def _between(self, first: int, last: int) -> range:
        """Return the positions of the layers whose indices lie between two indices."""
        return range(bisect_left(self._indices, first), bisect_right(self._indices, last))

    def _levels(self, inside: Collection[int]) -> dict[int, int]:
        """Return for each layer of a scope the maximum number of times that a path to it reenters the scope."""
        level: dict[int, int] = {}
        for position in self._between(min(inside), max(inside)):
            index = self._indices[position]
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


_FEWEST_COPIES = 3
"""The fewest copies to collapse: two boxes are as easy to read as a count."""
_NAMES = frozenset({"variable_id"})
"""Attributes that are names, which may differ between copies."""
_NUMBER = re.compile(r"\d+")
_SMALL_COPIES = 16
"""The most elements of an integer constant that acts as an attribute, such as axes or a target shape."""


def _collapse(tree: Scopes) -> None:
    """Wrap runs of copied scopes in scopes of their own, and map each layer to its twin in the first copy."""
    finder = _Finder(tree)
    for parent in range(len(tree.scopes)):
        check()
        for run in finder.runs(parent):
            _insert(tree.scopes, parent, run)
            first, *others = (finder.layers_in_order(number) for number in run)
            for copy in others:
                for twin, index in zip(first, copy, strict=True):
                    tree.twins.setdefault(
                        index, twin
                    )  # scopes come before those inside: the outermost run wins
    for index in tree.twins:
        tree.twins[index] = _first(tree.twins, index)
    tree.renumber()


def _first(twins: Mapping[int, int], index: int) -> int:
    """Follow twins, as copies may be nested, to the first copy of a layer."""
    while index in twins:
        index = twins[index]
    return index


def _insert(scopes: list[Scope], parent: int, run: Sequence[int]) -> None:
    """Wrap a run of copies in a new scope; a parent that contains nothing else becomes that scope."""
    outer = scopes[parent]
    if parent and list(run) == outer.scopes and not outer.layers:
        outer.copies = len(run)
        return
    size = sum(scopes[number].size for number in run)
    labels = [scopes[number].label for number in run]
    label = _common_label(labels)
    label = label if label and not label.isdecimal() else outer.label or "part"
    alike = [k for k in outer.scopes if _NUMBER.sub("", scopes[k].label) == _NUMBER.sub("", labels[0])]
    if len(alike) > len(run):
        label += _range(labels[0], labels[-1])
    number = len(scopes)
    scopes.append(Scope(label, parent, scopes=list(run), size=size, copies=len(run)))
    place = outer.scopes.index(run[0])
    outer.scopes[place : place + len(run)] = [number]
    for copy in run:
        scopes[copy].parent = number


def _common_label(labels: Sequence[str]) -> str:
    """Return the common part of labels that differ in numbers.

    >>> _common_label(["layer.0", "layer.1"]), _common_label(["features.5.conv", "features.6.conv"])
    ('layer', 'features.conv')
    >>> _common_label(["block3", "block4"]), _common_label(["0", "1"])
    ('block', '')
    """
    words = zip(*(label.split(".") for label in labels), strict=True)
    same = [one[0] for one in words if len(set(one)) == 1]
    return ".".join(same) or _NUMBER.split(labels[0])[0].rstrip("_- (")


def _range(first: str, last: str) -> str:
    """Return the range of the number in which two labels differ, such as `` (1–5)``.

    >>> _range("layer3.1", "layer3.5")
    ' (1–5)'
    """
    numbers = zip(_NUMBER.findall(first), _NUMBER.findall(last), strict=True)
    return next((f" ({one}–{other})" for one, other in numbers if one != other), "")


class _Finder:
    """Finds runs of copies: adjacent scopes whose layers have the same types, attributes, shapes and edges."""

    def __init__(self, tree: Scopes) -> None:
        self._tree, self._items = tree, tree.listing.items
        self._codes: dict[object, int] = {}
        self._layers: list[list[int]] = []
        self._inputs: dict[int, list[tuple[int, int, int]]] = {}
        self._readers: dict[int, dict[int, set[int]]] = {}
        self._coded: dict[int, list[tuple[int, bool, int]]] = {}

    def runs(self, parent: int) -> list[list[int]]:
        """Return the runs of at least `_FEWEST_COPIES` copies among the inner scopes of a scope."""
        scopes = self._tree.scopes
        inside = [k for k in scopes[parent].scopes if _may_repeat(scopes[k])]
        runs = []
        for _, same_size in groupby(inside, key=lambda number: scopes[number].size):
            candidates = list(same_size)
            if len(candidates) >= _FEWEST_COPIES:
                runs += [run for run in self._split(candidates, parent) if len(run) >= _FEWEST_COPIES]
        return runs

    def layers_in_order(self, number: int) -> list[int]:
        """Return the layers of a scope in an order in which the layers of copies correspond."""
        return [index for _, _, index in self._code(number)]

    def _split(self, candidates: Sequence[int], parent: int) -> Iterator[list[int]]:
        """Split candidates into runs of the same structure that no path leaves and reenters, so that one box makes no cycle."""
        run: list[int] = []
        for number in candidates:
            if run and not (self._are_copies(run[0], number) and self._is_closed([*run, number], parent)):
                yield run
                run = []
            run.append(number)
        yield run

    def _are_copies(self, one: int, other: int) -> bool:
        labels = {_NUMBER.sub("", self._tree.scopes[number].label) for number in (one, other)}
        if len(labels) > 1:  # names that differ in more than a number, such as query and key, stay visible
            return False
        first, second = self._code(one), self._code(other)
        return [code[:2] for code in first] == [code[:2] for code in second]

    def _is_closed(self, run: Sequence[int], parent: int) -> bool:
        """Return whether no path leaves a run of scopes and reenters it.

        Args:
            run: the numbers of the scopes.
            parent: the number of the scope that contains them.
        """
        self._prepare()
        readers, boxes = self._readers.get(parent, {}), {_box(number) for number in run}
        waiting = [reader for box in boxes for reader in readers.get(box, ()) if reader not in boxes]
        seen = set(waiting)
        while waiting:
            for reader in readers.get(waiting.pop(), ()):
                if reader in boxes:
                    return False
                if reader not in seen:
                    seen.add(reader)
                    waiting.append(reader)
        return True

    def _code(self, number: int) -> list[tuple[int, bool, int]]:
        """Describe each layer of a scope by a triple, and return them sorted.

        A triple has a number that is the same for layers whose subgraphs upstream within the scope are alike, whether layers
        outside of the scope read the layer, and its index.
        """
        if number not in self._coded:
            self._prepare()
            inside = self._layers[number]
            codes: dict[int, int] = {}
            for index in inside:  # producers come before their readers
                structure = (*_own_structure(self._items[index]), *self._operands(index, codes))
                codes[index] = self._codes.setdefault(structure, len(self._codes))
            below = self._tree.listing.below
            self._coded[number] = sorted(
                (code, any(reader not in codes for reader in below[index]), index)
                for index, code in codes.items()
            )
        return self._coded[number]

    def _operands(self, index: int, codes: Mapping[int, int]) -> Iterator[object]:
        """Yield the origin of each input of a layer: a constant, a layer of the scope, or an outside layer."""
        for number, source, port in sorted(self._inputs.get(index, ())):
            producer = self._items[source]
            if producer.is_constant:
                yield number, *_constant_structure(producer, port)
            else:
                yield number, codes.get(source, -1), port

    def _prepare(self) -> None:
        """On first use, collect the layers of each scope, the inputs of each layer, and the consumers of each box."""
        if self._layers:
            return
        scopes, items = self._tree.scopes, self._items
        self._layers = [[] for _ in scopes]
        chains: dict[int, list[int]] = {}
        for index, own in self._tree.of.items():
            if items[index].is_drawn:
                chains[index] = _chain(scopes, own)
                for number in chains[index]:
                    self._layers[number].append(index)
        self._inputs = defaultdict(list)
        for edge in self._tree.listing.edges:
            if not edge.back and not items[edge.source].is_shape:
                self._inputs[edge.target].append((edge.input, edge.source, edge.port))
        self._readers = defaultdict(lambda: defaultdict(set))
        for edge in visible_edges(self._tree.listing):
            one, other = chains[edge.source], chains[edge.target]
            same = 0
            while same < min(len(one), len(other)) and one[same] == other[same]:
                same += 1
            box = _box(one[same]) if same < len(one) else edge.source
            reader = _box(other[same]) if same < len(other) else edge.target
            if box != reader:
                self._readers[one[same - 1]][box].add(reader)


def _may_repeat(scope: Scope) -> bool:
    """Return whether a scope comes from layer names, rather than from bodies or splitting."""
    return scope.owner < 0 and not PART_LABEL.fullmatch(scope.label)


def _box(scope: int) -> int:
    """Return the box number of a scope, negative to differ from layer indices."""
    return -1 - scope


def _chain(scopes: Sequence[Scope], number: int) -> list[int]:
    """Return the numbers of a scope and of its ancestors, outermost first."""
    chain = [number]
    while scopes[chain[-1]].parent >= 0:
        chain.append(scopes[chain[-1]].parent)
    return chain[::-1]


def _own_structure(item: Item) -> tuple[object, ...]:
    """Return type, version, attributes and output types of a layer."""
    attributes = ((key, str(text)) for key, text in item.layer.attributes.items() if key not in _NAMES)
    outputs = (_type_of(item, port) for port in range(len(item.layer.outputs)))
    return item.layer.type, item.layer.version, tuple(sorted(attributes)), tuple(outputs)


def _type_of(item: Item, port: int) -> tuple[object, ...]:
    """Return the element type and the dimensions of an output, with -1 for dynamic ones."""
    value = item.value(port)
    if value is None:
        return ()
    shape = value.shape
    lengths = None if shape.rank is None else tuple(dim.min if dim.is_static else -1 for dim in shape)
    return value.element.label, lengths


def _constant_structure(item: Item, port: int) -> tuple[object, ...]:
    """Return the type of a constant, with its values if they act as an attribute."""
    value = item.value(port)
    if (
        value is None
        or not value.element.integral
        or value.shape.is_dynamic
        or value.count.min > _SMALL_COPIES
    ):
        return _type_of(item, port)
    known = value.known()
    return (*_type_of(item, port), None if known is None else tuple(known.reshape(-1).tolist()))
