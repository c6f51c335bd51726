"""Collapse sibling scopes with the same structure into one box: ``12 × layer``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from .._util.deadline import check
from .items import Item, visible_edges
from .tree import PART_LABEL, Scope, Scopes

__all__ = ["FEWEST_COPIES", "collapse"]

FEWEST_COPIES = 3
"""Two boxes are seen at a glance: a count saves nothing."""
_NAMES = frozenset({"variable_id"})
"""Attributes that are names, in which copies differ."""
_NUMBER = re.compile(r"\d+")
_SMALL = 16
"""The most elements of an integer constant that acts as an attribute, such as axes or a target shape."""


def collapse(tree: Scopes) -> None:
    """Put runs of copies of a scope into scopes of their own, and record for each layer its twin in the first copy."""
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
    """Return the first of all copies of a layer; copies may be in copies."""
    while index in twins:
        index = twins[index]
    return index


def _insert(scopes: list[Scope], parent: int, run: Sequence[int]) -> None:
    """Put a run into a scope of its own; a parent that has nothing else becomes that scope."""
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
    """Return the part that labels, which differ in numbers, have in common.

    >>> _common_label(["layer.0", "layer.1"]), _common_label(["features.5.conv", "features.6.conv"])
    ('layer', 'features.conv')
    >>> _common_label(["block3", "block4"]), _common_label(["0", "1"])
    ('block', '')
    """
    words = zip(*(label.split(".") for label in labels), strict=True)
    same = [one[0] for one in words if len(set(one)) == 1]
    return ".".join(same) or _NUMBER.split(labels[0])[0].rstrip("_- (")


def _range(first: str, last: str) -> str:
    """Return the numbers in which labels differ.

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
        """Return the runs of at least `FEWEST_COPIES` among the scopes in a scope."""
        scopes = self._tree.scopes
        inside = [k for k in scopes[parent].scopes if _may_repeat(scopes[k])]
        runs = []
        for _, same_size in groupby(inside, key=lambda number: scopes[number].size):
            candidates = list(same_size)
            if len(candidates) >= FEWEST_COPIES:
                runs += [run for run in self._split(candidates, parent) if len(run) >= FEWEST_COPIES]
        return runs

    def layers_in_order(self, number: int) -> list[int]:
        """Return the layers in a scope, so that those of copies correspond."""
        return [index for _, _, index in self._code(number)]

    def _split(self, candidates: Sequence[int], parent: int) -> Iterator[list[int]]:
        """Yield runs of the same structure that no path leaves and enters again: as one box, they are on no cycle."""
        run: list[int] = []
        for number in candidates:
            if run and not (self._are_copies(run[0], number) and self._is_closed([*run, number], parent)):
                yield run
                run = []
            run.append(number)
        yield run

    def _are_copies(self, one: int, other: int) -> bool:
        labels = {_NUMBER.sub("", self._tree.scopes[number].label) for number in (one, other)}
        if len(labels) > 1:  # names that tell more than a number, such as query and key, are to be seen
            return False
        first, second = self._code(one), self._code(other)
        return [code[:2] for code in first] == [code[:2] for code in second]

    def _is_closed(self, run: Sequence[int], parent: int) -> bool:
        """Return whether no path between scopes of a run goes through other boxes of the parent."""
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
        """Return a number for the structure above each layer of a scope, whether others read it, and the layer; sorted."""
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
        """Yield where each input of a layer comes from: a constant, a layer of the scope, or elsewhere."""
        for number, source, port in sorted(self._inputs.get(index, ())):
            producer = self._items[source]
            if producer.is_constant:
                yield number, *_constant_structure(producer, port)
            else:
                yield number, codes.get(source, -1), port

    def _prepare(self) -> None:
        """Collect the layers of every scope, their inputs, and the readers of every box, once there are candidates."""
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
    """Return whether a scope comes from the names of layers."""
    return scope.owner < 0 and not PART_LABEL.fullmatch(scope.label)


def _box(scope: int) -> int:
    """Return the number of the box of a scope, which no layer has."""
    return -1 - scope


def _chain(scopes: Sequence[Scope], number: int) -> list[int]:
    """Return the scopes that a scope is in and itself, the outermost first."""
    chain = [number]
    while scopes[chain[-1]].parent >= 0:
        chain.append(scopes[chain[-1]].parent)
    return chain[::-1]


def _own_structure(item: Item) -> tuple[object, ...]:
    """Return the type, attributes and output types of a layer."""
    attributes = ((key, str(text)) for key, text in item.layer.attributes.items() if key not in _NAMES)
    outputs = (_type_of(item, port) for port in range(len(item.layer.outputs)))
    return item.layer.type, item.layer.version, tuple(sorted(attributes)), tuple(outputs)


def _type_of(item: Item, port: int) -> tuple[object, ...]:
    """Return the element type and the static lengths of an output."""
    value = item.value(port)
    if value is None:
        return ()
    shape = value.shape
    lengths = None if shape.rank is None else tuple(dim.min if dim.is_static else -1 for dim in shape)
    return value.element.label, lengths


def _constant_structure(item: Item, port: int) -> tuple[object, ...]:
    """Return the type of a constant, with its numbers if they act as an attribute."""
    value = item.value(port)
    if value is None or not value.element.integral or value.shape.is_dynamic or value.count.min > _SMALL:
        return _type_of(item, port)
    known = value.known()
    return (*_type_of(item, port), None if known is None else tuple(known.reshape(-1).tolist()))
