"""Local search for a feasible point, lengths that a graph accepts; or a proof that there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ...ir.dimension import Dimension
from .constraint import Answer, Dim
from .probing import Probe

__all__ = ["FeasiblePoint", "find_feasible_point"]

Point = dict[Dim, int]

# A first guess by role. Unrelated dims differ, so that one is not mistaken for another.
_INITIAL_GUESS = {"batch": 2, "channels": 3, "height": 64, "width": 96, "depth": 32, "seq": 16, "past": 8}
_OTHER = 12

# Typical lengths, in the order in which they are tried.
_TYPICAL_LENGTHS = (1, 2, 3, 4, 8, 16, 32, 64, 128, 224, 256, 384, 512, 640, 1024)

# Maximum number of steps of the local search.
_MAX_STEPS = 60


@dataclass(frozen=True, slots=True)
class FeasiblePoint:
    """Accepted lengths, or the lengths at which inference got furthest, with its answer."""

    lengths: Point
    answer: Answer
    infeasible: bool = False
    """Whether it is proved that no feasible point exists."""


def find_feasible_point(probe: Probe, roles: Mapping[Dim, str]) -> FeasiblePoint:
    """Find lengths that a graph accepts, by local search.

    The search starts at a guess, and changes the dims that the refusing layer depends on as long as inference gets further.
    """
    search = _Search(probe, roles)
    best = search.climb(search.first())
    if not best.answer.accepted:
        best = search.climb(search.ones())
    if best.answer.accepted:
        return search.replace_ones(best)
    return FeasiblePoint(best.lengths, best.answer, search.is_infeasible({}, 2))


@dataclass(slots=True)
class _Search:
    probe: Probe
    roles: Mapping[Dim, str]
    near: set[int] = field(default_factory=set)
    """Lengths in the inputs of layers that refused."""

    def first(self) -> FeasiblePoint:
        """Return the best of several guesses."""
        best: FeasiblePoint | None = None
        for guess in self._guesses():
            tried = self._try(guess)
            if best is None or self._is_better(tried, best):
                best = tried
            if best.answer.accepted:
                break
        assert best is not None
        return best

    def ones(self) -> FeasiblePoint:
        """Return the point with every length 1."""
        return self._try(dict.fromkeys(self.probe.dims, 1))

    def _guesses(self) -> Iterator[Point]:
        typical = {dim: _INITIAL_GUESS.get(self.roles[dim], _OTHER) for dim in self.probe.dims}
        single = typical | {dim: 1 for dim in typical if self.roles[dim] == "batch"}
        yield from (typical, single)
        free = [dim for dim in typical if self.roles[dim] not in ("batch", "channels")]
        yield from (single | dict.fromkeys(free, length) for length in (224, 256, 512, 32, 128, 8, 2))
        yield from (dict.fromkeys(typical, length) for length in _TYPICAL_LENGTHS if length > 1)

    def climb(self, best: FeasiblePoint) -> FeasiblePoint:
        """Improve a point by hill climbing until it is feasible, or no change gets inference further."""
        for _ in range(_MAX_STEPS):
            if best.answer.accepted:
                return best
            better = next(
                (s for s in map(self._try, self._neighbors(best)) if self._is_better(s, best)), None
            )
            if better is None:
                return best
            best = better
        return best

    def replace_ones(self, best: FeasiblePoint) -> FeasiblePoint:
        """Replace lengths of 1 by other accepted ones: 1 broadcasts, which hides equality constraints."""
        ones = [dim for dim, length in best.lengths.items() if length == 1]
        by_role = [[dim for dim in ones if self.roles[dim] == name] for name in {self.roles[d] for d in ones}]
        for group in (ones, *sorted(by_role), *([dim] for dim in ones)):
            still = [dim for dim in group if best.lengths[dim] == 1]
            if still:
                best = self._replace_group_of_ones(best, still)
        return best

    def _replace_group_of_ones(self, best: FeasiblePoint, ones: Sequence[Dim]) -> FeasiblePoint:
        two = self._try(best.lengths | dict.fromkeys(ones, 2))
        near = [n for n in two.answer.near if n > 2]
        others = (self._try(best.lengths | dict.fromkeys(ones, n)) for n in near)
        return next((t for t in (two, *others) if t.answer.accepted), best)

    def is_infeasible(self, box: dict[Dim, Dimension], depth: int) -> bool:
        """Return whether inference refuses a box, or all parts of it (branch and bound)."""
        answer = self.probe(box)
        if answer.accepted is False:
            return True
        if depth == 0:
            return False
        dims = [dim for dim in self.probe.dims if dim not in box]
        return any(
            all(
                self.is_infeasible(box | {dim: part}, depth - 1)
                for part in self._parts(self.probe.bounds(dim))
            )
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

    def _try(self, lengths: Point) -> FeasiblePoint:
        fitting = {dim: _clip(length, self.probe.bounds(dim)) for dim, length in lengths.items()}
        answer = self.probe(fitting)
        self.near.update(answer.near)
        return FeasiblePoint(fitting, answer)

    @staticmethod
    def _is_better(tried: FeasiblePoint, best: FeasiblePoint) -> bool:
        return tried.answer.accepted is True or tried.answer.steps > best.answer.steps

    def _neighbors(self, best: FeasiblePoint) -> Iterator[Point]:
        """Yield points that differ in the dims that the refusing layer depends on: in groups of them, then in single ones."""
        dims = self._upstream_dims(best.answer)
        candidates = self._candidate_lengths(best, dims)
        for group in _groups(best.lengths, self.roles, dims):
            yield from (best.lengths | dict.fromkeys(group, length) for length in candidates)
        for dim in dims:  # where the product is constrained
            yield from (best.lengths | dict.fromkeys(dims, 1) | {dim: n} for n in best.answer.near if n > 0)

    def _candidate_lengths(self, best: FeasiblePoint, dims: Sequence[Dim]) -> list[int]:
        near = [n for n in best.answer.near if 0 < n <= 1 << 16]
        own = [best.lengths[dim] for dim in dims]
        sums = [a + b for a, b in combinations(dict.fromkeys((*near[:6], *own[:6])), 2)]
        gaps = [abs(a - b) for a, b in combinations(dict.fromkeys((*near[:6], *own[:6])), 2)]
        return [n for n in dict.fromkeys((*near, *own, *_TYPICAL_LENGTHS, *sums, *gaps)) if n > 0]

    def _upstream_dims(self, answer: Answer) -> list[Dim]:
        """Return the dynamic dims that the refusing layer depends on."""
        if answer.layer is None:
            return list(self.probe.dims)
        behind = self.probe.graph.ancestors([answer.layer.id])
        return [dim for dim in self.probe.dims if dim.layer in behind]


def _clip(length: int, bounds: Dimension) -> int:
    length = max(length, bounds.min)
    return length if bounds.max is None else min(length, bounds.max)


def _groups(lengths: Point, roles: Mapping[Dim, str], dims: Sequence[Dim]) -> Iterator[list[Dim]]:
    """Yield groups of dims, small ones first: each dim alone, those of the same role, those of the same length, and all."""
    by_role: dict[object, list[Dim]] = {}
    by_length: dict[object, list[Dim]] = {}
    for dim in dims:
        by_role.setdefault(roles[dim], []).append(dim)
        by_length.setdefault(lengths[dim], []).append(dim)
    in_plural = [group for group in (*by_role.values(), *by_length.values()) if len(group) > 1]
    unique = {tuple(group): group for group in (*([dim] for dim in dims), *in_plural, list(dims))}
    yield from sorted(unique.values(), key=len)
