"""A solver for the constraints on the dynamic lengths of a graph's inputs, with inference as an oracle.

It knows nothing about operations: it only queries whether inference accepts given lengths. A
constraint is reported only if lengths that satisfy it are accepted and lengths that violate it near its
boundary are refused, at every sample point. Otherwise, or if the budget runs out, the result says so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from ..._util.forks import cached_property
from ...codes import Code
from ...diagnostics import Diagnostic, Diagnostics, Severity
from ...ir.dimension import Dimension
from ...ir.graph import Graph, Port
from ...ir.tensor import TensorType, Value
from .constraint import BudgetExceededError, Constraint, Constraints, Dim, Trial
from .feasible_point import find_feasible_point
from .lengths import Pattern, in_plural, join_words, offset_text, residue_text
from .probing import Budget, DynamicLayers, Probe
from .samples import Direction, Point, Samples, find_dependent_dims
from .symbols import label, names, role

__all__ = [
    "Candidate",
    "feasible_trials",
    "check_candidates",
    "check_lengths",
    "find_candidates",
    "find_constraints",
]


# Propose constraint candidates from samples, each with the lengths that would violate it.


# Lengths tried in place of a fixed one, besides its neighbors.
_ELSEWHERE = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 224, 256, 512, 1024)

# Factors and differences by which one length is traded for another, to see whether their product or sum is constrained.
_FACTORS, _SHIFTS = (2, 3, 4, 5, 7, 8), (1, -1, 32, -32)

# Maximum number of dims that are traded for each other.
MAX_TRADED = 8

# Maximum number of equal lengths that are all named in a text.
NAMED = 4

Violation = Callable[[Point], dict[Dim, int]]
"""Returns lengths that violate a candidate, derived from a feasible point."""

Predicate = Callable[[Mapping[Dim, int]], bool]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A constraint to check. Its ``text`` starts with ``symbol`` if constraints on several symbols can be merged."""

    kind: str
    symbol: str
    text: str
    number: int | None
    violations: tuple[Violation, ...]
    holds: Predicate
    """Returns whether lengths satisfy it; a length of 1 that broadcasts is no violation."""
    boundary: Point
    """The lengths of a feasible point that barely satisfies it."""
    boxes: tuple[Mapping[Dim, Dimension], ...] = ()
    """Ranges of lengths that violate it; if all of them are refused, the candidate is proved."""


def find_candidates(samples: Samples) -> Iterator[Candidate]:
    """Yield the constraint candidates; dims that can be traded for each other have none."""
    traded = _interdependent(samples)
    directions = samples.dependent_dims.directions
    yield from (_fixed_candidate(samples, dim) for dim in samples.dependent_dims.fixed if dim not in traded)
    yield from (_equal(samples, direction) for direction in directions if len(direction.own) > 1)
    yield from (_sum(samples, dim) for dim in dict.fromkeys(dim for d in directions for dim in d.sums))
    for direction, pattern in samples.patterns.items():
        if direction.own[0] not in traded:
            yield from _pattern_candidates(samples, direction, pattern)


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
    def shift(point: Point) -> dict[Dim, int]:
        lengths = samples.dependent_dims.at(point)
        return {**lengths, dim: lengths[dim] + difference}

    return shift


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
    """Return a note naming the dims that may be 1 instead, as 1 broadcasts; empty if there are none."""
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


def _pattern_candidates(samples: Samples, direction: Direction, pattern: Pattern) -> Iterator[Candidate]:
    name = samples.name(direction)
    if pattern.step > 1:
        start = samples.dependent_dims.base[direction.own[0]]
        about = sorted(range(start - pattern.step + 1, start + pattern.step), key=lambda n: (n < start, n))
        between = (n for n in about if n % pattern.step not in pattern.residues)
        violations, text = _violations_at(samples, direction, between), f"{name} {residue_text(pattern)}"
        holds = _along(samples, direction, lambda n: n % pattern.step in pattern.residues)
        yield Candidate("multiple", name, text, pattern.step, violations, holds, {})
    if pattern.refused_below is not None and pattern.low > 1:
        shorter = (pattern.low - d * pattern.step for d in (1, 2, 3))
        violations = _violations_at(samples, direction, (pattern.refused_below, *shorter))
        boxes = _joint_boxes(samples, direction, Dimension.between(1, pattern.low - 1))
        text, edge = f"{name} ≥ {pattern.low}", {direction: pattern.low}
        holds = _along(samples, direction, lambda n: n >= pattern.low)
        yield Candidate("at least", name, text, pattern.low, violations, holds, edge, boxes)
    if pattern.refused_above is not None and pattern.high is not None:
        high = pattern.high
        longer = (high + d * pattern.step for d in (1, 2, 3, high // pattern.step))
        violations = _violations_at(samples, direction, (pattern.refused_above, *longer))
        boxes = _joint_boxes(samples, direction, Dimension.between(high + 1))
        text, edge = f"{name} ≤ {high}", {direction: high}
        holds = _along(samples, direction, lambda n: n <= high)
        yield Candidate("at most", name, text, high, violations, holds, edge, boxes)


def _along(samples: Samples, direction: Direction, fits: Callable[[int], bool]) -> Predicate:
    return lambda at: fits(samples.dependent_dims.length(direction, at))


def _violations_at(samples: Samples, direction: Direction, lengths: Iterable[int]) -> tuple[Violation, ...]:
    def at(length: int) -> Violation:
        return lambda point: samples.dependent_dims.at({**point, direction: length})

    return tuple(at(length) for length in dict.fromkeys(lengths) if length > 0)


def _joint_boxes(
    samples: Samples, direction: Direction, part: Dimension
) -> tuple[Mapping[Dim, Dimension], ...]:
    box = samples.joint_box(direction, part)
    return () if box is None else (box,)


def _interdependent(samples: Samples) -> set[Dim]:
    """Return the dims that can grow only while another shrinks, so that neither has a bound of its own."""
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


# Check constraint candidates against inference, and keep those without a counterexample.


# Lengths at which to test whether one dim bounds another.
_ORDERED = (3, 5, 10, 17)


def check_candidates(samples: Samples) -> list[Constraint]:
    """Return constraints for the candidates that hold at every sample point; note the others as undecided."""
    confirmed: list[tuple[Candidate, Constraint]] = []
    with suppress(BudgetExceededError):
        samples.try_joint_points()
    for candidate in find_candidates(samples):
        try:
            checked = _find_order(samples, candidate) or _check(samples, candidate)
        except BudgetExceededError:
            samples.undecided.append(f"{candidate.text}: not checked, as the search ended before")
        else:
            confirmed += [] if checked is None else [checked]
    return _merge_equivalent([pair for pair in confirmed if _holds_where_accepted(samples, pair[0])])


def _holds_where_accepted(samples: Samples, candidate: Candidate) -> bool:
    """Return whether a candidate holds at all lengths that inference accepted; if not, note it as undecided."""
    broken = next((at for at in samples.probe.accepted_points if not candidate.holds(at)), None)
    if broken is not None:
        samples.undecided.append(_counterexample(samples, candidate, {}, broken))
    return broken is None


def feasible_trials(samples: Samples) -> tuple[Trial, ...]:
    """Return feasible lengths as trials, small ones first; some differ from another in only one dim."""
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
    """Return the candidate as a constraint if inference refuses all its violations, at every sample point."""
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
        samples.undecided.append(f"{candidate.text}: no lengths that violate it could be tried")
        return None
    # lengths refused by a warning only, for suspicious values, may run
    fails = [_trial(samples, refused[1], False)] if refused[0].severity is Severity.ERROR else []
    trials = (*fails, *_boundary_trials(samples, candidate))
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


def _find_order(samples: Samples, candidate: Candidate) -> tuple[Candidate, Constraint] | None:
    """Return an order between two dims if the bound of one is the length of the other, else ``None``."""
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
    """Return the refusal of ``small > large`` if that is always refused, and ``small <= large`` never; else ``None``."""
    refusal: Diagnostic | None = None
    answers: set[bool | None] = set()
    for length in _ORDERED:
        answers |= {samples.accepts({small: length, large: length + more}) for more in (0, 3)}
        if (
            False in answers or True not in answers
        ):  # undecided: at large lengths, inference cannot propagate values
            return None
        refusal = samples.probe(samples.dependent_dims.at({small: length + 1, large: length})).refusal
        if refusal is None:
            return None
    return refusal


def _violations(samples: Samples, candidate: Candidate, point: Point) -> Iterator[dict[Dim, int]]:
    """Yield lengths that violate a candidate, within the ranges that the Parameters declare."""
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


def _boundary_trials(samples: Samples, candidate: Candidate) -> Iterator[Trial]:
    """Yield feasible lengths at the boundary of a candidate, the other lengths as small as possible, if there are any."""
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
    """Intersect a box with the ranges that the Parameters declare; ``None`` if it is empty."""
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
    """Merge constraints of the same kind and text, apart from the symbol in it; an order may have been found from either dim."""
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


# Budget to decide whether any lengths are feasible, which usually takes one query.
_MAX_QUESTIONS, _MAX_EVALUATIONS = 200, 5000


def find_constraints(
    graph: Graph,
    values: Mapping[Port, Value],
    parameters: Mapping[int, TensorType],
    budget: Budget | None = None,
) -> Constraints:
    """Find the constraints on the dynamic lengths of a graph's inputs.

    Args:
        graph: the layers; inference must have found no errors.
        values: the values inferred with dynamic lengths.
        parameters: the types of the Parameters, by id.
        budget: the budget of inference; if it runs out, open questions are listed in ``undecided``.
    """
    probe = Probe(DynamicLayers(graph, values, parameters), budget or Budget())
    constraints = _Finder(probe).constraints()
    return replace(constraints, questions=probe.budget.queries)


def check_lengths(
    graph: Graph, values: Mapping[Port, Value], parameters: Mapping[int, TensorType], report: Diagnostics
) -> None:
    """Report that no lengths are feasible, if a few queries can prove it."""
    if all(type.shape.is_static for type in parameters.values()):
        return
    finder = _Finder(
        Probe(DynamicLayers(graph, values, parameters), Budget(_MAX_QUESTIONS, _MAX_EVALUATIONS))
    )
    if finder.probe.dims and (error := finder.contradiction()) is not None:
        report.add(error)


@dataclass
class _Finder:
    probe: Probe
    undecided: list[str] = field(default_factory=list)

    @cached_property
    def roles(self) -> dict[Dim, str]:
        """The likely meaning of each dynamic dim."""
        graph, types = self.probe.graph, self.probe.layers.parameters
        return {d: role(graph[d.layer], types[d.layer].shape, d.axis) for d in self.probe.dims}

    @cached_property
    def inputs(self) -> dict[Dim, str]:
        """Each dynamic dim by input and axis."""
        return {d: f"{label(self.probe.graph[d.layer])}[{d.axis}]" for d in self.probe.dims}

    def contradiction(self) -> Diagnostic | None:
        """Return the error that no lengths are feasible, or ``None`` if that is not proved."""
        try:
            start = find_feasible_point(self.probe, self.roles)
        except BudgetExceededError:
            return None
        return self._no_feasible_point(start.answer.refusal, start.infeasible, {}).error

    def constraints(self) -> Constraints:
        """Return all constraints that can be found within the budget."""
        self._report_unknown_ranks()
        if not self.probe.dims:
            return self._result({})
        alone = names(self.probe.graph, self.roles, [(dim,) for dim in self.probe.dims])
        try:
            start = find_feasible_point(self.probe, self.roles)
        except BudgetExceededError:
            self.undecided.append("all lengths: the search ended before it found any that the model accepts")
            return self._result(alone)
        if not start.answer.accepted:
            return self._no_feasible_point(start.answer.refusal, start.infeasible, alone)
        self.probe.set_reference(start.lengths)
        try:
            # Dims depend on each other by shapes alone; suspicious values may come from other bounds.
            self.probe.lenient = True
            dependent_dims = find_dependent_dims(self.probe, start.lengths, self.roles)
            self.probe.lenient = False
        except BudgetExceededError:
            self.undecided.append(
                "all lengths: the search ended before it found which of them depend on each other"
            )
            return self._result(alone)
        samples = Samples(self.probe, dependent_dims, self.roles, self.inputs, self.undecided)
        return self._result(samples.symbols, found=check_candidates(samples), points=feasible_trials(samples))

    def _report_unknown_ranks(self) -> None:
        for layer, type in self.probe.layers.parameters.items():
            if type.shape.rank is None:
                name = label(self.probe.graph[layer])
                self.undecided.append(f"{name}: not even the number of its dimensions is known")

    def _no_feasible_point(
        self, refusal: Diagnostic | None, infeasible: bool, symbols: Mapping[Dim, str]
    ) -> Constraints:
        why = "" if refusal is None else f"; layer {refusal.layer!r} refuses last: {refusal.message}"
        if infeasible and refusal is not None:
            message = f"no input can satisfy the model: whatever its lengths are, a layer refuses them{why}"
            hint = "the layers contradict each other; compare what each of them demands of the input"
            error = Diagnostic(Code.UNSATISFIABLE, message, refusal.where, hint=hint)
            return self._result(symbols, error)
        count = self.probe.budget.queries
        self.undecided.append(f"everything: none of {count} combinations of lengths was accepted{why}")
        return self._result(symbols)

    def _result(
        self,
        symbols: Mapping[Dim, str],
        error: Diagnostic | None = None,
        found: Sequence[Constraint] = (),
        points: Sequence[Trial] = (),
    ) -> Constraints:
        undecided = tuple(dict.fromkeys(self.undecided))
        return Constraints(tuple(found), symbols, self.inputs, undecided, error, tuple(points))
