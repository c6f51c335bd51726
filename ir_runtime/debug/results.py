"""Results of a comparison for an output, a unit of layers, or a decision."""

from __future__ import annotations

from dataclasses import dataclass

from .._util.records import Record
from .verdict import DOUBTFUL, EXPLAINED, LOCAL

__all__ = ["DecisionResult", "OutputResult", "UnitResult", "verdict_of"]


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
        relative: the error of the side: rms of the difference from f64, divided by the rms of f64.
        scatter: the relative error that rounding explains.
        excess: how many times the error exceeds that (R).
        ours: the relative error of the reference.
        beyond: how many elements are not judged, as they exceed the type in which they are computed.
        of: how many elements there are.
        reason: why R is infinite; empty if it is not.
        precision: the rounding that is allowed for.
        overflows: whether only what an overflow makes explains it.
        index: its number.
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
        found = verdict_of(self.excess)
        return "overflow" if found == "explained" and (self.beyond or self.overflows) else found

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
        name: the name of the tensor that they give.
        operation: the operation of the last layer.
        layers: the names of all of them, in order.
        excess: how many times the error exceeds what rounding explains (local R).
        relative: the error, relative to the tensor: what these layers add.
        inherited: the relative error that their inputs bring.
        equal: the part of the elements that equals the reference, bit for bit.
        scatter: the relative error that rounding explains.
        precision: the rounding that is allowed for.
        reason: why R is infinite, or how many elements were moved to another place.
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
        differ: how many elements f64 decides otherwise, from the same inputs.
        unexplained: how many of them no rounding of the inputs explains; ``None`` if that cannot be said.
        of: how many elements there are.
        levels: by how many levels of a FakeQuantize an unexplained element is off at most.
        layers: the names of the layers between other observed tensors and this one, in order; of a layer in a body,
            which is named by its path, that of the layer outside.
        undecided: how many elements of a layer in a body rounding leaves open: that a side decides otherwise cannot be
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


def verdict_of(excess: float) -> str:
    """Return ``explained``, ``doubtful`` or ``unexplained``."""
    return "explained" if excess <= EXPLAINED else "doubtful" if excess <= DOUBTFUL else "unexplained"
