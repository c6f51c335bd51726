"""Judge the observations of a side by the most exact numerics, and body decisions, that explain them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._util.escaping import quoted
from ..ir.tensor import Array
from .caching import Entry
from .case import Case
from .inside import Alternative, Choices
from .local import LocalErrors
from .progress import STOPS, stage, stopped
from .report import Comparison, joined
from .tensors import name_of
from .whole import OutputErrors

__all__ = ["judged_case"]

LOCAL = 0.4
"""Which part of the time judging each layer by itself is taken to need."""
TRIES = 16
"""How many decisions inside bodies are tried otherwise at most."""


@dataclass(frozen=True)
class _Attempt:
    """A report with the reference's decisions in bodies, some of them replaced."""

    report: Comparison
    truth: Sequence[Array]
    chosen: Choices
    alternatives: list[Alternative]

    @property
    def excess(self) -> float:
        """The sum of the logarithms of all errors in excess of rounding."""
        report = self.report
        found = [*(each.excess for each in report.outputs), *(each.excess for each in report.units)]
        return float(np.log(np.clip(found, 1, 1e300)).sum())


def judged_case(case: Case, entry: Entry | None = None) -> tuple[Comparison, Sequence[Array]]:
    """Return a report, and the outputs in f64.

    Numerics and body decisions of a side cannot be observed. If its reported numerics and the reference's
    decisions do not explain its results, alternatives are tried, the most exact first.

    Args:
        case: the judged case.
        entry: the cache entry of finished runs, or ``None``.

    Raises:
        Interrupted: on Ctrl-C, with a partial report.
    """
    first = _attempt(case, {}, entry)
    with stage(1, 1):
        best = _with_other_numerics(case, first, entry)
        return _with_other_decisions(case, best, entry)


def _with_other_numerics(case: Case, first: _Attempt, entry: Entry | None) -> _Attempt:
    """Return an attempt that judges each result by the most exact numerics that explain it."""
    best = first
    if first.report.overflow is not None and case.numerics.bounded and first.report.hides_overflow:
        unbounded = case.computing(replace(case.numerics, bounded=False))
        other = _attempt(unbounded, {}, _part(entry, "unbounded"), first.report)
        return replace(first, report=joined(other.report, first.report, overflows=True))
    ways = [case.numerics]
    for index, numerics in enumerate(case.others()):
        if best.report.settled:
            return best
        ways.append(numerics)
        other = _attempt(case.computing(numerics), {}, _part(entry, f"other-{index}"), best.report)
        best = replace(best, report=joined(best.report, other.report))
    for index, numerics in enumerate(ways):
        if best.report.settled or best.report.overflow is None:
            return best
        bounded = case.computing(replace(numerics, bounded=True))
        other = _attempt(bounded, {}, _part(entry, f"bounded-{index}"), best.report)
        best = replace(best, report=joined(best.report, other.report, overflows=True))
    return best


def _part(entry: Entry | None, name: str) -> Entry | None:
    return None if entry is None else entry.part(name)


def _with_other_decisions(
    case: Case, best: _Attempt, entry: Entry | None
) -> tuple[Comparison, Sequence[Array]]:
    """Try alternative body decisions left open by rounding, one after another, keeping improvements."""
    tries, waiting = 0, _concerned(best)
    while waiting and tries < TRIES and not best.report.settled:
        tries, tried = tries + 1, waiting.pop(0)
        of_same = {**best.chosen.get(tried.number, {}), tried.element: tried.value}
        chosen = {**best.chosen, tried.number: of_same}
        found = _attempt(case, chosen, _part(entry, f"try-{tries}"), best.report)
        if found.excess < best.excess:
            best = found
            waiting = [each for each in _concerned(best) if each[:2] > tried[:2]]
    untried = () if best.report.settled else tuple({each.outer: None for each in waiting})
    return replace(best.report, untried=untried), best.truth


def _concerned(attempt: _Attempt) -> list[Alternative]:
    """Return the alternatives in layers that are unexplained or unobserved."""
    units = attempt.report.units
    explained = {layer for unit in units if unit.explained for layer in unit.layers}
    return [each for each in attempt.alternatives if each.outer not in explained]


def _attempt(
    case: Case,
    chosen: Choices,
    entry: Entry | None,
    before: Comparison | None = None,
) -> _Attempt:
    local = LocalErrors(case, chosen, entry)
    whole = OutputErrors(case, local.exact, local.inside, entry)
    try:
        with stage(0, LOCAL):
            local.run()
        with stage(LOCAL, 1):
            truth = whole.run()
    except STOPS as reason:

        def partial() -> Comparison:
            return replace(_report(case, local, whole) if before is None else before, partial=True)

        raise stopped(reason, partial) from None
    return _Attempt(_report(case, local, whole), truth, chosen, local.alternatives)


def _report(case: Case, local: LocalErrors, whole: OutputErrors) -> Comparison:
    seen = case.seen
    return Comparison(
        side=seen.name,
        asked=seen.asked,
        ran=seen.ran,
        settings=dict(seen.settings),
        outputs=tuple(whole.outputs),
        units=tuple(local.units(whole.inherited)),
        decisions=tuple(local.decisions),
        boundaries=len(case.tensors) + len(seen.unobserved),
        unobserved=tuple(name_of(case.plain.graph, port) for port in seen.unobserved),
        overflow=next(iter(local.overflows), None),
        notes=(*seen.notes, *_absent_notes(case)),
    )


def _absent_notes(case: Case) -> Iterator[str]:
    names = [quoted(case.plain.outputs[index].label) for index in case.seen.absent]
    if names:
        many = "outputs" if len(names) > 1 else "output"
        yield f"{case.seen.name} lacks the {many} {', '.join(names)}, which {'are' if len(names) > 1 else 'is'} not judged"
