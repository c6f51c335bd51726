"""The outcome of a file on each side, and the differences between results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ir_runtime.ir.tensor import Array

__all__ = ["TOLERANCE", "Outcome", "Row", "difference"]

TOLERANCE = {"f64": 1e-6, "f32": 1e-4, "f16": 2e-3, "bf16": 2e-2}
"""Differences that rounding explains, relative to a number and the rms of its output, by the output's type."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a file on one side: ``ran``, ``refused``, ``crashed`` or ``late``, and its message."""

    kind: str
    text: str = ""

    @property
    def ran(self) -> bool:
        """Whether there are results."""
        return self.kind == "ran"


@dataclass(slots=True)
class Row:
    """A file: its version, OpenVINO's outcome, ours by backend, exit code of validate, differences by backend."""

    name: str
    version: str
    openvino: Outcome
    ours: dict[str, Outcome] = field(default_factory=dict)
    validate: Outcome = field(default_factory=lambda: Outcome("refused"))
    differences: dict[str, float] = field(default_factory=dict)
    """How far results are from the CPU plugin's, in multiples of what rounding explains; infinite for other shapes."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why larger differences of a backend are none of ours: OpenVINO says the same elsewhere, or rounding explains them."""

    @property
    def runs(self) -> bool:
        """Whether every backend runs it."""
        return bool(self.ours) and all(outcome.ran for outcome in self.ours.values())

    @property
    def valid(self) -> bool:
        """Whether validate ends with 0."""
        return self.validate.ran

    @property
    def broken(self) -> bool:
        """Whether one of our sides ended with neither results nor a message."""
        return any(o.kind in ("crashed", "late") for o in (*self.ours.values(), self.validate))

    @property
    def good(self) -> bool:
        """Whether we are as good as OpenVINO: the file runs, validates and agrees if it runs there."""
        if self.broken:
            return False
        return not self.openvino.ran or (self.runs and self.valid and not self.apart)

    @property
    def apart(self) -> list[str]:
        """The backends with unexplained differences from OpenVINO."""
        return [backend for backend in self.differing if backend not in self.reasons]

    @property
    def differing(self) -> list[str]:
        """The backends that differ from the CPU plugin by more than rounding of the results."""
        return [backend for backend, difference in self.differences.items() if difference > 1]


def difference(ours: Sequence[Array], theirs: Sequence[Array]) -> float:
    """Return the largest difference between results, in multiples of what rounding explains.

    Args:
        ours: the outputs of a backend.
        theirs: those of OpenVINO.
    """
    if len(ours) != len(theirs):
        return float("inf")
    return max((_difference(a, b) for a, b in zip(ours, theirs, strict=True)), default=0.0)


def _difference(ours: Array, theirs: Array) -> float:
    if theirs.dtype == object:  # strings, which each package has in an array of another type
        return 0.0 if ours.tolist() == theirs.tolist() else float("inf")
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return float("inf")
    tolerance = TOLERANCE.get(_label(theirs))
    if tolerance is None or not theirs.size:
        return 0.0 if np.array_equal(ours, theirs) else float("inf")
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(b)
    if not (
        np.array_equal(finite, np.isfinite(a)) and np.array_equal(a[~finite], b[~finite], equal_nan=True)
    ):
        return float("inf")
    a, b = a[finite], b[finite]
    rms = np.sqrt(np.mean(b * b)) if b.size else 0.0
    allowed = tolerance * (np.abs(b) + rms)
    wrong = np.abs(a - b)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(wrong == 0, 0.0, wrong / allowed).max(initial=0.0))


def _label(array: Array) -> str:
    names = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}
    return names.get(array.dtype.name, array.dtype.name)
