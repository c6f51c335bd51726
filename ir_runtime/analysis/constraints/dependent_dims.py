"""Find which open lengths can change alone, which only together, and which not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...ir.dimension import Dimension
from .oracle import Dim
from .probing import Probe

__all__ = ["Couplings", "Direction", "find_couplings"]

# Differences to try: what strides and windows multiply up to, and the small ones.
_UP = (1, 2, 4, 8, 16, 32, 64, 128, 3, 6, 12, 24, 5, 7, 14, 28, 112, 96, 224, 256)
_DELTAS = (*_UP, *(-d for d in _UP))


@dataclass(frozen=True, slots=True)
class Direction:
    """Dims whose lengths grow by the same number, the others staying as they are.

    ``own`` grow in this direction alone; ``sums`` in others too, and so are sums of what varies.
    """

    own: tuple[Dim, ...]
    sums: tuple[Dim, ...] = ()

    @property
    def dims(self) -> tuple[Dim, ...]:
        """All that grow."""
        return (*self.own, *self.sums)


@dataclass(frozen=True, slots=True)
class Couplings:
    """How lengths vary about a point that is accepted."""

    base: Mapping[Dim, int]
    directions: tuple[Direction, ...]
    fixed: tuple[Dim, ...]
    """Dims that no direction changes."""

    def at(self, lengths: Mapping[Direction, int]) -> dict[Dim, int]:
        """All lengths, from those of the first dim of some directions; the others are as in ``base``."""
        found = dict(self.base)
        for direction, length in lengths.items():
            grown = length - self.base[direction.own[0]]
            for dim in direction.dims:
                found[dim] += grown
        return found

    def offset(self, dim: Dim) -> int:
        """What a dim has more than the first of its direction, or than the sum of its directions."""
        firsts = [d.own[0] for d in self.directions if dim in d.dims]
        return self.base[dim] - sum(self.base[first] for first in firsts)


def find_couplings(probe: Probe, base: Mapping[Dim, int]) -> Couplings:
    """Move lengths away from accepted ones, alone and together, and see what is accepted."""
    return _Search(probe, base).couplings()


@dataclass(slots=True)
class _Search:
    probe: Probe
    base: Mapping[Dim, int]

    def couplings(self) -> Couplings:
        alone = [dim for dim in self.base if self._delta([dim]) is not None]
        stuck = [dim for dim in self.base if dim not in alone]
        groups: list[tuple[Dim, ...]] = []
        for dim in stuck:
            if not any(dim in group for group in groups):
                groups += self._together(dim, stuck)
        shared = {dim for dim in stuck if sum(dim in group for group in groups) > 1}
        directions = [Direction((dim,)) for dim in alone]
        for group in groups:
            own = tuple(dim for dim in group if dim not in shared)
            if own:
                directions.append(Direction(own, tuple(dim for dim in group if dim in shared)))
        moved = {dim for direction in directions for dim in direction.dims}
        order = sorted(directions, key=lambda d: list(self.base).index(d.own[0]))
        return Couplings(self.base, tuple(order), tuple(dim for dim in stuck if dim not in moved))

    def _together(self, dim: Dim, stuck: Sequence[Dim]) -> Iterator[tuple[Dim, ...]]:
        """The smallest set of dims around one that can change together, if there is such a set."""
        for candidates in self._candidates(dim, stuck):
            delta = self._delta(candidates)
            if delta is not None:
                yield self._smallest(dim, candidates, delta)
                return

    def _candidates(self, dim: Dim, stuck: Sequence[Dim]) -> Iterator[list[Dim]]:
        others = [other for other in stuck if other != dim]
        alike = [other for other in others if self.base[other] == self.base[dim]]
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
        """Leave out, halves first, whatever need not change."""
        kept = list(candidates)
        size = max(len(kept) // 2, 1)
        while size:
            for start in range(0, len(kept), size):
                part = [d for d in kept[start : start + size] if d != dim]
                fewer = [d for d in kept if d not in part]
                if part and self._accepts(fewer, delta):
                    kept = fewer
                    break
            else:
                size //= 2
        return tuple(d for d in self.base if d in kept)

    def _delta(self, dims: Sequence[Dim]) -> int | None:
        """A difference by which these dims can change together."""
        return next((delta for delta in _DELTAS if self._accepts(dims, delta)), None)

    def _accepts(self, dims: Iterable[Dim], delta: int) -> bool:
        moved = {dim: self.base[dim] + delta for dim in dims}
        # a length of 1 broadcasts to others, and so is accepted for a reason of its own
        if any(n < 1 or (n == 1 and self.base[dim] != 1) for dim, n in moved.items()):
            return False
        if not all(_fits(self.probe.bounds(dim), n) for dim, n in moved.items()):
            return False
        return self.probe.accepts({**self.base, **moved}) is True


def _fits(bounds: Dimension, length: int) -> bool:
    return bounds.contains(length)
