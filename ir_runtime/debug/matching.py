"""Match the layers of two graphs: by structure first, then by names, then by their matched neighbours.

Ids and names say nothing certain: a converter numbers and names again. So layers are described by what leads to them
and by what follows from them, without the contents of constants, whose change is what is looked for.
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

# Rounds that refine what is known of each layer; in small graphs as many as so many visits of layers allow.
_ROUNDS, _VISITS = 10, 20_000

_STORED = ("offset", "size", "value")


def attributes_of(layer: Layer) -> dict[str, str]:
    """Return the attributes of a layer as texts, without where its constant is stored, and without its bodies."""
    found = dict(layer.attributes) if layer.op is None else layer.op.attributes()
    return {
        name: value.label if isinstance(value, ElementType) else str(value)
        for name, value in found.items()
        if not (layer.type == "Constant" and name in _STORED)
    }


@dataclass
class Matching:
    """Pairs of layers, by id: those of the old graph and their partners in the new one."""

    old: Graph
    new: Graph
    pairs: dict[int, int] = field(default_factory=dict)
    backwards: dict[int, int] = field(default_factory=dict)

    def add(self, a: int, b: int) -> None:
        """Note that two layers are one, unless either has a partner."""
        if a not in self.pairs and b not in self.backwards:
            self.pairs[a], self.backwards[b] = b, a

    @property
    def removed(self) -> list[Layer]:
        """The layers of the old graph without a partner, in its order."""
        return [layer for layer in self.old if layer.id not in self.pairs]

    @property
    def added(self) -> list[Layer]:
        """The layers of the new graph without a partner, in its order."""
        return [layer for layer in self.new if layer.id not in self.backwards]


def match(old: Graph, new: Graph) -> Matching:
    """Return which layers of two graphs are the same."""
    found = Matching(old, new)
    _by_class(found, _classes(old, contents=True), _classes(new, contents=True))
    _by_class(found, _classes(old), _classes(new))
    _by_key(found, *({layer.id: (layer.type, layer.name) for layer in graph} for graph in (old, new)))
    for describe in (_from_inputs, _from_outputs):
        _by_key(found, describe(old), describe(new))
    _extend(found, list(found.pairs.items()), *({la.id: la.type for la in graph} for graph in (old, new)))
    return found


def _by_class(found: Matching, ours: dict[int, bytes], theirs: dict[int, bytes]) -> None:
    """Match layers that are alike; where several are, one pair at a time, each with its neighbours."""
    alike = _grouped(found, ours, theirs)
    for group in sorted(alike, key=lambda group: len(group[0])):
        named: dict[str, deque[int]] = defaultdict(deque)
        for b in group[1]:
            named[found.new[b].name].append(b)
        every = deque(group[1])
        for a in group[0]:
            if a in found.pairs:
                continue
            partner = _first_free(found, named[found.old[a].name])
            partner = _first_free(found, every) if partner is None else partner
            if partner is not None:
                _extend(found, [(a, partner)], ours, theirs)


def _first_free(found: Matching, candidates: deque[int]) -> int | None:
    """Return the first layer of the new graph without a partner; those before it are dropped."""
    while candidates and candidates[0] in found.backwards:
        candidates.popleft()
    return candidates[0] if candidates else None


def _by_key(found: Matching, ours: Mapping[int, Hashable], theirs: Mapping[int, Hashable]) -> None:
    """Match layers with equal keys, in order."""
    for group in _grouped(found, ours, theirs):
        for pair in zip(*group, strict=True):
            found.add(*pair)


def _grouped(
    found: Matching, ours: Mapping[int, Hashable], theirs: Mapping[int, Hashable]
) -> list[tuple[list[int], list[int]]]:
    """Layers without a partner that have the same key, by id, where as many have it in both graphs."""
    groups: dict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for layer in found.removed:
        groups[ours[layer.id]][0].append(layer.id)
    for layer in found.added:
        groups[theirs[layer.id]][1].append(layer.id)
    return [group for group in groups.values() if len(group[0]) == len(group[1])]


def _extend(
    found: Matching,
    pairs: list[tuple[int, int]],
    ours: Mapping[int, Hashable],
    theirs: Mapping[int, Hashable],
) -> None:
    """Match pairs, then what they read and what reads them at the same inputs, as far as their keys are equal."""
    waiting = list(pairs)
    for pair in pairs:
        found.add(*pair)
    while waiting:
        check()
        for a, b in _neighbours(found, *waiting.pop(), ours, theirs):
            found.add(a, b)
            waiting.append((a, b))


def _neighbours(
    found: Matching, a: int, b: int, ours: Mapping[int, Hashable], theirs: Mapping[int, Hashable]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of neighbours that have equal keys and no partner; each is to be matched before the next is asked for."""
    for x, y in zip(found.old.sources(found.old[a]), found.new.sources(found.new[b]), strict=False):
        if x is None or y is None or x.layer in found.pairs or y.layer in found.backwards:
            continue
        if ours[x.layer] == theirs[y.layer]:
            yield x.layer, y.layer
    for mine, their in zip(found.old[a].output_ports, found.new[b].output_ports, strict=False):
        readers: dict[tuple[Hashable, int], deque[int]] = defaultdict(deque)
        for reader in found.new.readers(their):
            readers[theirs[reader.layer], reader.number].append(reader.layer)
        for reader in found.old.readers(mine):
            if reader.layer not in found.pairs:
                partner = _first_free(found, readers[ours[reader.layer], reader.number])
                if partner is not None:
                    yield reader.layer, partner


def _classes(graph: Graph, contents: bool = False) -> dict[int, bytes]:
    """Describe each layer by all that is connected to it: colours as of Weisfeiler and Lehman, until they settle.

    They may settle only after as many rounds as there are layers, so that rounds are limited; what then still looks
    alike is matched by neighbours.
    """
    before, after = _from_inputs(graph), _from_outputs(graph)
    found = {
        layer.id: _digest([before[layer.id], after[layer.id], _stored(layer) if contents else b""])
        for layer in graph
    }
    count, visits = 0, max(_ROUNDS * len(found), _VISITS)
    while count < len(set(found.values())) and visits > 0:
        check()
        count, visits = len(set(found.values())), visits - len(found)
        found = {layer.id: _digest([found[layer.id], *_around(graph, layer, found)]) for layer in graph}
    return found


def _around(graph: Graph, layer: Layer, keys: dict[int, bytes]) -> list[object]:
    sources = [None if s is None else (keys.get(s.layer), s.number) for s in graph.sources(layer)]
    readers = [
        (index, keys.get(reader.layer, b""), reader.number)
        for index, port in enumerate(layer.output_ports)
        for reader in graph.readers(port)
    ]
    return [sources, sorted(readers)]


def _stored(layer: Layer) -> bytes:
    """Return a digest of the contents of a constant."""
    if layer.type != "Constant" or layer.op is None:
        return b""
    array = np.ascontiguousarray(layer.op.evaluate())
    held = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return blake2b(held, digest_size=16).digest()


def _from_inputs(graph: Graph) -> dict[int, bytes]:
    """Return a digest of the ancestors of each layer."""
    found: dict[int, bytes] = {}
    for layer in graph:
        sources = [None if s is None else (found.get(s.layer), s.number) for s in graph.sources(layer)]
        found[layer.id] = _digest([*_description(layer), *sources])
    return found


def _from_outputs(graph: Graph) -> dict[int, bytes]:
    """Return a digest of the descendants of each layer."""
    found: dict[int, bytes] = {}
    for layer in reversed(graph.order):
        _, readers = _around(graph, layer, found)
        found[layer.id] = _digest([*_description(layer), readers])
    return found


def _description(layer: Layer) -> list[object]:
    attributes = [] if layer.type in IO_TYPES else sorted(attributes_of(layer).items())
    return [layer.type, layer.version, attributes]


def _digest(parts: list[object]) -> bytes:
    return blake2b(repr(parts).encode(), digest_size=16).digest()
