"""From what was seen about lengths to constraints, each checked where it could be wrong."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..diagnostics import Diagnostic
from ..ir.dimension import Dimension, Symbol
from .constraint import Constraint, Trial
from .couplings import Couplings, Direction
from .lengths import Pattern, explore
from .probing import Dim, OutOfBudget, Probe
from .symbols import names

__all__ = ["Claims"]

# Points with other lengths at which a claim has to hold as well.
CONTEXTS = 5

# The longest length that is put together with others, where there is no bound.
USUAL = 640

# Lengths at which a fixed one is tried, beside those next to it.
_ELSEWHERE = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 224, 256, 512, 1024)

# How two lengths are traded against each other, to see whether their product is what counts.
_TRADES = (2, 3, 4, 5, 7, 8)

# How many lengths are tried against each other.
TRADED = 8

Point = Mapping[Direction, int]


@dataclass(frozen=True, slots=True)
class _Claim:
    """A constraint of one direction or dim that is yet to be checked."""

    kind: str
    symbol: str
    number: int
    breaks: tuple[Callable[[Point], dict[Dim, int]], ...]
    """Lengths that break it, each made from a point that fulfils everything."""
    key: tuple[int, ...] = ()
    """What claims of several symbols must have in common to be said in one sentence."""
    boxes: tuple[Mapping[Dim, Dimension], ...] = ()
    """Ranges which, if they are refused, prove it."""
    text: str = ""


@dataclass
class Claims:
    """Makes the constraints of a graph from how its open lengths vary.

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

    @cached_property
    def symbols(self) -> dict[Dim, str]:
        """A name for each open length; sums are written out."""
        groups = [*(d.own for d in self.couplings.directions), *((dim,) for dim in self.couplings.fixed)]
        found = names(self.probe.graph, self.roles, groups)
        for direction in self.couplings.directions:
            for dim in direction.own:
                found[dim] = _plus([found[direction.own[0]]], self.couplings.offset(dim))
        sums = {dim for direction in self.couplings.directions for dim in direction.sums}
        return found | {dim: _plus(self._addends(dim, found), self.couplings.offset(dim)) for dim in sums}

    def made(self) -> list[Constraint]:
        """The constraints that hold wherever they were checked."""
        held: list[tuple[_Claim, Constraint]] = []
        self._say_what_has_no_pattern()
        for claim in self._claims():
            try:
                if (constraint := self._checked(claim)) is not None:
                    held.append((claim, constraint))
            except OutOfBudget:
                self.undecided.append(f"{claim.text}: the budget ended before this could be checked")
        return _joined(held)

    def accepted(self) -> tuple[Trial, ...]:
        """Lengths that fulfil everything, small ones first."""
        points = (self.couplings.at(point) for point in self.contexts)
        return tuple(Trial(lengths, True) for lengths in sorted(points, key=lambda p: sum(p.values())))

    @cached_property
    def patterns(self) -> dict[Direction, Pattern | None]:
        """The lengths that are accepted in each direction, the others being as in the base."""
        return {direction: self._pattern(direction) for direction in self.couplings.directions}

    @cached_property
    def contexts(self) -> list[Point]:
        """Accepted points far from each other: the base, the smallest, and some at random."""
        rng = random.Random(0)
        regular = {d: p for d, p in self.patterns.items() if p is not None and p.regular}
        base = {d: self.couplings.base[d.own[0]] for d in regular}
        small = {d: p.nearest(p.low + n) for n, (d, p) in zip(_primes(), regular.items(), strict=False)}
        others = (
            {d: p.nearest(rng.randint(p.low, _usual(p))) for d, p in regular.items()}
            for _ in range(CONTEXTS - 2)
        )
        unlike = {tuple(point.values()): point for point in (base, small, *others)}
        return [point for point in unlike.values() if self._goes_together(point)]

    def _goes_together(self, point: Point) -> bool:
        try:
            answer = self.probe(self.couplings.at(point))
        except OutOfBudget:
            return False
        if answer.refusal is not None:
            self.undecided.append(
                f"not all lengths go together that are accepted one by one: with {self._text(point)} layer "
                f"{answer.refusal.layer!r} refuses: {answer.refusal.message}"
            )
        return answer.accepted is True

    def _text(self, point: Point) -> str:
        return ", ".join(f"{self.symbols[d.own[0]]} = {n}" for d, n in point.items())

    def _addends(self, dim: Dim, found: Mapping[Dim, str]) -> list[str]:
        return [found[d.own[0]] for d in self.couplings.directions if dim in d.sums]

    def _pattern(self, direction: Direction) -> Pattern | None:
        start = self.couplings.base[direction.own[0]]
        low, high = 1, None
        for dim in direction.dims:
            bounds, more = self.probe.bounds(dim), self.couplings.base[dim] - start
            low = max(low, bounds.min - more, 1 - more)
            high = min(
                (h for h in (high, None if bounds.max is None else bounds.max - more) if h is not None),
                default=None,
            )
        try:
            return explore(lambda n: self.probe.accepts(self.couplings.at({direction: n})), start, low, high)
        except OutOfBudget:
            return None

    def _say_what_has_no_pattern(self) -> None:
        for direction, pattern in self.patterns.items():
            name = self.symbols[direction.own[0]]
            if pattern is None:
                self.undecided.append(f"{name}: the budget ended before its lengths were tried")
            elif not pattern.regular:
                example = f", such as {pattern.refused_between}" if pattern.refused_between else ""
                self.undecided.append(
                    f"{name}: some lengths are refused{example}, in no pattern that was found"
                )

    def _claims(self) -> Iterator[_Claim]:
        traded = self._traded()
        for dim in self.couplings.fixed:
            if dim not in traded:
                yield self._fixed(dim)
        for direction in self.couplings.directions:
            if len(direction.own) > 1:
                yield self._equal(direction)
        for dim in dict.fromkeys(dim for d in self.couplings.directions for dim in d.sums):
            yield self._sum(dim)
        for direction, pattern in self.patterns.items():
            if pattern is not None and pattern.regular and direction.own[0] not in traded:
                yield from self._of_pattern(direction, pattern)

    def _traded(self) -> set[Dim]:
        """Dims of which one may grow if another shrinks: what bounds one alone is then no constraint."""
        tight = [d.own[0] for d, p in self.patterns.items() if p is not None and p.high is not None]
        traded: set[Dim] = set()
        for one, other in itertools.combinations([*self.couplings.fixed, *tight][:TRADED], 2):
            try:
                trade = next((t for t in self._trades(one, other) if self.probe.accepts(t)), None)
            except OutOfBudget:
                return traded
            if trade is not None:
                traded |= {one, other}
                base = self.couplings.base
                self.undecided.append(
                    f"{self.symbols[one]} and {self.symbols[other]} depend on each other: {base[one]} and "
                    f"{base[other]} are accepted, {trade[one]} and {trade[other]} as well, but neither changes alone"
                    f" by much"
                )
        return traded

    def _trades(self, one: Dim, other: Dim) -> Iterator[dict[Dim, int]]:
        base, (a, b) = self.couplings.base, (self.couplings.base[one], self.couplings.base[other])
        by_factors = ((a * k, b // k) for k in _TRADES)
        back = ((a // k, b * k) for k in _TRADES)
        shifted = ((a + d, b - d) for d in (1, -1, 32, -32))
        for x, y in (*by_factors, *back, *shifted):
            moved = {**base, one: x, other: y}
            if (
                x > 0
                and y > 0
                and self._is_outside(one, x)
                and self._is_outside(other, y)
                and self._fits(moved)
            ):
                yield moved

    def _is_outside(self, dim: Dim, length: int) -> bool:
        """Whether a length is refused where all others are as in the base."""
        pattern = next((p for d, p in self.patterns.items() if d.own[0] == dim), None)
        return length != self.couplings.base[dim] if pattern is None else not pattern.contains(length)

    def _fits(self, lengths: Mapping[Dim, int]) -> bool:
        return all(n > 0 and self.probe.bounds(dim).contains(n) for dim, n in lengths.items())

    def _fixed(self, dim: Dim) -> _Claim:
        length = self.couplings.base[dim]
        others = (length - 1, length + 1, length * 2, length + 2, length // 2, *_ELSEWHERE)
        breaks = tuple(self._with(dim, n) for n in dict.fromkeys(others) if n > 0 and n != length)
        below, above = Dimension.between(1, length - 1) if length > 1 else None, Dimension.between(length + 1)
        boxes = tuple({dim: part} for part in (below, above) if part is not None)
        name = self.symbols[dim]
        return _Claim("fixed", name, length, breaks, (dim.layer, dim.axis), boxes, f"{name} = {length}")

    def _with(self, dim: Dim, length: int) -> Callable[[Point], dict[Dim, int]]:
        return lambda point: {**self.couplings.at(point), dim: length}

    def _more(self, dim: Dim, difference: int) -> Callable[[Point], dict[Dim, int]]:
        def moved(point: Point) -> dict[Dim, int]:
            lengths = self.couplings.at(point)
            return {**lengths, dim: lengths[dim] + difference}

        return moved

    def _equal(self, direction: Direction) -> _Claim:
        step = self._step(direction)
        breaks = tuple(self._more(dim, d) for dim in direction.own for d in (step, 2 * step, -step))
        name = self.symbols[direction.own[0]]
        shown = [f"{self.inputs[dim]}{_apart(-self.couplings.offset(dim))}" for dim in direction.own]
        if len(shown) > 4:
            shown = [*shown[:2], "…", shown[-1]]
        count = f" ({len(direction.own)} lengths)" if len(direction.own) > 4 else ""
        text = f"{' = '.join([*shown, name])}{count}{self._or_one(direction)}"
        return _Claim("equal", name, len(direction.own), breaks, direction.own[0], (), text)

    def _or_one(self, direction: Direction) -> str:
        """Which of several equal lengths may be 1 instead, because 1 broadcasts."""
        try:
            ones = [dim for dim in direction.own if self._may_be_one(dim)]
        except OutOfBudget:
            return ""
        if len(ones) == len(direction.own):
            return "; each may be 1 instead"
        return f"; {_listed([self.inputs[dim] for dim in ones])} may be 1 instead" if ones else ""

    def _may_be_one(self, dim: Dim) -> bool:
        if self.couplings.base[dim] == 1 or not self.probe.bounds(dim).contains(1):
            return False
        return self.probe.accepts({**self.couplings.base, dim: 1}) is True

    def _step(self, direction: Direction) -> int:
        pattern = self.patterns[direction]
        return 1 if pattern is None else pattern.step

    def _sum(self, dim: Dim) -> _Claim:
        name, text = self.inputs[dim], self.symbols[dim]
        breaks = tuple(self._more(dim, d) for d in (1, -1, 2, 8))
        return _Claim("sum", text, 0, breaks, dim, (), f"{name} = {text}")

    def _of_pattern(self, direction: Direction, found: Pattern) -> Iterator[_Claim]:
        name = self.symbols[direction.own[0]]
        if found.step > 1:
            yield self._multiple(direction, found, name)
        if found.refused_below is not None and found.low > 1:
            breaks = self._at(direction, (found.low - d * found.step for d in (1, 2, 3)))
            boxes = ({direction.own[0]: Dimension.between(0, found.low - 1)},)
            text = f"{name} ≥ {found.low}"
            yield _Claim(
                "at least", name, found.low, breaks, (found.low,), self._tied(direction, boxes), text
            )
        if found.refused_above is not None and found.high is not None:
            further = (found.high + d * found.step for d in (1, 2, 3, found.high // found.step))
            box = {direction.own[0]: Dimension.between(found.high + 1)}
            breaks, text = self._at(direction, further), f"{name} ≤ {found.high}"
            yield _Claim(
                "at most", name, found.high, breaks, (found.high,), self._tied(direction, (box,)), text
            )

    def _multiple(self, direction: Direction, found: Pattern, name: str) -> _Claim:
        start = self.couplings.base[direction.own[0]]
        lengths = (n for n in range(start + 1, start + found.step) if not found.contains(n))
        text = f"{name} {_modulo(found, several=False)}"
        return _Claim("multiple", name, found.step, self._at(direction, lengths), found.residues, (), text)

    def _at(
        self, direction: Direction, lengths: Iterable[int]
    ) -> tuple[Callable[[Point], dict[Dim, int]], ...]:
        def at(length: int) -> Callable[[Point], dict[Dim, int]]:
            return lambda point: self.couplings.at({**point, direction: length})

        return tuple(at(length) for length in dict.fromkeys(lengths) if length > 0)

    def _tied(
        self, direction: Direction, boxes: Sequence[Mapping[Dim, Dimension]]
    ) -> tuple[Mapping[Dim, Dimension], ...]:
        """The boxes with all dims that are equal in one range; none where it is not as simple as that."""
        if any(self.couplings.offset(dim) for dim in direction.own) or direction.sums:
            return ()
        symbol = Symbol(self.symbols[direction.own[0]])
        ranges = (next(iter(box.values())) for box in boxes)
        tied = (Dimension.between(r.min, r.max, symbol) for r in ranges)
        return tuple(dict.fromkeys(direction.own, r) for r in tied)

    def _checked(self, claim: _Claim) -> Constraint | None:
        """The constraint, if all that breaks it is refused, at every point."""
        reason: Diagnostic | None = None
        trial: Trial | None = None
        for point in self.contexts:
            for broken in self._possible(claim, point):
                answer = self.probe(broken)
                if answer.accepted:
                    self._say_where_not(claim, point)
                    return None
                if answer.refusal is not None and (
                    reason is None or sum(broken.values()) < sum(trial.lengths.values())
                ):  # type: ignore[union-attr]
                    reason, trial = answer.refusal, Trial(broken, False)
        if reason is None or trial is None:
            self.undecided.append(f"{claim.text}: nothing that breaks it could be tried")
            return None
        proved = bool(claim.boxes) and all(
            self.probe(self._allowed(box)).accepted is False for box in claim.boxes
        )
        return Constraint(
            claim.kind, (claim.symbol,), claim.text, claim.number, reason, proved, trials=(trial,)
        )

    def _possible(self, claim: _Claim, point: Point) -> Iterator[dict[Dim, int]]:
        """What breaks a claim and yet is allowed by the Parameters."""
        usual = self.couplings.at(point)
        for make in claim.breaks:
            broken = make(point)
            moved = [dim for dim, n in broken.items() if n != usual[dim]]
            # equal lengths of which one is 1 broadcast, which is said elsewhere
            ones = claim.kind == "equal" and any(1 in (broken[dim], usual[dim]) for dim in moved)
            if moved and self._fits(broken) and not ones:
                yield broken

    def _allowed(self, box: Mapping[Dim, Dimension]) -> dict[Dim, Dimension]:
        return {
            dim: replaced for dim, part in box.items() if (replaced := _within(part, self.probe.bounds(dim)))
        }

    def _say_where_not(self, claim: _Claim, point: Point) -> None:
        where = self._text({d: n for d, n in point.items() if self.symbols[d.own[0]] != claim.symbol})
        at = self._text(
            {d: self.couplings.base[d.own[0]] for d in point if self.symbols[d.own[0]] != claim.symbol}
        )
        self.undecided.append(f"{claim.text} where {at}, but not where {where}")


def _usual(found: Pattern) -> int:
    most = found.low + USUAL
    return most if found.high is None else min(found.high, most)


def _primes() -> Iterator[int]:
    """Small numbers of which none is a multiple of another, so that no two lengths agree by chance."""
    return (n for n in itertools.count(2) if all(n % d for d in range(2, n)))


def _within(part: Dimension, bounds: Dimension) -> Dimension | None:
    merged = part.merge(bounds)
    return None if merged is None else Dimension.between(merged.min, merged.max, part.symbol)


def _joined(held: Sequence[tuple[_Claim, Constraint]]) -> list[Constraint]:
    """One sentence for what is demanded of several symbols alike."""
    groups: dict[object, list[tuple[_Claim, Constraint]]] = {}
    for claim, constraint in held:
        groups.setdefault((claim.kind, claim.number, claim.key), []).append((claim, constraint))
    return [_together(group) for group in groups.values()]


def _together(group: Sequence[tuple[_Claim, Constraint]]) -> Constraint:
    claim, first = group[0]
    if len(group) == 1:
        return first
    subjects = tuple(found.symbols[0] for _, found in group)
    said = first.text.removeprefix(f"{claim.symbol} ")
    text = f"{_listed(subjects)} {said.replace('is a multiple', 'are multiples', 1).replace('leaves', 'leave', 1)}"
    trials = tuple(trial for _, found in group for trial in found.trials)
    return replace(first, symbols=subjects, text=text, proved=all(f.proved for _, f in group), trials=trials)


def _modulo(found: Pattern, several: bool) -> str:
    if found.residues == (0,):
        return f"is a multiple of {found.step}"
    if len(found.residues) == 1:
        return f"is a multiple of {found.step} plus {found.residues[0]}"
    return f"leaves {_listed(list(map(str, found.residues)), 'or')} when divided by {found.step}"


def _listed(items: Sequence[str], last: str = "and") -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"


def _plus(addends: Sequence[str], offset: int) -> str:
    return " + ".join(addends) + _apart(offset)


def _apart(offset: int) -> str:
    return "" if not offset else f" {'+' if offset > 0 else '-'} {abs(offset)}"
