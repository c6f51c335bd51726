"""Judge a side that is run several times, as its results may change from run to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..ir.graph import Port
from ..ir.tensor import Array
from .faithful import same_bits
from .observation import Observation, Side
from .reference import Reference
from .report import Comparison

if TYPE_CHECKING:
    from ..openvino.model import Model

__all__ = ["judge_each"]

_ORDER = ("unexplained", "unknown", "doubtful", "overflow", "explained")


@dataclass(frozen=True)
class _Seen:
    """What a side has computed already."""

    seen: Observation

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Return that."""
        return self.seen


Judge = Callable[[Side], tuple[Comparison, Sequence[Array]]]
"""Judges a side."""


def judge_each(
    side: Side,
    times: int,
    model: Model,
    reference: Reference,
    feeds: Sequence[Array],
    ports: Sequence[Port],
    judge: Judge,
) -> tuple[Comparison, Sequence[Array]]:
    """Judge each of the different results of a side, until one is not explained; return the report that says the worst.

    Args:
        side: the side.
        times: how often it is run.
        model: the model.
        reference: its reference.
        feeds: an array for each input.
        ports: the tensors that are of interest.
        judge: judges one of them.
    """
    kinds: list[Observation] = []
    reports: list[tuple[int, Comparison, Sequence[Array]]] = []
    for run in range(1, times + 1):
        seen = side.observe(model, reference, feeds, ports)
        if any(_same(seen, other) for other in kinds):
            continue
        kinds.append(seen)
        reports.append((run, *judge(_Seen(seen))))
        if reports[-1][1].verdict == "unexplained":
            break
    judged, report, truth = min(reports, key=lambda each: _ORDER.index(each[1].verdict))
    if len(kinds) == 1:
        note = f"{run} runs gave the same result" if run > 1 else ""
    else:
        note = f"run {judged} is judged: the first of its kind among {len(kinds)} different results in {run} runs"
    return replace(report, notes=(*report.notes, *filter(None, [note]))), truth


def _same(one: Observation, other: Observation) -> bool:
    """Return whether two runs gave the same, bit for bit."""
    if one.tensors.keys() != other.tensors.keys() or one.absent != other.absent:
        return False
    ours, theirs = ([*seen.outputs, *(seen.tensors[port] for port in one.tensors)] for seen in (one, other))
    return same_bits(ours, theirs)
