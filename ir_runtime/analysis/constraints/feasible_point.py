"""Find some lengths that a graph accepts, or show that there are none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ...ir.dimension import Dimension
from .oracle import Answer, Dim
from .probing import Probe

__all__ = ["Start", "find_start"]

Point = dict[Dim, int]

# A first guess by role. Unrelated lengths differ, so that one is not taken for the other.
_GUESS = {"batch": 2, "channels": 3, "height": 64, "width": 96, "depth": 32, "seq": 16, "past": 8}
_OTHER = 12

# Lengths that models are made for, in the order in which they are tried.
_LADDER = (1, 2, 3, 4, 8, 16, 32, 64, 128, 224, 256, 384, 512, 640, 1024)

# How many steps towards acceptance are taken before giving up.
_ROUNDS = 60


@dataclass(frozen=True, slots=True)
class Start:
    """Lengths that are accepted, or those that came furthest, with the answer to them."""

    lengths: Point
    answer: Answer
    impossible: bool = False
    """Whether it is proved that no lengths are accepted."""


def find_start(probe: Probe, roles: Mapping[Dim, str]) -> Start:
    """Guess, then change what the layer that refuses depends on, as long as that leads further."""
    search = _Search(probe, roles)
    best = search.climb(search.first())
    if not best.answer.accepted:
        best = search.climb(search.ones())
    if best.answer.accepted:
        return search.lifted(best)
    return Start(best.lengths, best.answer, search.refuted({}, 2))


@dataclass(slots=True)
class _Search:
    probe: Probe
    roles: Mapping[Dim, str]
    near: set[int] = field(default_factory=set)
    """Lengths that layers saw when they refused."""

    def first(self) -> Start:
        """The best of some guesses. Those of 1 come last, as it broadcasts and tells little of the others."""
        best: Start | None = None
        for guess in self._guesses():
            tried = self._try(guess)
            if best is None or self._is_better(tried, best):
                best = tried
            if best.answer.accepted:
                break
        assert best is not None
        return best

    def ones(self) -> Start:
        """The lengths that broadcast to any others."""
        return self._try(dict.fromkeys(self.probe.dims, 1))

    def _guesses(self) -> Iterator[Point]:
        typical = {dim: _GUESS.get(self.roles[dim], _OTHER) for dim in self.probe.dims}
        single = typical | {dim: 1 for dim in typical if self.roles[dim] == "batch"}
        yield from (typical, single)
        free = [dim for dim in typical if self.roles[dim] not in ("batch", "channels")]
        yield from (single | dict.fromkeys(free, length) for length in (224, 256, 512, 32, 128, 8, 2))
        yield from (dict.fromkeys(typical, length) for length in _LADDER if length > 1)

    def climb(self, best: Start) -> Start:
        """Change some lengths at a time until all are accepted."""
        for _ in range(_ROUNDS):
            if best.answer.accepted:
                return best
            better = next((s for s in map(self._try, self._moves(best)) if self._is_better(s, best)), None)
            if better is None:
                return best
            best = better
        return best

    def lifted(self, best: Start) -> Start:
        """Lengths of 1 broadcast, which hides what must be equal: prefer others where they are accepted."""
        ones = [dim for dim, length in best.lengths.items() if length == 1]
        by_role = [[dim for dim in ones if self.roles[dim] == name] for name in {self.roles[d] for d in ones}]
        for group in (ones, *sorted(by_role), *([dim] for dim in ones)):
            still = [dim for dim in group if best.lengths[dim] == 1]
            if still:
                best = self._without_ones(best, still)
        return best

    def _without_ones(self, best: Start, ones: Sequence[Dim]) -> Start:
        tried = self._try(best.lengths | dict.fromkeys(ones, 2))
        near = [n for n in tried.answer.near if n > 2]
        others = (self._try(best.lengths | dict.fromkeys(ones, n)) for n in near)
        return next((t for t in (tried, *others) if t.answer.accepted), best)

    def refuted(self, box: dict[Dim, Dimension], depth: int) -> bool:
        """Whether no lengths in a box are accepted: inference says so for it, or for all of its parts."""
        answer = self.probe(box)
        if answer.accepted is False:
            return True
        if depth == 0:
            return False
        dims = [dim for dim in self.probe.dims if dim not in box]
        return any(
            all(self.refuted(box | {dim: part}, depth - 1) for part in self._parts(self.probe.bounds(dim)))
            for dim in dims[:4]
        )

    def _parts(self, bounds: Dimension) -> Iterator[Dimension]:
        low = bounds.min
        for cut in sorted(self.near | {1}):
            if bounds.contains(cut):
                if low < cut:
                    yield Dimension(low, cut - 1)
                yield Dimension(cut)
                low = cut + 1
        if bounds.max is None or low <= bounds.max:
            yield Dimension.between(low, bounds.max)

    def _try(self, lengths: Point) -> Start:
        fitting = {dim: _clipped(length, self.probe.bounds(dim)) for dim, length in lengths.items()}
        answer = self.probe(fitting)
        self.near.update(answer.near)
        return Start(fitting, answer)

    @staticmethod
    def _is_better(tried: Start, best: Start) -> bool:
        return tried.answer.accepted is True or tried.answer.steps > best.answer.steps

    def _moves(self, best: Start) -> Iterator[Point]:
        """Other lengths for what the refusing layer depends on: together where they were equal, then alone."""
        dims = self._behind(best.answer)
        wanted = self._wanted(best, dims)
        for group in _groups(best.lengths, self.roles, dims):
            yield from (best.lengths | dict.fromkeys(group, length) for length in wanted)
        for dim in dims:  # where the product counts
            yield from (best.lengths | dict.fromkeys(dims, 1) | {dim: n} for n in best.answer.near if n > 0)

    def _wanted(self, best: Start, dims: Sequence[Dim]) -> list[int]:
        near = [n for n in best.answer.near if 0 < n <= 1 << 16]
        own = [best.lengths[dim] for dim in dims]
        sums = [a + b for a, b in combinations(dict.fromkeys((*near[:6], *own[:6])), 2)]
        gaps = [abs(a - b) for a, b in combinations(dict.fromkeys((*near[:6], *own[:6])), 2)]
        return [n for n in dict.fromkeys((*near, *own, *_LADDER, *sums, *gaps)) if n > 0]

    def _behind(self, answer: Answer) -> list[Dim]:
        """The open dims that the refusing layer depends on."""
        if answer.layer is None:
            return list(self.probe.dims)
        import networkx as nx

        behind = nx.ancestors(self.probe.graph.network, answer.layer.id)
        return [dim for dim in self.probe.dims if dim.layer in behind]


def _clipped(length: int, bounds: Dimension) -> int:
    length = max(length, bounds.min)
    return length if bounds.max is None else min(length, bounds.max)


def _groups(lengths: Point, roles: Mapping[Dim, str], dims: Sequence[Dim]) -> Iterator[list[Dim]]:
    """Dims of one role, of one length, each alone, and all."""
    by_role: dict[object, list[Dim]] = {}
    by_length: dict[object, list[Dim]] = {}
    for dim in dims:
        by_role.setdefault(roles[dim], []).append(dim)
        by_length.setdefault(lengths[dim], []).append(dim)
    several = [group for group in (*by_role.values(), *by_length.values()) if len(group) > 1]
    unique = {tuple(group): group for group in (*([dim] for dim in dims), *several, list(dims))}
    yield from sorted(unique.values(), key=len)
