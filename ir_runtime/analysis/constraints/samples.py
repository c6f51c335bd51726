"""How the open lengths of a graph vary: names, patterns, and points that are accepted."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ...cached import cached_property
from .dependent_dims import Couplings, Direction
from .lengths import Pattern, explore
from .oracle import BudgetExceededError, Dim
from .phrasing import plus
from .probing import Probe
from .symbols import names

__all__ = ["Point", "Seen"]

# Points with other lengths at which a claim has to hold as well.
CONTEXTS = 5

# The longest length that is put together with others, where there is no bound.
USUAL = 640

Point: TypeAlias = Mapping[Direction, int]
"""The length of the first dim of each direction."""


@dataclass
class Seen:
    """What was seen when lengths were tried; anything expensive is found out when it is asked for.

    Args:
        probe: answers questions.
        couplings: which lengths vary, and with which others.
        roles: what each length is likely to be.
        inputs: each length by input and axis, for texts.
    """

    probe: Probe
    couplings: Couplings
    roles: Mapping[Dim, str]
    inputs: Mapping[Dim, str]
    undecided: list[str] = field(default_factory=list)
    ordered: list[tuple[Direction, Direction]] = field(default_factory=list)
    """Lengths of which the first is at most the second."""

    @cached_property
    def symbols(self) -> dict[Dim, str]:
        """A name for each open length; sums are written out."""
        couplings = self.couplings
        groups = [*(d.own for d in couplings.directions), *((dim,) for dim in couplings.fixed)]
        found = names(self.probe.graph, self.roles, groups)
        for direction in couplings.directions:
            name = found[direction.own[0]]
            found |= {dim: plus([name], couplings.offset(dim)) for dim in direction.own}
        return found | {dim: self._sum(dim, found) for d in couplings.directions for dim in d.sums}

    def _sum(self, dim: Dim, found: Mapping[Dim, str]) -> str:
        addends = [found[d.own[0]] for d in self.couplings.directions if dim in d.sums]
        return plus(addends, self.couplings.offset(dim))

    def name(self, direction: Direction) -> str:
        """What the length that varies in a direction is called."""
        return self.symbols[direction.own[0]]

    @cached_property
    def patterns(self) -> dict[Direction, Pattern]:
        """The lengths that are accepted in each direction, the others being as in the base."""
        found = {direction: self._pattern(direction) for direction in self.couplings.directions}
        return {direction: pattern for direction, pattern in found.items() if pattern is not None}

    def _pattern(self, direction: Direction) -> Pattern | None:
        low, high = self._bounds(direction)
        start, name = self.couplings.base[direction.own[0]], self.name(direction)
        try:
            found = explore(lambda n: self.accepts({direction: n}), start, low, high)
        except BudgetExceededError:
            self.undecided.append(f"{name}: the budget ended before its lengths were tried")
            return None
        if found.regular:
            return found
        example = f", such as {found.refused_between}," if found.refused_between else ""
        self.undecided.append(f"{name}: some lengths{example} are refused, in no pattern that was found")
        return None

    def _bounds(self, direction: Direction) -> tuple[int, int | None]:
        """What the Parameters allow the first dim of a direction, and all that grow with it."""
        first = self.couplings.base[direction.own[0]]
        bounds = [(self.probe.bounds(dim), self.couplings.base[dim] - first) for dim in direction.dims]
        low = max(max(b.min, 1) - more for b, more in bounds)
        highs = [b.max - more for b, more in bounds if b.max is not None]
        return max(low, 1), min(highs, default=None)

    def accepts(self, point: Point) -> bool | None:
        """Whether the graph takes the lengths; what is not given is as in the base."""
        return self.probe.accepts(self.couplings.at(point))

    def fits(self, lengths: Mapping[Dim, int]) -> bool:
        """Whether the Parameters allow the lengths."""
        return all(n > 0 and self.probe.bounds(dim).contains(n) for dim, n in lengths.items())

    @cached_property
    def contexts(self) -> list[Point]:
        """Accepted points far from each other: the base, a small one, and some at random."""
        rng = random.Random(0)  # noqa: S311 - the same lengths every time
        base = {d: self.couplings.base[d.own[0]] for d in self.patterns}
        small = {d: p.nearest(p.low + n) for n, (d, p) in zip(_primes(), self.patterns.items(), strict=False)}
        others = (
            {d: p.nearest(rng.randint(p.low, _usual(p))) for d, p in self.patterns.items()}
            for _ in range(CONTEXTS - 2)
        )
        unlike = {tuple(point.values()): point for point in (base, small, *others)}
        found = [point for point in unlike.values() if self._goes_together(point)]
        return sorted(found, key=lambda point: sum(point.values()))

    def _goes_together(self, point: Point) -> bool:
        try:
            answer = self.probe(self.couplings.at(point))
        except BudgetExceededError:
            return False
        if answer.refusal is not None:
            self.undecided.append(
                f"not all lengths go together that are accepted one by one: with {self.text(point)} layer "
                f"{answer.refusal.layer!r} refuses: {answer.refusal.message}"
            )
        return answer.accepted is not False

    def text(self, point: Point) -> str:
        """A point as people write it: ``batch = 2, seq = 16``."""
        return ", ".join(f"{self.name(direction)} = {n}" for direction, n in point.items())


def _usual(found: Pattern) -> int:
    most = found.low + USUAL
    return most if found.high is None else min(found.high, most)


def _primes() -> Iterator[int]:
    """Small numbers of which none is a multiple of another, so that no two lengths agree by chance."""
    return (n for n in itertools.count(2) if all(n % d for d in range(2, n)))
