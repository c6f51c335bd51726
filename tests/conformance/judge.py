"""Judge the outputs of a runtime: equal, within the tolerance of the case, or wrong, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.case import Case, Tolerance
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

__all__ = ["Judgement", "judge", "units_in_last_place"]


@dataclass(frozen=True)
class Judgement:
    """Whether a runtime passes a case.

    Args:
        passed: whether it does.
        message: what is wrong; empty if nothing is.
    """

    passed: bool
    message: str = ""


def judge(case: Case, outputs: Sequence[Array]) -> Judgement:
    """Compare the outputs of a runtime with the expected ones."""
    if len(outputs) != len(case.expected):
        return Judgement(False, f"expected {len(case.expected)} outputs, got {len(outputs)}")
    for index, (got, expected, element, tolerance) in enumerate(
        zip(outputs, case.expected, case.output_types, case.tolerances, strict=True)
    ):
        if message := _difference(got, expected, element, tolerance):
            return Judgement(False, f"output {index}: {message}")
    return Judgement(True)


def _difference(got: Array, expected: Array, element: ElementType, tolerance: Tolerance) -> str:
    """Return what is wrong with an output, or nothing."""
    if got.shape != expected.shape:
        return f"expected shape {list(expected.shape)}, got {list(got.shape)}"
    if element is ElementType.string or not element.real:
        wrong = np.asarray(got != expected)
    else:
        ours, theirs = expected.astype(np.float64), got.astype(np.float64)
        finite = np.isfinite(ours) & np.isfinite(theirs)
        allowed = tolerance.ulp * units_in_last_place(ours, element) + tolerance.absolute
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(theirs - ours) <= allowed
        wrong = ~np.where(finite, near, (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    count = int(wrong.sum())
    if not count:
        return ""
    place = tuple(int(n) for n in np.argwhere(wrong)[0])
    at = f" at {list(place)}" if place else ""
    return f"{count} of {wrong.size} elements differ, first{at}: expected {_show(expected[place])}, got {_show(got[place])}"


def units_in_last_place(array: Array, element: ElementType) -> Array:
    """Return the distance of each number, given in f64, to the next one of an element type."""
    bits, lowest = _PRECISIONS.get(element.label, (52, -1022))
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.floor(np.log2(np.abs(array)))
    exponent = np.where(np.isfinite(exponent), np.maximum(exponent, lowest), lowest)
    return np.asarray(np.exp2(exponent - bits))


_PRECISIONS = {
    "f32": (23, -126),
    "f16": (10, -14),
    "bf16": (7, -126),
    "f8e4m3": (3, -6),
    "f8e5m2": (2, -14),
    "f64": (52, -1022),
}
"""Bits of the fraction, and the exponent of the least normal number."""


def _show(number: Any) -> str:
    return repr(number.item() if isinstance(number, np.generic) else number)
