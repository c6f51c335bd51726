"""Hold claims about open lengths against inference, and keep those that nothing contradicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...diagnostics import Diagnostic, Severity
from ...ir.dimension import Dimension
from ...ir.tensor import Value
from .candidates import Claim, claims
from .constraint import Constraint, Trial
from .dependent_dims import Direction
from .oracle import BudgetExceededError, Dim
from .phrasing import listed, several
from .samples import Point, Seen

__all__ = ["accepted", "checked"]

# Lengths at which one is tried as the bound of another.
_ORDERED = (3, 5, 10, 17)


def checked(seen: Seen) -> list[Constraint]:
    """The constraints that hold at every point at which they were checked; what does not is undecided."""
    held: list[tuple[Claim, Constraint]] = []
    for claim in claims(seen):
        try:
            constraint = _check(seen, claim)
        except BudgetExceededError:
            seen.undecided.append(f"{claim.text}: the budget ended before this could be checked")
        else:
            held += [] if constraint is None else [(claim, constraint)]
    return _joined(held)


def accepted(seen: Seen) -> tuple[Trial, ...]:
    """Lengths that fulfil everything, small ones first, in which each varies alone as well."""
    try:
        return tuple(_trial(seen, lengths, True) for lengths in _fulfilling(seen))
    except BudgetExceededError:
        return ()


def _fulfilling(seen: Seen) -> list[dict[Dim, int]]:
    points = list(seen.contexts)
    for direction, pattern in seen.patterns.items() if points else ():
        for more in (pattern.step, 3 * pattern.step, 8 * pattern.step):
            length = pattern.nearest(points[0][direction] + more)
            points.append({**points[0], direction: length})
    for small, large in seen.ordered if points else ():
        points += [{**points[0], small: n, large: n + more} for more, n in enumerate(_ORDERED)]
    found = {tuple(lengths.values()): lengths for lengths in map(seen.couplings.at, points)}
    return [lengths for lengths in found.values() if seen.probe.accepts(lengths) is not False]


def _check(seen: Seen, claim: Claim) -> Constraint | None:
    """The constraint, if all that breaks it is refused, at every point."""
    if (relation := _relation(seen, claim)) is not None:
        return relation
    refused: tuple[Diagnostic, dict[Dim, int]] | None = None
    for point in seen.contexts:
        for broken in _breaks(seen, claim, point):
            answer = seen.probe(broken)
            if answer.accepted:
                seen.undecided.append(_not_everywhere(seen, claim, point, broken))
                return None
            if answer.refusal is not None and refused is None:
                refused = answer.refusal, broken
    if refused is None:
        seen.undecided.append(f"{claim.text}: nothing that breaks it could be tried")
        return None
    # what nobody can mean may run all the same
    fails = [_trial(seen, refused[1], False)] if refused[0].severity is Severity.ERROR else []
    trials = (*fails, *_at_boundary(seen, claim))
    proved = _is_proved(seen, claim)
    return Constraint(
        claim.kind, (claim.symbol,), claim.text, claim.number, refused[0], proved, trials=trials
    )


def _relation(seen: Seen, claim: Claim) -> Constraint | None:
    """One length as the bound of another, where a number is not."""
    if claim.kind not in ("at least", "at most"):
        return None
    direction = next(iter(claim.boundary))
    others = (d for d in seen.patterns if d != direction and seen.couplings.base[d.own[0]] == claim.number)
    for other in others:
        pair = (direction, other) if claim.kind == "at most" else (other, direction)
        if (refusal := _is_ordered(seen, *pair)) is not None:
            seen.ordered.append(pair)
            names = seen.name(pair[0]), seen.name(pair[1])
            return Constraint("at most", names, f"{names[0]} ≤ {names[1]}", None, refusal)
    return None


def _is_ordered(seen: Seen, small: Direction, large: Direction) -> Diagnostic | None:
    """What refuses a length that is more than another, if it always does, and nothing refuses others."""
    refusal: Diagnostic | None = None
    for length in _ORDERED:
        allowed = ({small: length, large: length}, {small: length, large: length + 3})
        if not all(seen.accepts(point) for point in allowed):
            return None
        refusal = seen.probe(seen.couplings.at({small: length + 1, large: length})).refusal
        if refusal is None:
            return None
    return refusal


def _breaks(seen: Seen, claim: Claim, point: Point) -> Iterator[dict[Dim, int]]:
    """What breaks a claim and yet is allowed by the Parameters."""
    usual = seen.couplings.at(point)
    for make in claim.breaks:
        broken = make(point)
        moved = [dim for dim, n in broken.items() if n != usual[dim]]
        # equal lengths of which one is 1 broadcast, which is said elsewhere
        ones = claim.kind == "equal" and any(1 in (broken[dim], usual[dim]) for dim in moved)
        if moved and seen.fits(broken) and not ones:
            yield broken


def _not_everywhere(seen: Seen, claim: Claim, point: Point, broken: Mapping[Dim, int]) -> str:
    usual = seen.couplings.at(point)
    moved = [f"{seen.inputs[dim]} = {n}" for dim, n in broken.items() if n != usual[dim]]
    others = {d: n for d, n in point.items() if all(broken[dim] == usual[dim] for dim in d.own)}
    where = f" where {seen.text(others)}" if others else ""
    return f"{claim.text} does not hold everywhere: {listed(moved)} is accepted{where}"


def _at_boundary(seen: Seen, claim: Claim) -> Iterator[Trial]:
    """Lengths next to those that break it, the others being as small as may be."""
    smallest = {direction: pattern.low for direction, pattern in seen.patterns.items()}
    for point in (smallest, *seen.contexts[:1]):
        lengths = seen.couplings.at({**point, **claim.boundary})
        if seen.fits(lengths) and seen.probe.accepts(lengths) is not False:
            yield _trial(seen, lengths, True)
            return


def _is_proved(seen: Seen, claim: Claim) -> bool:
    """Whether whole ranges are refused, beside which there is nothing that could break it."""
    parts = [_allowed(seen, box) for box in claim.boxes]
    return bool(parts) and all(part is None or seen.probe(part).accepted is False for part in parts)


def _allowed(seen: Seen, box: Mapping[Dim, Dimension]) -> dict[Dim, Dimension] | None:
    """A range without what the Parameters exclude; ``None`` if nothing is left."""
    found = {}
    for dim, part in box.items():
        merged = part.merge(seen.probe.bounds(dim))
        if merged is None:
            return None
        found[dim] = Dimension.between(merged.min, merged.max, part.symbol)
    return found


def _trial(seen: Seen, lengths: Mapping[Dim, int], is_accepted: bool) -> Trial:
    size = sum(map(_size, seen.probe.values(lengths).values()))
    return Trial(dict(lengths), is_accepted, size)


def _size(value: Value) -> int:
    return math.prod(value.shape.static) if value.shape.is_static else 0


def _joined(held: Sequence[tuple[Claim, Constraint]]) -> list[Constraint]:
    """One sentence for what is demanded of several symbols alike."""
    groups: dict[object, list[tuple[Claim, Constraint]]] = {}
    for claim, constraint in held:
        own = claim.key if claim.kind == "multiple" else None if claim.kind.startswith("at") else claim.text
        if constraint.text != claim.text:  # a relation, found from either end
            own = constraint.text
        groups.setdefault((constraint.kind, constraint.number, own), []).append((claim, constraint))
    return [_together(group) for group in groups.values()]


def _together(group: Sequence[tuple[Claim, Constraint]]) -> Constraint:
    claim, first = group[0]
    if len(group) == 1 or len(first.symbols) > 1:
        return first
    subjects = tuple(found.symbols[0] for _, found in group)
    text = f"{listed(subjects)} {several(first.text.removeprefix(f'{claim.symbol} '))}"
    trials = tuple(trial for _, found in group for trial in found.trials)
    return replace(first, symbols=subjects, text=text, proved=all(f.proved for _, f in group), trials=trials)
