"""The report of a comparison as data, text and JSON.

A `Comparison` holds outputs, units of layers, decisions, an overflow, and a likely mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from .._util.escaping import one_line, quoted, shown
from .._util.markup import Shown
from .._util.records import Record, encodable
from .precision import LIMITS
from .verdict import LOCAL, verdict_of

__all__ = [
    "Comparison",
    "DecisionResult",
    "Likeness",
    "OutputResult",
    "Overflow",
    "UnitResult",
    "combine",
    "restore",
    "restore_report",
]

_Result = TypeVar("_Result")


def restore(cls: type[_Result], fields: Mapping[str, Any]) -> _Result:
    """Restore a result from the dict that `dataclasses.asdict` made of it."""
    return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})


@dataclass(frozen=True)
class OutputResult:
    """The judgement of a model output.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> (output,) = debug.compare(model, inputs, {0: np.array([1, 2], np.float32)}).outputs
    >>> output.excess > 10
    True
    >>> output.verdict, output.record()["verdict"]
    ('unexplained', 'unexplained')

    Args:
        name: the name of the output.
        relative: the relative error of the side: the RMS of its difference from f64, divided by the RMS in f64.
        scatter: the relative error that rounding explains.
        excess: the ratio of ``relative`` to ``scatter`` (R).
        ours: the relative error of the reference in the side's precision.
        beyond: the number of elements that exceed the range of the precision, and are not judged.
        of: the number of elements.
        reason: the reason for an infinite R; else empty.
        precision: the assumed precision.
        overflows: whether only an overflow explains the error.
        index: the index of the output.
    """

    name: str
    relative: float
    scatter: float
    excess: float
    ours: float
    beyond: int = 0
    of: int = 0
    reason: str = ""
    precision: str = "f32"
    overflows: bool = False
    index: int = 0

    @property
    def verdict(self) -> str:
        """``explained``, ``doubtful``, ``overflow`` or ``unexplained``."""
        verdict = verdict_of(self.excess)
        lost = self.beyond or self.overflows
        return "overflow" if verdict == "explained" and lost else verdict

    @property
    def is_as_large(self) -> bool:
        """Whether the error is of the size expected from the assumed rounding."""
        return self.relative >= 0.25 * self.scatter

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "name": self.name, "verdict": self.verdict, "R": self.excess, "rel": self.relative,
            "scatter": self.scatter, "ours": self.ours, "precision": self.precision, "reason": self.reason,
            "beyond": self.beyond, "of": self.of,
        }  # fmt: skip


@dataclass(frozen=True)
class UnitResult:
    """The judgement of a unit: the layers between observed tensors, computed from the side's own inputs.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> report = debug.compare(model, inputs, "reference")
    >>> [unit.name for unit in report.units]
    ['y']
    >>> report.units[0].explained, report.units[0].local > 0, report.units[0].record()["name"]
    (True, True, 'y')

    Args:
        name: the name of the tensor that the unit computes.
        operation: the operation of the last layer.
        layers: the names of the layers, in order.
        excess: the ratio of the error to the error that rounding explains (local R).
        relative: the relative error that these layers add.
        inherited: the relative error that the tensor inherits from the inputs of the unit.
        equal: the fraction of elements that are bitwise equal to the reference.
        scatter: the relative error that rounding explains.
        precision: the assumed precision.
        reason: the reason for an infinite R, or the number of elements in the wrong place.
    """

    name: str
    operation: str
    layers: tuple[str, ...]
    excess: float
    relative: float
    inherited: float
    equal: float
    scatter: float = 0.0
    precision: str = "f32"
    reason: str = ""

    @property
    def is_as_large(self) -> bool:
        """Whether the error is of the size expected from the assumed rounding."""
        return self.relative >= 0.125 * self.scatter

    @property
    def explained(self) -> bool:
        """Whether rounding explains the error."""
        return self.excess <= LOCAL

    @property
    def verdict(self) -> str:
        """``explained`` or ``unexplained``."""
        return "explained" if self.explained else "unexplained"

    @property
    def local(self) -> float:
        """The same as ``excess``, by the name used in reports."""
        return self.excess

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "name": self.name, "operation": self.operation, "members": list(self.layers),
            "local": {"R": self.excess, "rel": self.relative, "scatter": self.scatter, "equal": self.equal},
            "inherited": self.inherited, "precision": self.precision, "reason": self.reason,
        }  # fmt: skip


@dataclass(frozen=True)
class DecisionResult:
    """The judgement of a deciding layer, which compares, rounds to integers, or selects.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> debug.compare(model, inputs, "reference").decisions
    ()
    >>> above = ov.Model([opset1.convert(opset1.greater(x, np.float32(0.5), name="large"), "f32")], [x])
    >>> (decision,) = debug.compare(above, inputs, "reference").decisions
    >>> decision.name, decision.verdict, decision.record()["differ"]
    ('large', 'explained', 0)

    Args:
        name: the name of the tensor.
        operation: the operation.
        differ: the number of elements decided differently in f64 for the same inputs.
        unexplained: the number of these that no rounding of the inputs explains; ``None`` if unknown.
        of: the number of elements.
        levels: the largest error of an unexplained element, in quantization levels of a FakeQuantize.
        layers: the names of the layers between other observed tensors and this one, in order; for a layer in a body, the
            name of the outermost layer.
        undecided: the number of elements in a body whose decisions rounding leaves open; the side's decisions there cannot
            be observed.
    """

    name: str
    operation: str
    differ: int
    unexplained: int | None
    of: int
    levels: float | None = None
    layers: tuple[str, ...] = ()
    undecided: int = 0

    @property
    def verdict(self) -> str:
        """``explained``, ``unexplained``, or ``doubtful`` for a difference of one level, which fused rounding may cause."""
        if not self.unexplained:
            return "explained"
        return "doubtful" if self.levels is not None and self.levels <= 1 else "unexplained"

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "layer": self.name, "operation": self.operation, "differ": self.differ,
            "unexplained": self.unexplained, "of": self.of, "levels": self.levels, "members": list(self.layers),
            "undecided": self.undecided,
        }  # fmt: skip


@dataclass(frozen=True)
class Overflow:
    """An overflow: a layer whose results exceed the range of their type.

    Args:
        layer: the name of the layer.
        operation: the operation of the layer.
        type: the type that overflows.
        largest: the largest magnitude of the results in f64.
        inputs: the largest magnitude of each input.
    """

    layer: str
    operation: str
    type: str
    largest: float
    inputs: Sequence[float] = ()

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "layer": self.layer, "operation": self.operation, "type": self.type, "largest": self.largest,
            "inputs": list(self.inputs),
        }  # fmt: skip

    @property
    def summary(self) -> str:
        """The size of the overflow and of the inputs, as text."""
        read = ", ".join(f"{size:.2g}" for size in self.inputs)
        return f"{self.largest:.2g} in f64, the limit of {self.type} is {LIMITS[self.type]:.4g}; inputs up to {read or 'nothing'}"


@dataclass(frozen=True)
class Likeness:
    """A typical mistake that explains a side's results.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2, 2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([[0, 1], [2, 3]], np.float32)]
    >>> found = debug.compare(model, inputs, {"y": np.exp(inputs[0]).T}).likeness
    >>> found.kind, found.layer, found.what, found.excess < 8
    ('permuted', 'y', 'axes 0 and 1 swapped', True)
    >>> sorted(found.record())
    ['R', 'kind', 'layer', 'operation', 'what']

    Args:
        kind: the kind of mistake: ``all zero``, ``permuted``, ``bias``, ``factor``, ``activation``, ``epsilon``, ``gates``, ``shift``, ``clipped``,
            ``resize``, ``another input``, ``reversed``, ``channels``, ``constant``, ``attribute``, ``operation`` or ``left out``.
        layer: the name of the layer with the mistake.
        operation: the operation of the layer.
        what: the mistake as a clause: ``axes 0 and 1 swapped``.
        excess: the ratio of the error that remains with the mistake to the error that rounding explains (R).
    """

    kind: str
    layer: str
    operation: str
    what: str
    excess: float

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "kind": self.kind, "layer": self.layer, "operation": self.operation, "what": self.what, "R": self.excess,
        }  # fmt: skip

    def __str__(self) -> str:
        return f"looks like: {self.what}, in {quoted(self.layer)} ({self.operation}) (R {self.excess:.2g} after that)"


SCHEMA = 1
SHOWN = 5
HIDING = 0.125
"""The relative error from which assumed rounding may hide an overflow that zeroes a result."""
_SUMMARIES = {
    "explained": "rounding explains how {side} differs from f64",
    "doubtful": "rounding may explain how {side} differs from f64",
    "unexplained": "rounding does not explain how {side} differs from f64",
    "unknown": "{side} was not judged, as the comparison was interrupted",
}


@dataclass(frozen=True)
class Comparison(Shown):
    """The report of `compare`: whether rounding explains how a side differs from the f64 reference, or where errors start.

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
    >>> report.summary, report.settled, report.hides_overflow
    ('explained: rounding explains how numpy differs from f64', True, False)
    >>> report.record()["verdict"] in report.to_json(), report.consistent
    (True, 'ir_runtime')
    >>> report.settings["INFERENCE_PRECISION_HINT"], report.details.count("explained (R")
    ('f32', 1)

    Args:
        side: the name of the side.
        asked: the requested precision, if any.
        ran: the precisions that the side reports.
        outputs: the outputs of the model.
        units: the units of layers that end in observed floating-point tensors, in topological order.
        decisions: the observed deciding layers, in topological order, then those inside bodies.
        boundaries: the number of tensors that were to be observed.
        unobserved: the names of tensors that could not be observed.
        partial: whether the comparison was interrupted.
        untried: the layers whose bodies have more open decisions than could be tried.
        settings: the properties of the side, by its own names; empty if unknown.
        overflow: the first layer whose results exceed their type, if any. It is the verdict only if it reaches an output.
        notes: notes on how the arrays of the side were read, and on missing ones.
        likeness: the mistake that explains the first error beyond rounding, if one was found.
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
    settings: Mapping[str, str] = field(default_factory=dict)
    overflow: Overflow | None = None
    likeness: Likeness | None = None
    notes: tuple[str, ...] = ()

    @property
    def _results(self) -> list[OutputResult | UnitResult]:
        return [*self.outputs, *self.units]

    @property
    def precision(self) -> str:
        """The first assumed precision other than f32, else ``f32``."""
        return next((result.precision for result in self._results if result.precision != "f32"), "f32")

    @property
    def first(self) -> UnitResult | None:
        """The first unit with an error beyond rounding; ``None`` if there is none."""
        return next((unit for unit in self.units if not unit.explained), None)

    @property
    def first_decision(self) -> DecisionResult | None:
        """The first layer with an unexplained decision; ``None`` if there is none."""
        return next((decision for decision in self.decisions if decision.verdict == "unexplained"), None)

    @property
    def worst(self) -> UnitResult | None:
        """The unit with the largest excess; ``None`` if there are no units."""
        return max(self.units, key=lambda unit: unit.excess, default=None)

    @property
    def verdict(self) -> str:
        """``explained``, ``doubtful``, ``overflow``, ``unexplained``, or ``unknown`` after an interrupt.

        After ``overflow``, rounding explains everything except its consequences.
        """
        accused = [unit for unit in self.units if not unit.explained and not {*unit.layers} & {*self.untried}]
        if accused or self.first_decision is not None:
            return "unexplained"
        if self.partial:
            return "unknown"
        if self.untried:
            return "doubtful"
        verdicts = {output.verdict for output in self.outputs}
        verdicts |= {decision.verdict for decision in self.decisions}
        return next(verdict for verdict in _WORST_FIRST if verdict in {*verdicts, "explained"})

    @property
    def explained(self) -> bool:
        """Whether rounding explains all differences."""
        return self.verdict == "explained"

    @property
    def settled(self) -> bool:
        """Whether rounding explains all differences, or all except the consequences of an overflow."""
        return self.verdict in ("explained", "overflow")

    @property
    def hides_overflow(self) -> bool:
        """Whether an overflow may be hidden: elements were not judged, or the assumed rounding is very large."""
        lost = any(output.beyond for output in self.outputs)
        return lost or any(result.scatter > HIDING for result in self._results)

    @property
    def summary(self) -> str:
        """The verdict and its meaning in one line."""
        verdict = self.verdict
        if verdict == "overflow":
            where = self.overflow
            what = "an output" if where is None else f"{quoted(where.layer)} ({where.operation})"
            how = "" if where is None else f" in {where.type}: {where.summary}"
            return f"overflow: {what} overflows{how}"
        return f"{verdict}: {_SUMMARIES[verdict].format(side=self.side)}"

    @property
    def consistent(self) -> str:
        """The name of the side whose outputs are closer to f64: the judged one, or ``ir_runtime``.

        This does not tell whether the IR is correct: the converter may be wrong.
        """
        theirs = max((output.relative for output in self.outputs), default=0.0)
        ours = max((output.ours for output in self.outputs), default=0.0)
        return "ir_runtime" if ours <= theirs else self.side

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "partial": self.partial,
            "summary": self.summary,
            "consistent": self.consistent,
            "overflow": None if self.overflow is None else self.overflow.record(),
            "side": {
                "name": self.side, "asked": self.asked, "ran": list(self.ran), "settings": dict(self.settings),
                "boundaries": self.boundaries,
                "observed": self.boundaries - len(self.unobserved), "unobserved": list(self.unobserved),
            },
            "outputs": [output.record() for output in self.outputs],
            "layers": [unit.record() for unit in self.units],
            "decisions": [decision.record() for decision in self.decisions],
            "untried": list(self.untried),
            "notes": list(self.notes),
            "likeness": None if self.likeness is None else self.likeness.record(),
        }  # fmt: skip

    def to_json(self) -> str:
        """Return the report as JSON text, with infinities and NaN as strings."""
        import json

        return json.dumps(encodable(self.record()), indent=2)

    @property
    def details(self) -> str:
        """The evidence for the verdict: all lines of the report except the first."""
        return "\n".join(_details(self))

    def __str__(self) -> str:
        return f"{self.summary}\n{self.details}"


_WORST_FIRST = ("unexplained", "doubtful", "overflow", "explained")

_Judged = TypeVar("_Judged", OutputResult, UnitResult)


def restore_report(record: Mapping[str, Any]) -> Comparison:
    """Restore a report from a record of all its fields, as `dataclasses.asdict` makes it."""
    overflow, likeness = record["overflow"], record["likeness"]
    parts = {
        "outputs": [restore(OutputResult, fields) for fields in record["outputs"]],
        "units": [restore(UnitResult, fields) for fields in record["units"]],
        "decisions": [restore(DecisionResult, fields) for fields in record["decisions"]],
        "overflow": restore(Overflow, overflow) if overflow else None,
        "likeness": restore(Likeness, likeness) if likeness else None,
    }
    return restore(Comparison, {**record, **parts})


def combine(strict: Comparison, loose: Comparison, overflows: bool = False) -> Comparison:
    """Merge two reports: take results that the first numerics leave unexplained from a report under other numerics.

    Unless the other numerics allow for overflow, such results must have errors of the size that they predict.

    Args:
        strict: the report under the more exact numerics.
        loose: the report under the other numerics.
        overflows: whether the other numerics allow for overflow.
    """

    def choose(
        ours: Sequence[_Judged], theirs: Sequence[_Judged], allowed: Callable[[_Judged], bool]
    ) -> tuple[_Judged, ...]:
        return tuple(
            b if a.verdict != "explained" and b.verdict in ("explained", "overflow") and allowed(b) else a
            for a, b in zip(ours, theirs, strict=True)
        )

    # One result that reveals the numerics of a layer counts for all its results: a single element may be close by chance.
    wrong = zip(strict.units, loose.units, strict=True)
    shown_by = {b.layers[-1] for a, b in wrong if not a.explained and b.explained and b.is_as_large}
    outputs = choose(
        strict.outputs, loose.outputs, lambda result: overflows or bool(shown_by) or result.is_as_large
    )
    if overflows:
        kept = {id(output) for output in strict.outputs}
        outputs = tuple(o if id(o) in kept else replace(o, overflows=True) for o in outputs)
    return replace(
        strict,
        outputs=outputs,
        units=choose(
            strict.units,
            loose.units,
            lambda unit: overflows or unit.is_as_large or unit.layers[-1] in shown_by,
        ),
        decisions=tuple(
            b if a.verdict != "explained" and b.verdict == "explained" else a
            for a, b in zip(strict.decisions, loose.decisions, strict=True)
        ),
        overflow=strict.overflow or loose.overflow,
    )


def _details(report: Comparison) -> list[str]:
    lines = ["PARTIAL: the comparison was interrupted; the rest is not known"] if report.partial else []
    ran = ", ".join(report.ran)
    quantized = report.asked == "f32" and not {"bf16", "f16"} & set(report.ran)
    if report.asked and report.ran and report.asked not in report.ran and not quantized:
        lines.append(f"note: {report.asked} was asked for, {ran} ran")
    lines += [f"note: {one_line(note)}" for note in report.notes]
    lines += _note_precision(report)
    lines += [_output(output) for output in report.outputs]
    if report.outputs and not report.settled:
        lines.append(f"consistent with the IR: {report.consistent}")
    if (first := report.first) is not None:
        lines += _unit("first unexplained", first)
        if report.worst is not None and report.worst is not first:
            lines += _unit("largest", report.worst)
    if report.likeness is not None:
        lines.append(str(report.likeness))
    lines += [_decision(decision) for decision in report.decisions if decision.differ or decision.undecided]
    lines += [
        f"more of these in {quoted(name)} than were tried: no fault can be shown there"
        for name in report.untried
    ]
    if report.boundaries:
        seen = report.boundaries - len(report.unobserved)
        lines.append(f"{seen} of {report.boundaries} tensors observed")
    return [*lines, _ran(report)]


def _ran(report: Comparison) -> str:
    if not report.settings:
        return f"what {shown(report.side)} ran with is not known"
    said = " ".join(f"{name}={shown(value)}" for name, value in report.settings.items())
    return f"{shown(report.side)} ran with {said}"


def _note_precision(report: Comparison) -> list[str]:
    """Return a note if the assumed precision of results differs from the reported one."""
    if not report.ran or not report.boundaries:
        return []
    other = [unit for unit in report.units if unit.precision.split()[0] not in ("f32", *report.ran)]
    if not other:
        return []
    more = f" and {len(other) - 1} more" if len(other) > 1 else ""
    ran = ", ".join(report.ran)
    return [
        f"note: {ran} is reported, the values of {quoted(other[0].name)}{more} are of {other[0].precision}"
    ]


def _output(output: OutputResult) -> str:
    lost = f"; {output.beyond:,} of {output.of:,} elements exceed the type" if output.beyond else ""
    reason = f": {output.reason}" if output.reason else ""
    return (
        f"output {shown(output.name)}  rel {output.relative:.1e}; {output.precision} rounding explains {output.scatter:.1e}{lost}   "
        f"{output.verdict} (R {output.excess:.2g}){reason}"
    )


def _unit(title: str, unit: UnitResult) -> Sequence[str]:
    head = f"{title}: {quoted(unit.name)} ({unit.operation})  local R {unit.excess:.2g}, rel {unit.relative:.1e}; "
    *others, _ = unit.layers
    more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    members = [f"  computed with it: {', '.join(map(shown, others[-SHOWN:]))}{more}"] if others else []
    reason = [f"  {unit.reason}"] if unit.reason else []
    return [head + f"inherited {unit.inherited:.1e}", *reason, *members]


def _decision(decision: DecisionResult) -> str:
    judged = (
        "not judged" if decision.unexplained is None else f"{decision.unexplained} not explained by rounding"
    )
    if decision.unexplained and decision.levels is not None:
        judged += f", by {decision.levels:.0f} level{'s' if decision.levels > 1 else ''} at most"
    if decision.undecided:
        judged += f"; rounding leaves {decision.undecided} open, which cannot be observed"
    return f"decision {quoted(decision.name)} ({decision.operation}): {decision.differ} of {decision.of} elements differ, {judged}"
