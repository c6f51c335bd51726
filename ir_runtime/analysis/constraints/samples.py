"""Samples of the lengths that a graph accepts: names, patterns and feasible points."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from ..._util.forks import cached_property
from ...ir.dimension import Dimension
from .dependent_dims import DependentDims, Direction
from .lengths import Pattern, explore
from .oracle import BudgetExceededError, Dim
from .phrasing import sum_text
from .probing import Probe
from .symbols import names

__all__ = ["Point", "Samples"]

# Points at which a candidate is checked.
MAX_POINTS = 5

# Lengths given to many dims at once, to test constraints there.
JOINT_LENGTHS = (1, 3, 5, 7, 16)

# The longest length in a sample point, for unbounded lengths.
MAX_UNBOUNDED = 640

Point: TypeAlias = Mapping[Direction, int]
"""The length of the first dim of each direction."""


@dataclass
class Samples:
    """Tested lengths and the results; expensive parts are computed on first use.

    Args:
        probe: the oracle.
        dependent_dims: the dims that vary independently or together.
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
        """A name for each dynamic dim; sums are written out."""
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
        box = self.as_one_symbol(direction, Dimension.between(low, high))
        return box is not None and self.probe.accepts({**self.dependent_dims.base, **box}) is False

    def as_one_symbol(self, direction: Direction, part: Dimension) -> dict[Dim, Dimension] | None:
        """Return a box in which all dims of a direction share one symbol; ``None`` if they are not equal."""
        if direction.sums or any(self.dependent_dims.offset(dim) for dim in direction.own):
            return None
        symbol = self.probe.layers.symbols[direction.own[0]]
        return dict.fromkeys(direction.own, Dimension.between(part.min, part.max, symbol))

    def _bounds(self, direction: Direction) -> tuple[int, int | None]:
        """Return the bounds of the first dim of a direction that keep all its dims within their Parameters' bounds."""
        first = self.dependent_dims.base[direction.own[0]]
        bounds = [(self.probe.bounds(dim), self.dependent_dims.base[dim] - first) for dim in direction.dims]
        low = max(max(b.min, 1) - more for b, more in bounds)
        highs = [b.max - more for b, more in bounds if b.max is not None]
        return max(low, 1), min(highs, default=None)

    def accepts(self, point: Point) -> bool | None:
        """Return whether the graph accepts a point; directions not given are as in the base point."""
        return self.probe.accepts(self.dependent_dims.at(point))

    def fits(self, lengths: Mapping[Dim, int]) -> bool:
        """Return whether the Parameters allow the lengths."""
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
        """Query points where many dims change together, as constraints on one dim may fail there."""
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
    """Yield primes, so that no two lengths are multiples of each other by chance."""
    return (n for n in itertools.count(2) if all(n % d for d in range(2, n)))
