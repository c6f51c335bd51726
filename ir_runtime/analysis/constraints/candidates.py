"""What may be claimed of open lengths after what was seen, with all that would break it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...ir.dimension import Dimension, Symbol
from .dependent_dims import Direction
from .lengths import Pattern
from .oracle import BudgetExceededError, Dim
from .phrasing import apart, divided, listed
from .samples import Point, Seen

__all__ = ["Claim", "claims"]

# Lengths at which a fixed one is tried, beside those next to it.
_ELSEWHERE = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 224, 256, 512, 1024)

# How two lengths are traded against each other, to see whether their product or sum is what counts.
_FACTORS, _SHIFTS = (2, 3, 4, 5, 7, 8), (1, -1, 32, -32)

# How many lengths are traded against each other.
TRADED = 8

# With more equal lengths than this, not all of them are named.
NAMED = 4

Break = Callable[[Point], dict[Dim, int]]
"""Lengths that break a claim, made from a point that fulfils everything."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A constraint that is yet to be checked: ``text`` starts with ``symbol`` where others may share it."""

    kind: str
    symbol: str
    text: str
    number: int | None
    breaks: tuple[Break, ...]
    key: object
    """Claims of one kind, number and key are said in one sentence."""
    boundary: Point
    """What is closest to breaking it."""
    boxes: tuple[Mapping[Dim, Dimension], ...] = ()
    """Ranges which, if all are refused, prove it."""


def claims(seen: Seen) -> Iterator[Claim]:
    """Everything that may be claimed, unless lengths depend on each other in a way that has no name here."""
    traded = _traded(seen)
    directions = seen.couplings.directions
    yield from (_fixed(seen, dim) for dim in seen.couplings.fixed if dim not in traded)
    yield from (_equal(seen, direction) for direction in directions if len(direction.own) > 1)
    yield from (_sum(seen, dim) for dim in dict.fromkeys(dim for d in directions for dim in d.sums))
    for direction, pattern in seen.patterns.items():
        if direction.own[0] not in traded:
            yield from _of_pattern(seen, direction, pattern)


def _fixed(seen: Seen, dim: Dim) -> Claim:
    length, name = seen.couplings.base[dim], seen.symbols[dim]
    others = (length - 1, length + 1, length * 2, length + 2, length // 2, *_ELSEWHERE)
    breaks = tuple(_set(seen, dim, n) for n in dict.fromkeys(others) if n != length)
    below = [Dimension.between(1, length - 1)] if length > 1 else []
    boxes = tuple({dim: part} for part in (*below, Dimension.between(length + 1)))
    return Claim("fixed", name, f"{name} = {length}", length, breaks, dim, {}, boxes)


def _set(seen: Seen, dim: Dim, length: int) -> Break:
    return lambda point: {**seen.couplings.at(point), dim: length}


def _shift(seen: Seen, dim: Dim, difference: int) -> Break:
    def shifted(point: Point) -> dict[Dim, int]:
        lengths = seen.couplings.at(point)
        return {**lengths, dim: lengths[dim] + difference}

    return shifted


def _equal(seen: Seen, direction: Direction) -> Claim:
    pattern, name = seen.patterns.get(direction), seen.name(direction)
    step = pattern.step if pattern else 1
    breaks = tuple(_shift(seen, dim, d) for dim in direction.own for d in (step, 2 * step, -step))
    shown = [seen.inputs[dim] + apart(-seen.couplings.offset(dim)) for dim in direction.own]
    count = ""
    if len(shown) > NAMED:
        shown, count = [*shown[:2], "…", shown[-1]], f" ({len(shown)} lengths)"
    text = f"{' = '.join([*shown, name])}{count}{_or_one(seen, direction)}"
    return Claim("equal", name, text, None, breaks, direction, {})


def _or_one(seen: Seen, direction: Direction) -> str:
    """Which of several equal lengths may be 1 instead, because 1 broadcasts."""
    try:
        ones = [seen.inputs[dim] for dim in direction.own if _may_be_one(seen, dim)]
    except BudgetExceededError:
        return ""
    if not ones:
        return ""
    return f"; {'each' if len(ones) == len(direction.own) else listed(ones)} may be 1 instead"


def _may_be_one(seen: Seen, dim: Dim) -> bool:
    base = seen.couplings.base
    return base[dim] != 1 and seen.fits({dim: 1}) and seen.probe.accepts({**base, dim: 1}) is True


def _sum(seen: Seen, dim: Dim) -> Claim:
    breaks = tuple(_shift(seen, dim, d) for d in (1, -1, 2, 8))
    return Claim("sum", seen.symbols[dim], f"{seen.inputs[dim]} = {seen.symbols[dim]}", None, breaks, dim, {})


def _of_pattern(seen: Seen, direction: Direction, found: Pattern) -> Iterator[Claim]:
    name = seen.name(direction)
    if found.step > 1:
        start = seen.couplings.base[direction.own[0]]
        about = sorted(range(start - found.step + 1, start + found.step), key=lambda n: (n < start, n))
        between = (n for n in about if n % found.step not in found.residues)
        breaks, text = _at(seen, direction, between), f"{name} {divided(found)}"
        yield Claim("multiple", name, text, found.step, breaks, found.residues, {})
    if found.refused_below is not None and found.low > 1:
        shorter = (found.low - d * found.step for d in (1, 2, 3))
        breaks = _at(seen, direction, (found.refused_below, *shorter))
        boxes = _tied(seen, direction, Dimension.between(1, found.low - 1))
        text, edge = f"{name} ≥ {found.low}", {direction: found.low}
        yield Claim("at least", name, text, found.low, breaks, None, edge, boxes)
    if found.refused_above is not None and found.high is not None:
        high = found.high
        longer = (high + d * found.step for d in (1, 2, 3, high // found.step))
        breaks = _at(seen, direction, (found.refused_above, *longer))
        boxes = _tied(seen, direction, Dimension.between(high + 1))
        yield Claim("at most", name, f"{name} ≤ {high}", high, breaks, None, {direction: high}, boxes)


def _at(seen: Seen, direction: Direction, lengths: Iterable[int]) -> tuple[Break, ...]:
    def at(length: int) -> Break:
        return lambda point: seen.couplings.at({**point, direction: length})

    return tuple(at(length) for length in dict.fromkeys(lengths) if length > 0)


def _tied(seen: Seen, direction: Direction, part: Dimension) -> tuple[Mapping[Dim, Dimension], ...]:
    """The range for all dims of a direction as one symbol; none where they are not simply equal."""
    if direction.sums or any(seen.couplings.offset(dim) for dim in direction.own):
        return ()
    tied = Dimension.between(part.min, part.max, Symbol(seen.name(direction)))
    return (dict.fromkeys(direction.own, tied),)


def _traded(seen: Seen) -> set[Dim]:
    """Dims of which one may grow where another shrinks: what bounds one alone is then no constraint."""
    tight = [direction.own[0] for direction, p in seen.patterns.items() if p.refused_above is not None]
    pairs = itertools.combinations([*seen.couplings.fixed, *tight][:TRADED], 2)
    groups: list[list[Dim]] = []
    examples: dict[Dim, dict[Dim, int]] = {}
    for pair in pairs:
        try:
            trade = next((t for t in _trades(seen, *pair) if seen.probe.accepts(t)), None)
        except BudgetExceededError:
            break
        if trade is not None:
            examples |= dict.fromkeys(pair, trade)
            groups = _merged(groups, pair)
    for group in groups:
        seen.undecided.append(_dependence(seen, group, examples[group[0]]))
    return set(examples)


def _merged(groups: list[list[Dim]], pair: tuple[Dim, Dim]) -> list[list[Dim]]:
    """The groups after two dims were found to belong to one."""
    touched = [group for group in groups if set(pair) & set(group)]
    merged = sorted({*pair, *(dim for group in touched for dim in group)})
    return [*(group for group in groups if group not in touched), merged]


def _dependence(seen: Seen, group: list[Dim], trade: Mapping[Dim, int]) -> str:
    def text(lengths: Mapping[Dim, int]) -> str:
        return " x ".join(str(lengths[dim]) for dim in group)

    names = listed([seen.symbols[dim] for dim in group])
    return f"{names} depend on each other: {text(seen.couplings.base)} is accepted, and {text(trade)}, but not all between"


def _trades(seen: Seen, one: Dim, other: Dim) -> Iterator[dict[Dim, int]]:
    a, b = seen.couplings.base[one], seen.couplings.base[other]
    products = ((a * k, b // k) for k in _FACTORS), ((a // k, b * k) for k in _FACTORS)
    for x, y in (*itertools.chain(*products), *((a + d, b - d) for d in _SHIFTS)):
        lengths = {**seen.couplings.base, one: x, other: y}
        if seen.fits(lengths) and _is_refused_alone(seen, one, x) and _is_refused_alone(seen, other, y):
            yield lengths


def _is_refused_alone(seen: Seen, dim: Dim, length: int) -> bool:
    pattern = next((p for direction, p in seen.patterns.items() if direction.own[0] == dim), None)
    return length != seen.couplings.base[dim] if pattern is None else not pattern.contains(length)
