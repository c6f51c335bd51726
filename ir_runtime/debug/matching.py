"""Match the layers of two graphs by structure, then names, then matched neighbours.

Ids and names are unreliable, as converters renumber and rename layers. So layers are identified by their ancestors and
descendants. Contents of constants do not count, as they are often the change of interest.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from .._util.deadline import check
from ..ir.element import ElementType
from ..ir.graph import IO_TYPES, Graph, Layer

__all__ = ["Matching", "attributes_of", "match"]

# Refinement rounds at least; in small graphs, as many as this number of layer visits allows.
_ROUNDS, _VISITS = 10, 20_000

_STORED = ("offset", "size", "value")


def attributes_of(layer: Layer) -> dict[str, str]:
    """Return the attributes of a layer as text, except offsets of constants and bodies."""
    attributes = dict(layer.attributes) if layer.op is None else layer.op.attributes()
    return {
        name: value.label if isinstance(value, ElementType) else str(value)
        for name, value in attributes.items()
        if not (layer.type == "Constant" and name in _STORED)
    }


@dataclass
class Matching:
    """A one-to-one matching between the layers of an old and a new graph, by id."""

    old: Graph
    new: Graph
    pairs: dict[int, int] = field(default_factory=dict)
    backwards: dict[int, int] = field(default_factory=dict)

    def add(self, a: int, b: int) -> None:
        """Pair two layers, unless either is already matched."""
        if a not in self.pairs and b not in self.backwards:
            self.pairs[a], self.backwards[b] = b, a

    @property
    def removed(self) -> list[Layer]:
        """The unmatched layers of the old graph, in order."""
        return [layer for layer in self.old if layer.id not in self.pairs]

    @property
    def added(self) -> list[Layer]:
        """The unmatched layers of the new graph, in order."""
        return [layer for layer in self.new if layer.id not in self.backwards]


def match(old: Graph, new: Graph) -> Matching:
    """Match the layers of two graphs."""
    matching = Matching(old, new)
    _match_by_class(matching, _classes(old, contents=True), _classes(new, contents=True))
    _match_by_class(matching, _classes(old), _classes(new))
    _match_by_key(
        matching, *({layer.id: (layer.type, layer.name) for layer in graph} for graph in (old, new))
    )
    for describe in (_digest_ancestors, _digest_descendants):
        _match_by_key(matching, describe(old), describe(new))
    _extend(
        matching, list(matching.pairs.items()), *({la.id: la.type for la in graph} for graph in (old, new))
    )
    return matching


def _match_by_class(matching: Matching, ours: dict[int, bytes], theirs: dict[int, bytes]) -> None:
    """Match layers of the same class; within a class, match one pair at a time, followed by its neighbours.

    Args:
        matching: receives the pairs.
        ours: the class of each layer of the old graph, by id.
        theirs: the class of each layer of the new graph, by id.
    """
    alike = _group_by_key(matching, ours, theirs)
    for group in sorted(alike, key=lambda group: len(group[0])):
        by_name: dict[str, deque[int]] = defaultdict(deque)
        for b in group[1]:
            by_name[matching.new[b].name].append(b)
        every = deque(group[1])
        for a in group[0]:
            if a in matching.pairs:
                continue
            partner = _first_free(matching, by_name[matching.old[a].name])
            partner = _first_free(matching, every) if partner is None else partner
            if partner is not None:
                _extend(matching, [(a, partner)], ours, theirs)


def _first_free(matching: Matching, candidates: deque[int]) -> int | None:
    """Return the first unmatched candidate, dropping matched ones before it; ``None`` if there is none."""
    while candidates and candidates[0] in matching.backwards:
        candidates.popleft()
    return candidates[0] if candidates else None


def _match_by_key(matching: Matching, ours: Mapping[int, Hashable], theirs: Mapping[int, Hashable]) -> None:
    """Match layers with equal keys, in order."""
    for group in _group_by_key(matching, ours, theirs):
        for pair in zip(*group, strict=True):
            matching.add(*pair)


def _group_by_key(
    matching: Matching, ours: Mapping[int, Hashable], theirs: Mapping[int, Hashable]
) -> list[tuple[list[int], list[int]]]:
    """Group unmatched layers by key; return the groups with equally many layers in both graphs."""
    groups: dict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for layer in matching.removed:
        groups[ours[layer.id]][0].append(layer.id)
    for layer in matching.added:
        groups[theirs[layer.id]][1].append(layer.id)
    return [group for group in groups.values() if len(group[0]) == len(group[1])]


def _extend(
    matching: Matching,
    pairs: list[tuple[int, int]],
    ours: Mapping[int, Hashable],
    theirs: Mapping[int, Hashable],
) -> None:
    """Match pairs, then their neighbours with equal keys at the same ports, then the neighbours of those, and so on.

    Args:
        matching: receives the pairs.
        pairs: pairs of layer ids, in the old and in the new graph.
        ours: the key of each layer of the old graph, by id.
        theirs: the key of each layer of the new graph, by id.
    """
    waiting = list(pairs)
    for pair in pairs:
        matching.add(*pair)
    while waiting:
        check()
        for a, b in _neighbours(matching, *waiting.pop(), ours, theirs):
            matching.add(a, b)
            waiting.append((a, b))


def _neighbours(
    matching: Matching, a: int, b: int, ours: Mapping[int, Hashable], theirs: Mapping[int, Hashable]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of unmatched producers, then consumers, of the layers ``a`` and ``b`` that have equal keys.

    The caller matches each pair before it asks for the next.
    """
    for x, y in zip(
        matching.old.sources(matching.old[a]), matching.new.sources(matching.new[b]), strict=False
    ):
        if x is None or y is None or x.layer in matching.pairs or y.layer in matching.backwards:
            continue
        if ours[x.layer] == theirs[y.layer]:
            yield x.layer, y.layer
    for mine, their in zip(matching.old[a].output_ports, matching.new[b].output_ports, strict=False):
        readers: dict[tuple[Hashable, int], deque[int]] = defaultdict(deque)
        for reader in matching.new.readers(their):
            readers[theirs[reader.layer], reader.number].append(reader.layer)
        for reader in matching.old.readers(mine):
            if reader.layer not in matching.pairs:
                partner = _first_free(matching, readers[ours[reader.layer], reader.number])
                if partner is not None:
                    yield reader.layer, partner


def _classes(graph: Graph, contents: bool = False) -> dict[int, bytes]:
    """Compute Weisfeiler-Lehman colours: digests of the layers and their neighbourhoods, refined until stable.

    Convergence may take as many rounds as there are layers, so rounds are limited; remaining ties are resolved when
    neighbours are matched.
    """
    before, after = _digest_ancestors(graph), _digest_descendants(graph)
    digests = {
        layer.id: _digest([before[layer.id], after[layer.id], _digest_contents(layer) if contents else b""])
        for layer in graph
    }
    count, visits = 0, max(_ROUNDS * len(digests), _VISITS)
    while count < len(set(digests.values())) and visits > 0:
        check()
        count, visits = len(set(digests.values())), visits - len(digests)
        digests = {layer.id: _digest([digests[layer.id], *_around(graph, layer, digests)]) for layer in graph}
    return digests


def _around(graph: Graph, layer: Layer, keys: dict[int, bytes]) -> list[object]:
    sources = [None if s is None else (keys.get(s.layer), s.number) for s in graph.sources(layer)]
    readers = [
        (index, keys.get(reader.layer, b""), reader.number)
        for index, port in enumerate(layer.output_ports)
        for reader in graph.readers(port)
    ]
    return [sources, sorted(readers)]


def _digest_contents(layer: Layer) -> bytes:
    """Return a digest of a constant's contents."""
    if layer.type != "Constant" or layer.op is None:
        return b""
    array = np.ascontiguousarray(layer.op.evaluate())
    contents = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return blake2b(contents, digest_size=16).digest()


def _digest_ancestors(graph: Graph) -> dict[int, bytes]:
    """Return a digest of the ancestors of each layer."""
    digests: dict[int, bytes] = {}
    for layer in graph:
        sources = [None if s is None else (digests.get(s.layer), s.number) for s in graph.sources(layer)]
        digests[layer.id] = _digest([*_description(layer), *sources])
    return digests


def _digest_descendants(graph: Graph) -> dict[int, bytes]:
    """Return a digest of the descendants of each layer."""
    digests: dict[int, bytes] = {}
    for layer in reversed(graph.order):
        _, readers = _around(graph, layer, digests)
        digests[layer.id] = _digest([*_description(layer), readers])
    return digests


def _description(layer: Layer) -> list[object]:
    attributes = [] if layer.type in IO_TYPES else sorted(attributes_of(layer).items())
    return [layer.type, layer.version, attributes]


def _digest(parts: list[object]) -> bytes:
    return blake2b(repr(parts).encode(), digest_size=16).digest()
