"""Check constraint candidates against inference, and keep those without a counterexample."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ...diagnostics import Diagnostic, Severity
from ...ir.dimension import Dimension
from ...ir.tensor import Value
from .candidates import Candidate, find_candidates
from .constraint import Constraint, Trial
from .dependent_dims import Direction
from .oracle import BudgetExceededError, Dim
from .phrasing import in_plural, join_words
from .samples import Point, Samples

__all__ = ["accepted", "check_candidates"]

# Lengths at which one is tried as the bound of another.
_ORDERED = (3, 5, 10, 17)


def check_candidates(samples: Samples) -> list[Constraint]:
    """Return the candidates that hold at every sample point; report the others as undecided."""
    confirmed: list[tuple[Candidate, Constraint]] = []
    with suppress(BudgetExceededError):
        samples.try_joint_points()
    for candidate in find_candidates(samples):
        try:
            checked = _relation(samples, candidate) or _check(samples, candidate)
        except BudgetExceededError:
            samples.undecided.append(f"{candidate.text}: not checked, as the search ended before")
        else:
            confirmed += [] if checked is None else [checked]
    return _merge_equivalent([pair for pair in confirmed if _holds_where_accepted(samples, pair[0])])


def _holds_where_accepted(samples: Samples, candidate: Candidate) -> bool:
    """Return whether a candidate holds at all lengths that inference accepted; report it as undecided otherwise."""
    broken = next((at for at in samples.probe.accepted_points if not candidate.holds(at)), None)
    if broken is not None:
        samples.undecided.append(_counterexample(samples, candidate, {}, broken))
    return broken is None


def accepted(samples: Samples) -> tuple[Trial, ...]:
    """Return feasible lengths, small ones first; some differ from another in only one dim."""
    try:
        return tuple(_trial(samples, lengths, True) for lengths in _feasible_points(samples))
    except BudgetExceededError:
        return ()


def _feasible_points(samples: Samples) -> list[dict[Dim, int]]:
    points = list(samples.sample_points)
    for direction, pattern in samples.patterns.items() if points else ():
        for more in (pattern.step, 3 * pattern.step, 8 * pattern.step):
            length = pattern.nearest(points[0][direction] + more)
            points.append({**points[0], direction: length})
    for small, large in samples.ordered if points else ():
        points += [{**points[0], small: n, large: n + more} for more, n in enumerate(_ORDERED)]
    distinct = {tuple(lengths.values()): lengths for lengths in map(samples.dependent_dims.at, points)}
    return [lengths for lengths in distinct.values() if samples.probe.accepts(lengths) is not False]


def _check(samples: Samples, candidate: Candidate) -> tuple[Candidate, Constraint] | None:
    """Return the constraint if inference refuses every violation of the candidate, at every sample point."""
    refused: tuple[Diagnostic, dict[Dim, int]] | None = None
    for point in samples.sample_points:
        for broken in _violations(samples, candidate, point):
            answer = samples.probe(broken)
            if answer.accepted:
                samples.undecided.append(_counterexample(samples, candidate, point, broken))
                return None
            if answer.refusal is not None and refused is None:
                refused = answer.refusal, broken
    if refused is None:
        samples.undecided.append(f"{candidate.text}: nothing that breaks it could be tried")
        return None
    # suspicious values are a warning only, and may run
    fails = [_trial(samples, refused[1], False)] if refused[0].severity is Severity.ERROR else []
    trials = (*fails, *_at_boundary(samples, candidate))
    proved = _is_proved(samples, candidate)
    constraint = Constraint(
        candidate.kind,
        (candidate.symbol,),
        candidate.text,
        candidate.number,
        refused[0],
        proved,
        trials=trials,
    )
    return candidate, constraint


def _relation(samples: Samples, candidate: Candidate) -> tuple[Candidate, Constraint] | None:
    """Return a constraint between two dims where the bound of one is the length of another."""
    if candidate.kind not in ("at least", "at most"):
        return None
    direction = next(iter(candidate.boundary))
    others = (
        d
        for d in samples.patterns
        if d != direction and samples.dependent_dims.base[d.own[0]] == candidate.number
    )
    for other in others:
        pair = (direction, other) if candidate.kind == "at most" else (other, direction)
        if (refusal := _is_ordered(samples, *pair)) is not None:
            samples.ordered.append(pair)
            return _order_constraint(samples, candidate, *pair, refusal)
    return None


def _order_constraint(
    samples: Samples, candidate: Candidate, small: Direction, large: Direction, refusal: Diagnostic
) -> tuple[Candidate, Constraint]:
    names = samples.name(small), samples.name(large)
    length = samples.dependent_dims.length
    broadcasts = samples.accepts({small: _ORDERED[0], large: 1}) is True
    note = f"; {names[1]} may be 1 instead" if broadcasts else ""

    def is_ordered(at: Mapping[Dim, int]) -> bool:
        return length(small, at) <= length(large, at) or (broadcasts and length(large, at) == 1)

    relation = replace(candidate, text=f"{names[0]} ≤ {names[1]}{note}", holds=is_ordered)
    first, more = _ORDERED[0], _ORDERED[0] + 1
    equal, broken = ({small: n, large: first} for n in (first, more))
    trials = [_trial(samples, samples.dependent_dims.at(equal), True)]
    if refusal.severity is Severity.ERROR:
        trials.append(_trial(samples, samples.dependent_dims.at(broken), False))
    return relation, Constraint("at most", names, relation.text, None, refusal, trials=tuple(trials))


def _is_ordered(samples: Samples, small: Direction, large: Direction) -> Diagnostic | None:
    """Return the refusal of ``small > large`` if it is always refused, and ``small <= large`` never is."""
    refusal: Diagnostic | None = None
    answers: set[bool | None] = set()
    for length in _ORDERED:
        answers |= {samples.accepts({small: length, large: length + more}) for more in (0, 3)}
        if False in answers or True not in answers:  # beyond some length, values are too large to follow
            return None
        refusal = samples.probe(samples.dependent_dims.at({small: length + 1, large: length})).refusal
        if refusal is None:
            return None
    return refusal


def _violations(samples: Samples, candidate: Candidate, point: Point) -> Iterator[dict[Dim, int]]:
    """Yield lengths that violate a candidate and that the Parameters allow."""
    usual = samples.dependent_dims.at(point)
    for make in candidate.violations:
        broken = make(point)
        moved = [dim for dim, n in broken.items() if n != usual[dim]]
        # a length of 1 broadcasts, which the text of the constraint mentions
        ones = candidate.kind == "equal" and any(1 in (broken[dim], usual[dim]) for dim in moved)
        if moved and samples.fits(broken) and not ones:
            yield broken


def _counterexample(samples: Samples, candidate: Candidate, point: Point, broken: Mapping[Dim, int]) -> str:
    usual = samples.dependent_dims.at(point)
    moved = [f"{samples.inputs[dim]} = {n}" for dim, n in broken.items() if n != usual[dim]]
    others = {d: n for d, n in point.items() if all(broken[dim] == usual[dim] for dim in d.own)}
    where = f" where {samples.text(others)}" if others else ""
    return f"{candidate.text} does not hold everywhere: {join_words(moved)} is accepted{where}"


def _at_boundary(samples: Samples, candidate: Candidate) -> Iterator[Trial]:
    """Yield feasible lengths at the boundary of the candidate, the others as small as possible."""
    smallest = {direction: pattern.low for direction, pattern in samples.patterns.items()}
    for point in (smallest, *samples.sample_points[:1]):
        lengths = samples.dependent_dims.at({**point, **candidate.boundary})
        if samples.fits(lengths) and samples.probe.accepts(lengths) is not False:
            yield _trial(samples, lengths, True)
            return


def _is_proved(samples: Samples, candidate: Candidate) -> bool:
    """Return whether inference refuses all boxes that violate the candidate."""
    parts = [_clip_box(samples, box) for box in candidate.boxes]
    return bool(parts) and all(part is None or samples.probe(part).accepted is False for part in parts)


def _clip_box(samples: Samples, box: Mapping[Dim, Dimension]) -> dict[Dim, Dimension] | None:
    """Intersect a box with the lengths that the Parameters allow; ``None`` if nothing is left."""
    clipped = {}
    for dim, part in box.items():
        merged = part.merge(samples.probe.bounds(dim))
        if merged is None:
            return None
        clipped[dim] = Dimension.between(merged.min, merged.max, part.symbol)
    return clipped


def _trial(samples: Samples, lengths: Mapping[Dim, int], is_accepted: bool) -> Trial:
    size = sum(map(_size, samples.probe.values(lengths).values()))
    return Trial(dict(lengths), is_accepted, size)


def _size(value: Value) -> int:
    return math.prod(value.shape.static) if value.shape.is_static else 0


def _merge_equivalent(checked: Sequence[tuple[Candidate, Constraint]]) -> list[Constraint]:
    """Merge constraints that differ only in their symbols, and relations reached from either end."""
    groups: dict[object, list[tuple[Candidate, Constraint]]] = {}
    for candidate, constraint in checked:
        text = constraint.text
        if constraint.kind in ("multiple", "at least", "at most") and len(constraint.symbols) == 1:
            text = text.removeprefix(f"{candidate.symbol} ")
        groups.setdefault((constraint.kind, text), []).append((candidate, constraint))
    return [_merge_group(group) for group in groups.values()]


def _merge_group(group: Sequence[tuple[Candidate, Constraint]]) -> Constraint:
    candidate, first = group[0]
    if len(group) == 1 or len(first.symbols) > 1:
        return first
    subjects = tuple(constraint.symbols[0] for _, constraint in group)
    text = f"{join_words(subjects)} {in_plural(first.text.removeprefix(f'{candidate.symbol} '))}"
    trials = tuple(trial for _, constraint in group for trial in constraint.trials)
    return replace(first, symbols=subjects, text=text, proved=all(f.proved for _, f in group), trials=trials)
