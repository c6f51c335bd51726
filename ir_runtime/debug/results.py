"""Results of a comparison: outputs, units of layers, decisions, an overflow, and a likely mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .._util.escaping import quoted
from .._util.records import Record
from .precision import LIMITS
from .verdict import LOCAL, verdict_of

__all__ = [
    "DecisionResult",
    "OutputResult",
    "UnitResult",
    "Overflow",
    "Likeness",
    "restore",
]


_Result = TypeVar("_Result")


def restore(cls: type[_Result], fields: Mapping[str, Any]) -> _Result:
    """Restore a result from a record of all its fields, as `dataclasses.asdict` makes it."""
    return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})


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
    >>> output.verdict, output.record()["verdict"]
    ('unexplained', 'unexplained')

    Args:
        name: its name.
        relative: the relative error of the side: the rms of the difference from f64, divided by the rms of f64.
        scatter: the relative error that rounding explains.
        excess: the ratio of the two (R).
        ours: the relative error of the reference.
        beyond: the number of elements that exceed the type of computation, and are not judged.
        of: the number of elements.
        reason: the reason for an infinite R; else empty.
        precision: the assumed precision.
        overflows: whether only an overflow explains the error.
        index: its index.
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
        """Whether the error is about as large as the assumed rounding."""
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
    """Layers between observed tensors, computed from the side's own inputs.

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
        name: the name of the resulting tensor.
        operation: the operation of the last layer.
        layers: the names of the layers, in order.
        excess: the ratio of the error to the error that rounding explains (local R).
        relative: the relative error that these layers add.
        inherited: the relative error of their inputs.
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
        """Whether the error is about as large as the assumed rounding."""
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
        """The excess, under the name that reports use."""
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
    """A deciding layer: one that compares, rounds to integers, or selects.

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
        differ: the number of elements that f64 decides differently for the same inputs.
        unexplained: the number of those that no rounding of the inputs explains; ``None`` if unknown.
        of: the number of elements.
        levels: the largest error of an unexplained element in levels of a FakeQuantize.
        layers: the names of the layers between other observed tensors and this one, in order; for a layer in a body, the
            name of the layer outside.
        undecided: the number of elements in a body that rounding leaves open, as the side's decisions there cannot be
            observed.
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
        """``explained``, ``unexplained``, or ``doubtful`` for one level, as runtimes fuse roundings."""
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
    """A layer whose results overflow their type.

    Args:
        layer: the name of the layer.
        operation: its operation.
        type: the type.
        largest: the largest magnitude in f64.
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
        """Describe the size of the overflow and the inputs."""
        read = ", ".join(f"{size:.2g}" for size in self.inputs)
        return f"{self.largest:.2g} in f64, the limit of {self.type} is {LIMITS[self.type]:.4g}; inputs up to {read or 'nothing'}"


@dataclass(frozen=True)
class Likeness:
    """A mistake that explains a side's results.

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
        kind: its kind: ``all zero``, ``permuted``, ``bias``, ``factor``, ``activation``, ``epsilon``, ``gates``, ``shift``, ``clipped``,
            ``resize``, ``another input``, ``reversed``, ``channels``, ``constant``, ``attribute``, ``operation`` or ``left out``.
        layer: the name of the layer that has it.
        operation: its operation.
        what: the mistake as a clause: ``axes 0 and 1 swapped``.
        excess: the ratio of the remaining error to the error that rounding explains (R).
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
