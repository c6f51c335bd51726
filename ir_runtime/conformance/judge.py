"""Judge the outputs of a runtime: right within the tolerance of the case, or wrong, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.element import ElementType
from ..ir.tensor import Array
from .case import Case, Tolerance

__all__ = ["Judgement", "judge", "units_in_last_place"]


@dataclass(frozen=True)
class Judgement:
    """The judgement of the outputs of a runtime for a case.

    Args:
        passed: whether the runtime passes the case.
        message: the first difference; empty if it passes.
    """

    passed: bool
    message: str = ""


def judge(case: Case, outputs: Sequence[Array]) -> Judgement:
    """Compare outputs with all sets of correct outputs; the message describes the difference from ``case.expected``."""
    if case.kind == "refusal":
        return Judgement(False, "the model must be refused, got outputs")
    messages = [_compare(case, outputs, answer) for answer in case.answers]
    return Judgement(True) if "" in messages else Judgement(False, messages[0])


def _compare(case: Case, outputs: Sequence[Array], answer: Sequence[Array]) -> str:
    """Return the first difference from a set of correct outputs, or an empty string."""
    if len(outputs) != len(answer):
        return f"expected {len(answer)} outputs, got {len(outputs)}"
    for index, (actual, expected, element, tolerance) in enumerate(
        zip(outputs, answer, case.output_types, case.tolerances, strict=True)
    ):
        only_shape = case.kind == "shape" or tolerance.predicate == "shape"
        message = _difference_in_form(actual, expected)
        if not message and not only_shape:
            message = _difference(actual, expected, element, tolerance)
        if message:
            return f"output {index}: {message}"
    return ""


def _difference_in_form(actual: Array, expected: Array) -> str:
    """Return the difference in shape or element type, or an empty string."""
    if actual.shape != expected.shape:
        return f"expected shape {list(expected.shape)}, got {list(actual.shape)}"
    if actual.dtype != expected.dtype:
        return f"expected {expected.dtype}, got {actual.dtype}"
    return ""


def _difference(actual: Array, expected: Array, element: ElementType, tolerance: Tolerance) -> str:
    """Return the difference in elements, or an empty string."""
    if tolerance.predicate == "any-order":
        actual, expected = np.sort(actual, axis=None), np.sort(expected, axis=None)
    if not element.real:  # strings, too
        wrong = np.asarray(actual != expected)
    else:
        wrong = _far(actual.astype(np.float64), expected.astype(np.float64), element, tolerance)
    count = int(wrong.sum())
    if not count:
        return ""
    place = tuple(int(n) for n in np.argwhere(wrong)[0])
    at = f" at {list(place)}" if place else ""
    return (
        f"{count} of {wrong.size} elements differ, first{at}: expected {_show(expected[place])}, "
        f"got {_show(actual[place])}"
    )


def _far(actual: Array, expected: Array, element: ElementType, tolerance: Tolerance) -> Array:
    """Return a mask of the floating-point elements that are wrong."""
    finite = np.isfinite(expected) & np.isfinite(actual)
    allowed = tolerance.ulp * units_in_last_place(expected, element) + tolerance.absolute
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(actual - expected) <= allowed
    nan = np.isnan(expected)
    same = (expected == actual) | (nan & (np.isnan(actual) | (tolerance.predicate == "any-where-nan")))
    return np.asarray(~np.where(finite, near, same))


def units_in_last_place(array: Array, element: ElementType) -> Array:
    """Return the unit in the last place of each f64 element, for a narrower element type."""
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
"""The number of fraction bits, and the exponent of the smallest normal value, of each type."""


def _show(number: Any) -> str:
    return repr(number.item() if isinstance(number, np.generic) else number)
