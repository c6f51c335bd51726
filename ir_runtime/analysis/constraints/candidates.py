"""Propose constraint candidates from samples, each with the lengths that would violate it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...ir.dimension import Dimension
from .dependent_dims import Direction
from .lengths import Pattern
from .oracle import BudgetExceededError, Dim
from .phrasing import join_words, offset_text, residue_text
from .samples import Point, Samples

__all__ = ["Candidate", "find_candidates"]

# Lengths tried in place of a fixed one, beside its neighbors.
_ELSEWHERE = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 224, 256, 512, 1024)

# How one length is traded for another, to see whether their product or sum is constrained.
_FACTORS, _SHIFTS = (2, 3, 4, 5, 7, 8), (1, -1, 32, -32)

# The largest number of dims that are traded for each other.
MAX_TRADED = 8

# With more equal lengths than this, not all of them are named.
NAMED = 4

Violation = Callable[[Point], dict[Dim, int]]
"""Makes lengths that violate a candidate from a feasible point."""

Predicate = Callable[[Mapping[Dim, int]], bool]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A constraint to check; ``text`` starts with ``symbol`` where several symbols may share it."""

    kind: str
    symbol: str
    text: str
    number: int | None
    violations: tuple[Violation, ...]
    holds: Predicate
    """Whether lengths satisfy it; a length of 1 that broadcasts is no violation."""
    boundary: Point
    """The feasible point that is closest to violating it."""
    boxes: tuple[Mapping[Dim, Dimension], ...] = ()
    """Ranges of lengths; if all of them are refused, the candidate is proved."""


def find_candidates(samples: Samples) -> Iterator[Candidate]:
    """Yield the constraint candidates; dims that can be traded against each other have none."""
    traded = _interdependent(samples)
    directions = samples.dependent_dims.directions
    yield from (_fixed_candidate(samples, dim) for dim in samples.dependent_dims.fixed if dim not in traded)
    yield from (_equal(samples, direction) for direction in directions if len(direction.own) > 1)
    yield from (_sum(samples, dim) for dim in dict.fromkeys(dim for d in directions for dim in d.sums))
    for direction, pattern in samples.patterns.items():
        if direction.own[0] not in traded:
            yield from _from_pattern(samples, direction, pattern)


def _fixed_candidate(samples: Samples, dim: Dim) -> Candidate:
    length, name = samples.dependent_dims.base[dim], samples.symbols[dim]
    others = (length - 1, length + 1, length * 2, length + 2, length // 2, *_ELSEWHERE)
    violations = tuple(_set(samples, dim, n) for n in dict.fromkeys(others) if n != length)
    below = [Dimension.between(1, length - 1)] if length > 1 else []
    boxes = tuple({dim: part} for part in (*below, Dimension.between(length + 1)))
    text = f"{name} = {length}"
    return Candidate("fixed", name, text, length, violations, lambda at: at[dim] == length, {}, boxes)


def _set(samples: Samples, dim: Dim, length: int) -> Violation:
    return lambda point: {**samples.dependent_dims.at(point), dim: length}


def _shift(samples: Samples, dim: Dim, difference: int) -> Violation:
    def shifted(point: Point) -> dict[Dim, int]:
        lengths = samples.dependent_dims.at(point)
        return {**lengths, dim: lengths[dim] + difference}

    return shifted


def _equal(samples: Samples, direction: Direction) -> Candidate:
    pattern, name = samples.patterns.get(direction), samples.name(direction)
    step = pattern.step if pattern else 1
    violations = tuple(_shift(samples, dim, d) for dim in direction.own for d in (step, 2 * step, -step))
    shown = [samples.inputs[dim] + offset_text(-samples.dependent_dims.offset(dim)) for dim in direction.own]
    count = ""
    if len(shown) > NAMED:
        shown, count = [*shown[:2], "…", shown[-1]], f" ({len(shown)} lengths)"
    text = f"{' = '.join([*shown, name])}{count}{_or_one(samples, direction.own)}"
    return Candidate("equal", name, text, None, violations, _are_equal(samples, direction), {})


def _are_equal(samples: Samples, direction: Direction) -> Predicate:
    offsets = {dim: samples.dependent_dims.offset(dim) for dim in direction.own}
    return lambda at: len({at[dim] - offset for dim, offset in offsets.items() if at[dim] != 1}) <= 1


def _or_one(samples: Samples, dims: Sequence[Dim]) -> str:
    """Return a note on which of some lengths may be 1 instead, because 1 broadcasts."""
    try:
        ones = [samples.inputs[dim] for dim in dims if _may_be_one(samples, dim)]
    except BudgetExceededError:
        return ""
    if not ones:
        return ""
    return f"; {'each' if len(ones) == len(dims) > 1 else join_words(ones)} may be 1 instead"


def _may_be_one(samples: Samples, dim: Dim) -> bool:
    base = samples.dependent_dims.base
    return base[dim] != 1 and samples.fits({dim: 1}) and samples.probe.accepts({**base, dim: 1}) is True


def _sum(samples: Samples, dim: Dim) -> Candidate:
    violations = tuple(_shift(samples, dim, d) for d in (1, -1, 2, 8))
    text = f"{samples.inputs[dim]} = {samples.symbols[dim]}{_or_one(samples, [dim])}"
    return Candidate("sum", samples.symbols[dim], text, None, violations, _is_sum(samples, dim), {})


def _is_sum(samples: Samples, dim: Dim) -> Predicate:
    addends = [direction for direction in samples.dependent_dims.directions if dim in direction.sums]
    offset = samples.dependent_dims.offset(dim)

    def is_sum(at: Mapping[Dim, int]) -> bool:
        return at[dim] in (
            1,
            offset + sum(samples.dependent_dims.length(direction, at) for direction in addends),
        )

    return is_sum


def _from_pattern(samples: Samples, direction: Direction, pattern: Pattern) -> Iterator[Candidate]:
    name = samples.name(direction)
    if pattern.step > 1:
        start = samples.dependent_dims.base[direction.own[0]]
        about = sorted(range(start - pattern.step + 1, start + pattern.step), key=lambda n: (n < start, n))
        between = (n for n in about if n % pattern.step not in pattern.residues)
        violations, text = _at(samples, direction, between), f"{name} {residue_text(pattern)}"
        holds = _within(samples, direction, lambda n: n % pattern.step in pattern.residues)
        yield Candidate("multiple", name, text, pattern.step, violations, holds, {})
    if pattern.refused_below is not None and pattern.low > 1:
        shorter = (pattern.low - d * pattern.step for d in (1, 2, 3))
        violations = _at(samples, direction, (pattern.refused_below, *shorter))
        boxes = _as_one_symbol(samples, direction, Dimension.between(1, pattern.low - 1))
        text, edge = f"{name} ≥ {pattern.low}", {direction: pattern.low}
        holds = _within(samples, direction, lambda n: n >= pattern.low)
        yield Candidate("at least", name, text, pattern.low, violations, holds, edge, boxes)
    if pattern.refused_above is not None and pattern.high is not None:
        high = pattern.high
        longer = (high + d * pattern.step for d in (1, 2, 3, high // pattern.step))
        violations = _at(samples, direction, (pattern.refused_above, *longer))
        boxes = _as_one_symbol(samples, direction, Dimension.between(high + 1))
        text, edge = f"{name} ≤ {high}", {direction: high}
        holds = _within(samples, direction, lambda n: n <= high)
        yield Candidate("at most", name, text, high, violations, holds, edge, boxes)


def _within(samples: Samples, direction: Direction, fits: Callable[[int], bool]) -> Predicate:
    return lambda at: fits(samples.dependent_dims.length(direction, at))


def _at(samples: Samples, direction: Direction, lengths: Iterable[int]) -> tuple[Violation, ...]:
    def at(length: int) -> Violation:
        return lambda point: samples.dependent_dims.at({**point, direction: length})

    return tuple(at(length) for length in dict.fromkeys(lengths) if length > 0)


def _as_one_symbol(
    samples: Samples, direction: Direction, part: Dimension
) -> tuple[Mapping[Dim, Dimension], ...]:
    box = samples.as_one_symbol(direction, part)
    return () if box is None else (box,)


def _interdependent(samples: Samples) -> set[Dim]:
    """Return the dims that may grow only if another shrinks, so that neither has a bound of its own."""
    tight = [direction.own[0] for direction, p in samples.patterns.items() if p.refused_above is not None]
    pairs = itertools.combinations([*samples.dependent_dims.fixed, *tight][:MAX_TRADED], 2)
    groups: list[list[Dim]] = []
    examples: dict[Dim, dict[Dim, int]] = {}
    for pair in pairs:
        try:
            trade = next((t for t in _tradeoffs(samples, *pair) if samples.probe.accepts(t)), None)
        except BudgetExceededError:
            break
        if trade is not None:
            examples |= dict.fromkeys(pair, trade)
            groups = _merge_overlapping(groups, pair)
    for group in groups:
        samples.undecided.append(_dependence(samples, group, examples[group[0]]))
    return set(examples)


def _merge_overlapping(groups: list[list[Dim]], pair: tuple[Dim, Dim]) -> list[list[Dim]]:
    """Merge the groups that contain either dim of a pair."""
    touched = [group for group in groups if set(pair) & set(group)]
    merged = sorted({*pair, *(dim for group in touched for dim in group)})
    return [*(group for group in groups if group not in touched), merged]


def _dependence(samples: Samples, group: list[Dim], trade: Mapping[Dim, int]) -> str:
    def text(lengths: Mapping[Dim, int]) -> str:
        return " x ".join(str(lengths[dim]) for dim in group)

    names = join_words([samples.symbols[dim] for dim in group])
    return f"{names} depend on each other: {text(samples.dependent_dims.base)} is accepted, and {text(trade)}, but not all between"


def _tradeoffs(samples: Samples, one: Dim, other: Dim) -> Iterator[dict[Dim, int]]:
    a, b = samples.dependent_dims.base[one], samples.dependent_dims.base[other]
    products = ((a * k, b // k) for k in _FACTORS), ((a // k, b * k) for k in _FACTORS)
    for x, y in (*itertools.chain(*products), *((a + d, b - d) for d in _SHIFTS)):
        lengths = {**samples.dependent_dims.base, one: x, other: y}
        if (
            samples.fits(lengths)
            and _is_refused_alone(samples, one, x)
            and _is_refused_alone(samples, other, y)
        ):
            yield lengths


def _is_refused_alone(samples: Samples, dim: Dim, length: int) -> bool:
    pattern = next((p for direction, p in samples.patterns.items() if direction.own[0] == dim), None)
    return length != samples.dependent_dims.base[dim] if pattern is None else not pattern.contains(length)
