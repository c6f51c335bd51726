"""What a comparison found, as data, text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..markup import Shown
from .verdict import DOUBTFUL, EXPLAINED, LOCAL

__all__ = ["Comparison", "DecisionResult", "OutputResult", "UnitResult"]

SCHEMA = 1
SHOWN = 5


@dataclass(frozen=True)
class OutputResult:
    """An output of the model.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> (output,) = debug.compare(model, inputs, {0: np.array([1, 2], np.float32)}).outputs
    >>> output.excess > 10
    True

    Args:
        name: its name.
        relative: the error of the side: rms of the difference from f64, divided by the rms of f64.
        scatter: the relative error that rounding explains.
        excess: how many times the error exceeds that (R).
        ours: the relative error of the reference.
    """

    name: str
    relative: float
    scatter: float
    excess: float
    ours: float

    @property
    def verdict(self) -> str:
        """``explained``, ``doubtful`` or ``unexplained``."""
        return _verdict(self.excess)

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name, "rel": self.relative, "scatter": self.scatter, "R": self.excess, "ours": self.ours,
            "verdict": self.verdict,
        }  # fmt: skip


@dataclass(frozen=True)
class UnitResult:
    """Layers between observed tensors, computed from the side's own values of what they read.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> report = debug.compare(model, inputs, "reference")
    >>> [unit.name for unit in report.units]
    ['y']

    Args:
        name: the name of the tensor that they give.
        operation: the operation of the last layer.
        layers: the names of all of them, in order.
        excess: how many times the error exceeds what rounding explains (local R).
        relative: the error, relative to the tensor: what these layers add.
        inherited: the relative error that their inputs bring.
        equal: the part of the elements that equals the reference, bit for bit.
    """

    name: str
    operation: str
    layers: tuple[str, ...]
    excess: float
    relative: float
    inherited: float
    equal: float

    @property
    def explained(self) -> bool:
        """Whether rounding explains the error."""
        return self.excess <= LOCAL

    @property
    def local(self) -> float:
        """The excess, under the name that reports use."""
        return self.excess

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name, "operation": self.operation, "members": list(self.layers),
            "local": {"R": self.excess, "rel": self.relative, "equal": self.equal}, "inherited": self.inherited,
        }  # fmt: skip


@dataclass(frozen=True)
class DecisionResult:
    """A layer that decides: compares, rounds to integers, selects.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> debug.compare(model, inputs, "reference").decisions
    ()

    Args:
        name: the name of the tensor.
        operation: the operation.
        differ: how many elements f64 decides otherwise, from the same inputs.
        unexplained: how many of them no rounding of the inputs explains; ``None`` if that cannot be said.
        of: how many elements there are.
        levels: by how many levels of a FakeQuantize an unexplained element is off at most.
        layers: the names of the layers between other observed tensors and this one, in order.
    """

    name: str
    operation: str
    differ: int
    unexplained: int | None
    of: int
    levels: float | None = None
    layers: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """``explained``, ``unexplained``, or ``doubtful`` where it is one level: runtimes fuse roundings."""
        if not self.unexplained:
            return "explained"
        return "doubtful" if self.levels is not None and self.levels <= 1 else "unexplained"

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "layer": self.name, "operation": self.operation, "differ": self.differ,
            "unexplained": self.unexplained, "of": self.of, "levels": self.levels, "members": list(self.layers),
        }  # fmt: skip


@dataclass(frozen=True)
class Comparison(Shown):
    """Whether rounding explains how a side differs from f64, and if not, where that begins.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> report = debug.compare(model, inputs, "numpy")
    >>> report.verdict, report.ran
    ('explained', ())

    Args:
        side: the name of the side.
        asked: the precision that was asked for, if any.
        ran: the precisions that it ran in.
        outputs: the outputs of the model.
        units: the observed tensors that are numbers, in topological order.
        decisions: the observed layers that decide, in topological order.
        boundaries: how many tensors were to be observed.
        unobserved: the names of those that could not be.
        partial: whether the comparison was interrupted, so that the rest is missing.
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
        if self.first is not None or self.first_decision is not None:
            return "unexplained"
        if self.partial:
            return "unknown"
        found = _verdict(max((output.excess for output in self.outputs), default=0.0))
        doubtful = any(decision.verdict == "doubtful" for decision in self.decisions)
        return "doubtful" if doubtful and found == "explained" else found

    @property
    def explained(self) -> bool:
        """Whether rounding explains all that was seen."""
        return self.verdict == "explained"

    @property
    def nearest(self) -> str:
        """Who is nearer to f64 at the outputs: the side, or ``ir_runtime``."""
        theirs = max((output.relative for output in self.outputs), default=0.0)
        ours = max((output.ours for output in self.outputs), default=0.0)
        return "ir_runtime" if ours <= theirs else self.side

    def record(self) -> dict[str, Any]:
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
        }  # fmt: skip

    def to_json(self) -> str:
        """The report as JSON text; infinite and missing numbers are texts."""
        import json

        return json.dumps(_plain(self.record()), indent=2)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _verdict(excess: float) -> str:
    return "explained" if excess <= EXPLAINED else "doubtful" if excess <= DOUBTFUL else "unexplained"


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_plain(value) for value in data]
    if isinstance(data, float) and data - data != 0:
        return "NaN" if data != data else "Infinity" if data > 0 else "-Infinity"
    return data


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
    lines += [_decision(decision) for decision in report.decisions if decision.differ]
    seen = report.boundaries - len(report.unobserved)
    lines.append(f"{seen} of {report.boundaries} tensors observed")
    return lines


def _output(output: OutputResult, precision: str) -> str:
    return (
        f"output {output.name}  rel {output.relative:.1e}; {precision} rounding explains {output.scatter:.1e}   "
        f"{output.verdict.upper()} (R {output.excess:.2g})"
    )


def _unit(title: str, unit: UnitResult) -> Sequence[str]:
    head = f"{title}: {unit.name!r} ({unit.operation})  local R {unit.excess:.2g}, rel {unit.relative:.1e}; "
    *others, _ = unit.layers
    more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    members = [f"  computed with it: {', '.join(others[-SHOWN:])}{more}"] if others else []
    return [head + f"inherited {unit.inherited:.1e}", *members]


def _decision(decision: DecisionResult) -> str:
    judged = (
        "not judged" if decision.unexplained is None else f"{decision.unexplained} not explained by rounding"
    )
    if decision.unexplained and decision.levels is not None:
        judged += f", by {decision.levels:.0f} level{'s' if decision.levels > 1 else ''} at most"
    return f"decision {decision.name!r} ({decision.operation}): {decision.differ} of {decision.of} elements differ, {judged}"
