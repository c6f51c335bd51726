"""Judge what was observed of a side, with decisions inside bodies that explain it, as far as rounding leaves them open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..ir.tensor import Array
from .caching import Entry
from .case import Case
from .inside import Alternative, Choices
from .local import LocalErrors
from .progress import Interrupted, stage
from .report import Comparison
from .tensors import name_of
from .whole import OutputErrors

__all__ = ["judged_case"]

LOCAL = 0.4
"""Which part of the time judging each layer by itself is taken to need."""
TRIES = 16
"""How many decisions inside bodies are tried otherwise at most."""


@dataclass(frozen=True)
class _Attempt:
    """A report, with decisions inside bodies as the reference takes them, but for some."""

    report: Comparison
    truth: Sequence[Array]
    chosen: Choices
    alternatives: list[Alternative]

    @property
    def excess(self) -> float:
        """How far all errors together exceed what rounding explains, so that each that is explained counts."""
        report = self.report
        found = [*(each.excess for each in report.outputs), *(each.excess for each in report.units)]
        return float(np.log(np.clip(found, 1, 1e300)).sum())


def judged_case(case: Case, entry: Entry | None = None) -> tuple[Comparison, Sequence[Array]]:
    """Return a report, and the outputs in f64.

    What a side decides inside bodies cannot be observed. If the decisions of the reference do not explain what it
    computes, one after the other that rounding leaves open is taken otherwise, and kept if that explains more.

    Args:
        case: what is judged.
        entry: where finished runs are kept; ``None`` if they are not.

    Raises:
        Interrupted: on Ctrl-C, with a partial report.
    """
    best, tries = _attempt(case, {}, entry), 0
    waiting = _concerned(best)
    with stage(1, 1):
        while waiting and tries < TRIES and not best.report.explained:
            tries, tried = tries + 1, waiting.pop(0)
            kept = None if entry is None else entry.part(f"try-{tries}")
            of_same = {**best.chosen.get(tried.number, {}), tried.element: tried.value}
            found = _attempt(case, {**best.chosen, tried.number: of_same}, kept, best.report)
            if found.excess < best.excess:
                best = found
                waiting = [each for each in _concerned(best) if each[:2] > tried[:2]]
    untried = () if best.report.explained else tuple({each.outer: None for each in waiting})
    return replace(best.report, untried=untried), best.truth


def _concerned(attempt: _Attempt) -> list[Alternative]:
    """Return the alternatives in layers that are not explained, or not observed."""
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
    except KeyboardInterrupt:
        partial = _report(case, local, whole) if before is None else before
        raise Interrupted(replace(partial, partial=True)) from None
    return _Attempt(_report(case, local, whole), truth, chosen, local.alternatives)


def _report(case: Case, local: LocalErrors, whole: OutputErrors) -> Comparison:
    seen = case.seen
    return Comparison(
        side=seen.name,
        asked=seen.asked,
        ran=seen.ran,
        outputs=tuple(whole.outputs),
        units=tuple(local.units(whole.inherited)),
        decisions=tuple(local.decisions),
        boundaries=len(case.tensors) + len(seen.unobserved),
        unobserved=tuple(name_of(case.plain.graph, port) for port in seen.unobserved),
    )
