"""What a comparison found, as data, text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .._util.escaping import quoted, shown
from .._util.markup import Shown
from .._util.records import Record, encodable
from .results import DecisionResult, OutputResult, UnitResult, verdict_of

__all__ = ["Comparison"]

SCHEMA = 1
SHOWN = 5


@dataclass(frozen=True)
class Comparison(Shown):
    """Whether rounding explains how a side differs from f64, and if not, where that begins.

    Ten fields: it is a report, which has a field for each of its statements.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> report = debug.compare(model, inputs, "numpy")
    >>> report.verdict, report.ran
    ('explained', ())
    >>> report.explained, report.precision, report.first, report.first_decision, report.worst.name
    (True, 'f32', None, None, 'y')
    >>> report.summary
    'rounding explains how numpy differs from f64'
    >>> report.record()["verdict"] in report.to_json(), report.nearest
    (True, 'ir_runtime')

    Args:
        side: the name of the side.
        asked: the precision that was asked for, if any.
        ran: the precisions that it ran in.
        outputs: the outputs of the model.
        units: the observed tensors that are numbers, in topological order.
        decisions: the observed layers that decide, in topological order, and those inside bodies.
        boundaries: how many tensors were to be observed.
        unobserved: the names of those that could not be.
        partial: whether the comparison was interrupted, so that the rest is missing.
        untried: the layers in whose bodies rounding leaves more decisions open than were tried.
    """

    side: str
    asked: str
    ran: tuple[str, ...]
    outputs: tuple[OutputResult, ...]
    units: tuple[UnitResult, ...]
    decisions: tuple[DecisionResult, ...] = ()
    boundaries: int = 0
    unobserved: tuple[str, ...] = field(default=(), repr=False)
    partial: bool = False
    untried: tuple[str, ...] = ()

    @property
    def precision(self) -> str:
        """The precision whose rounding is allowed for."""
        return next((name for name in ("bf16", "f16") if name in self.ran), "f32")

    @property
    def first(self) -> UnitResult | None:
        """The first unit whose error rounding does not explain."""
        return next((unit for unit in self.units if not unit.explained), None)

    @property
    def first_decision(self) -> DecisionResult | None:
        """The first layer that decides as rounding does not explain."""
        return next((decision for decision in self.decisions if decision.verdict == "unexplained"), None)

    @property
    def worst(self) -> UnitResult | None:
        """The unit with the largest excess."""
        return max(self.units, key=lambda unit: unit.excess, default=None)

    @property
    def verdict(self) -> str:
        """``explained``, ``doubtful`` or ``unexplained``; ``unknown`` if the comparison was interrupted before that."""
        accused = [unit for unit in self.units if not unit.explained and not {*unit.layers} & {*self.untried}]
        if accused or self.first_decision is not None:
            return "unexplained"
        if self.partial:
            return "unknown"
        found = verdict_of(max((output.excess for output in self.outputs), default=0.0))
        if self.untried:
            return "doubtful"
        doubtful = any(decision.verdict == "doubtful" for decision in self.decisions)
        return "doubtful" if doubtful and found == "explained" else found

    @property
    def explained(self) -> bool:
        """Whether rounding explains all that was seen."""
        return self.verdict == "explained"

    @property
    def summary(self) -> str:
        """Whether rounding explains it, as a sentence."""
        does = {"explained": "explains", "doubtful": "may explain", "unexplained": "does not explain"}
        return f"rounding {does.get(self.verdict, 'may explain')} how {self.side} differs from f64"

    @property
    def nearest(self) -> str:
        """Who is nearer to f64 at the outputs: the side, or ``ir_runtime``."""
        theirs = max((output.relative for output in self.outputs), default=0.0)
        ours = max((output.ours for output in self.outputs), default=0.0)
        return "ir_runtime" if ours <= theirs else self.side

    def record(self) -> Record:
        """For JSON."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "partial": self.partial,
            "nearest": self.nearest,
            "side": {
                "name": self.side, "asked": self.asked, "ran": list(self.ran), "boundaries": self.boundaries,
                "observed": self.boundaries - len(self.unobserved), "unobserved": list(self.unobserved),
            },
            "outputs": [output.record() for output in self.outputs],
            "layers": [unit.record() for unit in self.units],
            "decisions": [decision.record() for decision in self.decisions],
            "untried": list(self.untried),
        }  # fmt: skip

    def to_json(self) -> str:
        """Return the report as JSON text; infinite and missing numbers are texts."""
        import json

        return json.dumps(encodable(self.record()), indent=2)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(report: Comparison) -> list[str]:
    lines = ["PARTIAL: the comparison was interrupted; the rest is not known"] if report.partial else []
    ran = ", ".join(report.ran)
    quantized = report.asked == "f32" and not {"bf16", "f16"} & set(report.ran)
    if report.asked and report.ran and report.asked not in report.ran and not quantized:
        lines.append(f"note: {report.asked} was asked for, {ran} ran")
    lines += [_output(output, report.precision) for output in report.outputs]
    if report.outputs and not report.explained:
        lines.append(f"nearest to f64: {report.nearest}")
    if (first := report.first) is not None:
        lines += _unit("first unexplained", first)
        if report.worst is not None and report.worst is not first:
            lines += _unit("largest", report.worst)
    lines += [_decision(decision) for decision in report.decisions if decision.differ or decision.undecided]
    lines += [
        f"more of these in {quoted(name)} than were tried: no fault can be shown there"
        for name in report.untried
    ]
    if report.boundaries:
        seen = report.boundaries - len(report.unobserved)
        lines.append(f"{seen} of {report.boundaries} tensors observed")
    return lines


def _output(output: OutputResult, precision: str) -> str:
    return (
        f"output {shown(output.name)}  rel {output.relative:.1e}; {precision} rounding explains {output.scatter:.1e}   "
        f"{output.verdict.upper()} (R {output.excess:.2g})"
    )


def _unit(title: str, unit: UnitResult) -> Sequence[str]:
    head = f"{title}: {quoted(unit.name)} ({unit.operation})  local R {unit.excess:.2g}, rel {unit.relative:.1e}; "
    *others, _ = unit.layers
    more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    members = [f"  computed with it: {', '.join(map(shown, others[-SHOWN:]))}{more}"] if others else []
    return [head + f"inherited {unit.inherited:.1e}", *members]


def _decision(decision: DecisionResult) -> str:
    judged = (
        "not judged" if decision.unexplained is None else f"{decision.unexplained} not explained by rounding"
    )
    if decision.unexplained and decision.levels is not None:
        judged += f", by {decision.levels:.0f} level{'s' if decision.levels > 1 else ''} at most"
    if decision.undecided:
        judged += f"; rounding leaves {decision.undecided} open, which cannot be observed"
    return f"decision {quoted(decision.name)} ({decision.operation}): {decision.differ} of {decision.of} elements differ, {judged}"
