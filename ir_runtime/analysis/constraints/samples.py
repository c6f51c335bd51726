"""Samples of accepted lengths: which dims depend on each other, the pattern of each, and feasible points."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from ..._util.deadline import check
from ..._util.forks import cached_property
from ...ir.dimension import Dimension
from .constraint import BudgetExceededError, Dim
from .lengths import Pattern, explore, sum_text
from .probing import Probe
from .symbols import names

__all__ = [
    "DependentDims",
    "Direction",
    "Point",
    "Samples",
    "find_dependent_dims",
]


# Find which dynamic dims vary independently, which only together, and which are fixed.


# Differences to try: products of common strides and windows, and small ones.
_UP = (1, 2, 4, 8, 16, 32, 64, 128, 3, 6, 12, 24, 5, 7, 14, 28, 112, 96, 224, 256)
_DELTAS = (*_UP, *(-d for d in _UP))

# The shortest length to try: 1 broadcasts.
_SHORTEST = 2

# Number of differences to try before asking whether all lengths are refused.
_TRIED = 4

# Differences that move a dim away from others of the same length.
_AWAY = (14, 6, 4, 32, 224, -6, -4, -2)


@dataclass(frozen=True, slots=True)
class Direction:
    """Dims that can grow by the same amount while all others keep their lengths.

    ``own`` dims grow in this direction only; ``sums`` grow in several directions, as sums of dims do.
    """

    own: tuple[Dim, ...]
    sums: tuple[Dim, ...] = ()

    @property
    def dims(self) -> tuple[Dim, ...]:
        """All dims that grow."""
        return (*self.own, *self.sums)


@dataclass(frozen=True, slots=True)
class DependentDims:
    """The directions in which lengths can vary around a feasible point."""

    base: Mapping[Dim, int]
    directions: tuple[Direction, ...]
    fixed: tuple[Dim, ...]
    """Dims that no direction changes."""

    def at(self, lengths: Mapping[Direction, int]) -> dict[Dim, int]:
        """Return the lengths of all dims for given lengths along directions; other directions have the lengths of ``base``."""
        check()
        point = dict(self.base)
        for direction, length in lengths.items():
            grown = length - self.base[direction.own[0]]
            for dim in direction.dims:
                point[dim] += grown
        return point

    def length(self, direction: Direction, lengths: Mapping[Dim, int]) -> int:
        """Return the length along a direction, from its first dim that does not broadcast (is not 1)."""
        first = self.base[direction.own[0]]
        candidates = (lengths[dim] - self.base[dim] + first for dim in direction.own if lengths[dim] != 1)
        return next(candidates, lengths[direction.own[0]])

    def offset(self, dim: Dim) -> int:
        """Return the difference between a dim and the first dim of its direction, or the sum of the first dims of all its directions."""
        firsts = [d.own[0] for d in self.directions if dim in d.dims]
        return self.base[dim] - sum(self.base[first] for first in firsts)


def find_dependent_dims(probe: Probe, base: Mapping[Dim, int], roles: Mapping[Dim, str]) -> DependentDims:
    """Find the directions in which accepted lengths can change: one by one, then in groups.

    A length that merely bounds others, such as that of a table or a mask, stops them where they equal it. Dims that
    seem fixed are therefore tried again after the varying ones are moved away.
    """
    dims = _Search(probe, base, roles).dependent_dims()
    moved = _separate(probe, dims) if dims.fixed else base
    if moved == base:
        return dims
    other = _Search(probe, moved, roles).dependent_dims()
    return other if len(other.fixed) < len(dims.fixed) else dims


def _separate(probe: Probe, dims: DependentDims) -> Mapping[Dim, int]:
    """Return accepted lengths where no direction equals a fixed dim, if possible."""
    lengths = dict(dims.base)
    for direction in dims.directions:
        if any(dims.base[dim] == dims.base[direction.own[0]] for dim in dims.fixed):
            tried = ({**lengths, **{dim: lengths[dim] + d for dim in direction.dims}} for d in _AWAY)
            lengths = next((point for point in tried if _is_accepted(probe, point)), lengths)
    return lengths


def _is_accepted(probe: Probe, point: Mapping[Dim, int]) -> bool:
    fits = all(n > 0 and probe.bounds(dim).contains(n) for dim, n in point.items())
    return fits and probe.accepts(point) is True


@dataclass(slots=True)
class _Search:
    probe: Probe
    base: Mapping[Dim, int]
    roles: Mapping[Dim, str]

    def dependent_dims(self) -> DependentDims:
        alone = [dim for dim in self.base if self._delta([dim]) is not None]
        stuck = [dim for dim in self.base if dim not in alone]
        groups: list[tuple[Dim, ...]] = []
        for candidates in (self._same_role, self._candidates):
            for dim in stuck:
                grouped = [other for group in groups for other in group]
                if dim not in grouped:
                    groups += self._smallest_group(dim, candidates(dim, stuck, grouped))
        shared = {dim for dim in stuck if sum(dim in group for group in groups) > 1}
        directions = [Direction((dim,)) for dim in alone]
        for group in groups:
            own = tuple(dim for dim in group if dim not in shared)
            if own:
                directions.append(Direction(own, tuple(dim for dim in group if dim in shared)))
        moved = {dim for direction in directions for dim in direction.dims}
        order = sorted(directions, key=lambda d: list(self.base).index(d.own[0]))
        return DependentDims(self.base, tuple(order), tuple(dim for dim in stuck if dim not in moved))

    def _smallest_group(self, dim: Dim, candidates: Iterable[Sequence[Dim]]) -> Iterator[tuple[Dim, ...]]:
        """Take the first group that can change together, and yield its smallest part with ``dim`` that can; nothing if no group can."""
        for group in candidates:
            delta = self._delta(group)
            if delta is not None:
                yield self._smallest(dim, group, delta)
                return

    def _same_role(self, dim: Dim, stuck: Sequence[Dim], grouped: Sequence[Dim]) -> Iterator[list[Dim]]:
        """Yield the dims of the same length and role, if others of that length have another role."""
        alike = [other for other in stuck if self.base[other] == self.base[dim] and other not in grouped]
        same = [other for other in alike if other != dim and self.roles[other] == self.roles[dim]]
        if 0 < len(same) < len(alike) - 1:
            yield [dim, *same]

    def _candidates(self, dim: Dim, stuck: Sequence[Dim], grouped: Sequence[Dim]) -> Iterator[list[Dim]]:
        others = [other for other in stuck if other != dim]
        alike = [other for other in others if self.base[other] == self.base[dim]]
        single = [other for other in alike if other not in grouped]
        if single and len(single) < len(alike):
            yield [dim, *single]
        if alike:
            yield [dim, *alike]
        lengths = dict.fromkeys(self.base[other] for other in others if other not in alike)
        for length in lengths:
            yield [dim, *alike, *(other for other in others if self.base[other] == length)]
        yield from ([dim, other] for other in others)
        for length in lengths:
            yield [dim, *(other for other in others if self.base[other] == length)]
        if others:
            yield [dim, *others]

    def _smallest(self, dim: Dim, candidates: Sequence[Dim], delta: int) -> tuple[Dim, ...]:
        """Return the smallest group with ``dim`` that can change by ``delta``, found by removing other dims by bisection."""
        remaining = list(candidates)
        size = max(len(remaining) // 2, 1)
        while size:
            for start in range(0, len(remaining), size):
                part = [d for d in remaining[start : start + size] if d != dim]
                fewer = [d for d in remaining if d not in part]
                if part and self._accepts(fewer, delta):
                    remaining = fewer
                    break
            else:
                size //= 2
        return tuple(d for d in self.base if d in remaining)

    def _delta(self, dims: Sequence[Dim]) -> int | None:
        """Return the first difference by which these dims can change together; ``None`` if there is none."""
        first = next((delta for delta in _DELTAS[:_TRIED] if self._accepts(dims, delta)), None)
        if first is not None or (self._refuses(dims, longer=True) and self._refuses(dims, longer=False)):
            return first
        return next((delta for delta in _DELTAS[_TRIED:] if self._accepts(dims, delta)), None)

    def _refuses(self, dims: Sequence[Dim], longer: bool) -> bool:
        """Return whether inference refuses all longer, or all shorter, lengths of these dims in one query."""
        box = dict[Dim, int | Dimension](self.base)
        alike: dict[int, Dim] = {}
        for dim in dims:
            length = self.base[dim]
            symbol = self.probe.layers.symbols[alike.setdefault(length, dim)]
            if not longer and length <= _SHORTEST:
                return True  # shorter lengths are never tried
            lengths = Dimension.between(length + 1) if longer else Dimension.between(_SHORTEST, length - 1)
            part = lengths.merge(self.probe.bounds(dim))
            if part is None:
                return True
            box[dim] = Dimension.between(part.min, part.max, symbol)
        return self.probe.accepts(box) is False

    def _accepts(self, dims: Iterable[Dim], delta: int) -> bool:
        moved = {dim: self.base[dim] + delta for dim in dims}
        # a length of 1 may be accepted only because it broadcasts
        if any(n < 1 or (n == 1 and self.base[dim] != 1) for dim, n in moved.items()):
            return False
        if not all(_fits(self.probe.bounds(dim), n) for dim, n in moved.items()):
            return False
        return self.probe.accepts({**self.base, **moved}) is True


def _fits(bounds: Dimension, length: int) -> bool:
    return bounds.contains(length)


# Samples of the lengths that a graph accepts: names, patterns and feasible points.


# Maximum number of points at which a candidate is checked.
MAX_POINTS = 5

# Lengths that many dims are set to at once, to test constraints there.
JOINT_LENGTHS = (1, 3, 5, 7, 16)

# The longest length in a sample point, for unbounded lengths.
MAX_UNBOUNDED = 640

Point: TypeAlias = Mapping[Direction, int]
"""The length of the first dim of each direction."""


@dataclass
class Samples:
    """The results of queries about a graph's lengths; expensive ones are made on first use.

    Args:
        probe: answers whether the graph accepts given lengths.
        dependent_dims: the directions in which dims vary, alone or together.
        roles: the likely meaning of each dim.
        inputs: each dim by input and axis, for messages.
    """

    probe: Probe
    dependent_dims: DependentDims
    roles: Mapping[Dim, str]
    inputs: Mapping[Dim, str]
    undecided: list[str] = field(default_factory=list)
    ordered: list[tuple[Direction, Direction]] = field(default_factory=list)
    """Pairs of directions where the first length is at most the second."""

    @cached_property
    def symbols(self) -> dict[Dim, str]:
        """The name of each dynamic dim; sums are written out."""
        dependent_dims = self.dependent_dims
        groups = [*(d.own for d in dependent_dims.directions), *((dim,) for dim in dependent_dims.fixed)]
        symbols = names(self.probe.graph, self.roles, groups)
        for direction in dependent_dims.directions:
            name = symbols[direction.own[0]]
            symbols |= {dim: sum_text([name], dependent_dims.offset(dim)) for dim in direction.own}
        return symbols | {dim: self._sum(dim, symbols) for d in dependent_dims.directions for dim in d.sums}

    def _sum(self, dim: Dim, symbols: Mapping[Dim, str]) -> str:
        addends = [symbols[d.own[0]] for d in self.dependent_dims.directions if dim in d.sums]
        return sum_text(addends, self.dependent_dims.offset(dim))

    def name(self, direction: Direction) -> str:
        """Return the name of the length that varies along a direction."""
        return self.symbols[direction.own[0]]

    @cached_property
    def patterns(self) -> dict[Direction, Pattern]:
        """The pattern of accepted lengths in each direction, starting from the base point."""
        patterns = {direction: self._pattern(direction) for direction in self.dependent_dims.directions}
        return {direction: pattern for direction, pattern in patterns.items() if pattern is not None}

    def _pattern(self, direction: Direction) -> Pattern | None:
        low, high = self._bounds(direction)
        start, name = self.dependent_dims.base[direction.own[0]], self.name(direction)
        try:
            pattern = explore(
                lambda n: self.accepts({direction: n}), start, low, high, partial(self._refuses, direction)
            )
        except BudgetExceededError:
            self.undecided.append(f"{name}: its lengths were not tried, as the search ended before")
            return None
        if pattern.regular:
            return pattern
        example = f", such as {pattern.refused_between}," if pattern.refused_between else ""
        self.undecided.append(f"{name}: some lengths{example} are refused, in no pattern that was found")
        return None

    def _refuses(self, direction: Direction, low: int, high: int | None) -> bool:
        box = self.joint_box(direction, Dimension.between(low, high))
        return box is not None and self.probe.accepts({**self.dependent_dims.base, **box}) is False

    def joint_box(self, direction: Direction, part: Dimension) -> dict[Dim, Dimension] | None:
        """Return a box in which all dims of a direction share one symbol, with lengths in the range ``part``.

        Returns ``None`` if the dims are not always equal.
        """
        if direction.sums or any(self.dependent_dims.offset(dim) for dim in direction.own):
            return None
        symbol = self.probe.layers.symbols[direction.own[0]]
        return dict.fromkeys(direction.own, Dimension.between(part.min, part.max, symbol))

    def _bounds(self, direction: Direction) -> tuple[int, int | None]:
        """Return the range of a direction's first dim in which all dims of the direction stay within their declared ranges."""
        first = self.dependent_dims.base[direction.own[0]]
        bounds = [(self.probe.bounds(dim), self.dependent_dims.base[dim] - first) for dim in direction.dims]
        low = max(max(b.min, 1) - more for b, more in bounds)
        highs = [b.max - more for b, more in bounds if b.max is not None]
        return max(low, 1), min(highs, default=None)

    def accepts(self, point: Point) -> bool | None:
        """Return whether the graph accepts a point; missing directions have the lengths of the base point."""
        return self.probe.accepts(self.dependent_dims.at(point))

    def fits(self, lengths: Mapping[Dim, int]) -> bool:
        """Return whether the lengths are positive, and within the ranges that the Parameters declare."""
        return all(n > 0 and self.probe.bounds(dim).contains(n) for dim, n in lengths.items())

    @cached_property
    def sample_points(self) -> list[Point]:
        """Feasible points far from each other: the base, a small one, and random ones."""
        rng = random.Random(0)  # noqa: S311 - the same lengths every time
        base = {d: self.dependent_dims.base[d.own[0]] for d in self.patterns}
        small = {d: p.nearest(p.low + n) for n, (d, p) in zip(_primes(), self.patterns.items(), strict=False)}
        others = (
            {d: p.nearest(rng.randint(p.low, _search_limit(p))) for d, p in self.patterns.items()}
            for _ in range(MAX_POINTS - 2)
        )
        unlike = {tuple(point.values()): point for point in (base, small, *others)}
        feasible = [point for point in unlike.values() if self._is_feasible(point)]
        return sorted(feasible, key=lambda point: sum(point.values()))

    def try_joint_points(self) -> None:
        """Query points where many dims have the same length, as constraints found for single dims may not hold there."""
        base = self.dependent_dims.base
        alike: dict[object, list[Dim]] = {}
        for dim, length in base.items():
            for group in ("all", self.roles[dim], length):
                alike.setdefault(group, []).append(dim)
        for dims in dict.fromkeys(tuple(dims) for dims in alike.values() if len(dims) > 1):
            for length in JOINT_LENGTHS:
                point = {**base, **dict.fromkeys(dims, length)}
                if self.fits(point):
                    self.probe(point)

    def _is_feasible(self, point: Point) -> bool:
        try:
            answer = self.probe(self.dependent_dims.at(point))
        except BudgetExceededError:
            return False
        if answer.refusal is not None:
            self.undecided.append(
                f"{self.text(point)} are accepted one by one, but not together: layer {answer.refusal.layer!r} refuses: "
                f"{answer.refusal.message}"
            )
        return answer.accepted is not False

    def text(self, point: Point) -> str:
        """Return a point as text: ``batch = 2, seq = 16``."""
        return ", ".join(f"{self.name(direction)} = {n}" for direction, n in point.items())


def _search_limit(pattern: Pattern) -> int:
    most = pattern.low + MAX_UNBOUNDED
    return most if pattern.high is None else min(pattern.high, most)


def _primes() -> Iterator[int]:
    """Yield the primes: no two lengths are multiples of each other by chance."""
    return (n for n in itertools.count(2) if all(n % d for d in range(2, n)))
