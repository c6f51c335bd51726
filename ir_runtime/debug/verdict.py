"""Measure errors against f64, relate them to the error that rounding explains, and reach a verdict.

A priori bounds on rounding errors are hundreds of times too large. So the error that rounding explains is measured on the
model itself: the reference runs in the precision of the side, once unperturbed, and several times with each result
perturbed within half a unit in the last place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ..ir.blocks import blocks
from ..ir.tensor import Array
from .terms import Terms

__all__ = [
    "EXPLAINED",
    "LOCAL",
    "Error",
    "difference",
    "error_of",
    "excess",
    "scatter_of",
    "verdict_of",
    "allow_accumulation",
    "allow_floor",
    "allow_steps",
]

EXPLAINED = 4.0
"""An output with at most this excess is explained."""
DOUBTFUL = 10.0
"""An output with more than this excess is not explained."""
LOCAL = 8.0
"""A layer, computed from the side's own inputs, is explained with at most this excess."""

_FLOOR = 2.0**-25


_NEAR_LIMIT = 0.99
"""The fraction of a type's largest number above which rounding may overflow."""


@dataclass(frozen=True)
class Error:
    """The error of a tensor, in the unit of its elements.

    Args:
        rms: the RMS of the differences.
        largest: the largest difference.
        size: the RMS of the true tensor.
        reason: the reason for an infinite error; else empty.
        beyond: the number of elements that are not judged, as their true values exceed the range of the type.
    """

    rms: float
    largest: float
    size: float
    reason: str = ""
    beyond: int = 0

    @property
    def relative(self) -> float:
        """``rms`` divided by ``size``; 0 for two tensors of zeros."""
        if not self.rms:
            return 0.0
        return self.rms / self.size if self.size else np.inf


def error_of(found: Array, truth: Array, limit: float = np.inf, lost: Array | None = None) -> Error:
    """Return the error of a tensor; infinite if its shape, infinities or NaN differ from the truth.

    Args:
        found: the tensor.
        truth: the tensor in f64.
        limit: the largest finite number of its type; larger elements may become infinite or saturate.
        lost: a mask of elements not to judge, as they are infinite or NaN in any run of that type.
    """
    if found.shape != truth.shape:
        reason = f"its shape is {[*found.shape]}, not {[*truth.shape]}"
        return Error(np.inf, np.inf, 0.0, reason)
    count, beyond, largest, scale = 0, 0, 0.0, 0.0
    wrong = _Differing(truth.shape)
    for ours, wanted, judged, bad in _parts(found, truth, limit, lost):
        wrong.add(bad, ours, wanted)
        off, exact = _select_judged(ours, wanted, judged)
        beyond += ours.size - exact.size
        count += exact.size
        largest = max(largest, float(np.abs(off).max(initial=0)))
        scale = max(scale, float(np.abs(exact).max(initial=0)))
    if wrong.count:
        return Error(np.inf, np.inf, 0.0, str(wrong))
    squares = sizes = 0.0  # normalized to at most 1, so that squares neither overflow nor underflow
    for ours, wanted, judged, _ in _parts(found, truth, limit, lost):
        off, exact = _select_judged(ours, wanted, judged)
        squares += float(np.square(off / (largest or 1)).sum())
        sizes += float(np.square(exact / (scale or 1)).sum())
    rms, size = ((total / max(count, 1)) ** 0.5 for total in (squares, sizes))
    return Error(rms * largest, largest, size * scale, beyond=beyond - wrong.infinite)


def difference(found: Array, truth: Array) -> str:
    """Describe how many elements differ, and the first one.

    >>> difference(np.array([1, 2, 3]), np.array([1, 5, 6]))
    '2 of 3 elements differ, first at [1]: 2 against 5'
    """
    if found.shape != truth.shape:
        return f"its shape is {[*found.shape]}, not {[*truth.shape]}"
    wrong = _Differing(truth.shape)
    for ours, wanted in blocks(found, truth):
        differ = np.asarray(ours != wanted)
        if ours.dtype.kind == "f" and wanted.dtype.kind == "f":
            differ &= ~(np.isnan(ours) & np.isnan(wanted))
        wrong.add(differ, ours, wanted)
    return str(wrong)


class _Differing:
    """Counts differing elements, and describes the first one."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape, self._start, self._first = shape, 0, ""
        self.count = self.infinite = 0
        """The number of differing elements, and of those that are infinite or NaN in the true tensor."""

    def add(self, differ: Array | None, ours: Array, wanted: Array) -> None:
        """Add a block; ``differ`` is ``None`` if no element differs or is infinite."""
        if differ is not None and differ.any():
            if not self.count:
                place = int(np.flatnonzero(differ)[0])
                index = [int(i) for i in np.unravel_index(self._start + place, self._shape)]
                self._first = f"first at {index}: {_text(ours[place])} against {_text(wanted[place])}"
            self.count += int(np.count_nonzero(differ))
        if differ is not None and wanted.dtype.kind == "f":
            self.infinite += int(np.count_nonzero(~np.isfinite(wanted)))
        self._start += ours.size

    def __str__(self) -> str:
        return f"{self.count:,} of {prod(self._shape):,} elements differ, {self._first}"


def _text(element: object) -> str:
    if isinstance(element, float | np.floating):
        return {"nan": "NaN", "inf": "Inf", "-inf": "-Inf"}.get(found := f"{float(element):.6g}", found)
    return str(element)


def _parts(
    found: Array, truth: Array, limit: float, lost: Array | None
) -> Iterator[tuple[Array, Array, Array | None, Array | None]]:
    """Yield corresponding blocks of a tensor and the true tensor in f64, with masks of judged and of wrong elements.

    Wrong elements are infinite or NaN where the true value is not, or vice versa. Both masks are ``None`` if all elements
    are finite and within the limit.
    """
    for ours, wanted, *others in blocks(found, truth, *([] if lost is None else [lost])):
        ours, wanted = (numbers.astype(np.float64) for numbers in (ours, wanted))
        finite = np.isfinite(wanted)
        is_plain = finite.all() and np.isfinite(ours).all() and not (others and others[0].any())
        if is_plain and (limit == np.inf or np.abs(wanted).max(initial=0) <= _NEAR_LIMIT * limit):
            yield ours, wanted, None, None
            continue
        beyond = finite & (np.abs(wanted) > _NEAR_LIMIT * limit) & (np.abs(ours) >= _NEAR_LIMIT * limit)
        judged = finite & ~(beyond & (np.sign(ours) == np.sign(wanted)))
        if others:
            judged &= ~others[0]
        wrong = (judged & ~np.isfinite(ours)) | (
            ~finite & (ours != wanted) & ~(np.isnan(ours) & np.isnan(wanted))
        )
        if others:
            wrong &= ~others[0]
        yield ours, wanted, judged & ~wrong, wrong


def _select_judged(ours: Array, wanted: Array, judged: Array | None) -> tuple[Array, Array]:
    """Return the differences of the judged elements, and their true values."""
    if judged is not None:
        ours, wanted = ours[judged], wanted[judged]
    with np.errstate(over="ignore"):
        return ours - wanted, wanted


def scatter_of(errors: Iterable[Error]) -> Error:
    """Return the error that rounding explains: the largest error of several runs, but at least a quarter of an f32 ulp."""
    finite = [error for error in errors if np.isfinite(error.rms)]
    size = max((error.size for error in finite), default=0.0)
    floor = _FLOOR * size
    return Error(
        max([floor, *(error.rms for error in finite)]),
        max([floor, *(error.largest for error in finite)]),
        size,
    )


def allow_accumulation(scatter: Error, unit: float, terms: Terms) -> Error:
    """Increase the explained error for long sums, which other runtimes add sequentially, and the reference in blocks.

    The partial sums of a random walk of ``n`` steps have an RMS of sqrt(n / 2) steps, and each is rounded with an RMS error
    of ``unit / sqrt(3)``. So the relative error of the sum is ``unit * sqrt(n / 6)``. A third of that is allowed, as
    verdicts allow for a multiple of the explained error.

    Args:
        scatter: the explained error so far.
        unit: the largest relative error of a single rounding.
        terms: the number of terms of the longest sum, and how uneven errors are among elements.
    """
    least = unit * (terms.number / 6) ** 0.5 / 3 * scatter.size
    # The largest of a few thousand normally distributed errors is about four times their RMS.
    return Error(max(scatter.rms, least), max(scatter.largest, 4 * terms.uneven * least), scatter.size)


def allow_floor(scatter: Error, least: float) -> Error:
    """Increase the explained error for functions that runtimes approximate differently.

    Args:
        scatter: the explained error so far.
        least: the allowed RMS error, in the unit of the elements.
    """
    return Error(max(scatter.rms, least), max(scatter.largest, 4 * least), scatter.size)


def allow_steps(scatter: Error, step: float) -> Error:
    """Increase the explained error for rounding to multiples of a step, by uniformly up to half a step.

    Args:
        scatter: the explained error so far.
        step: the step, in the unit of the elements.
    """
    # With this value, half a step has an excess of at most 3.5, which is explained, and one more step is doubtful.
    rms, largest = step / 12**0.5 / 3.5, step / 7
    return Error(scatter.rms + rms, scatter.largest + largest, scatter.size)


def excess(error: Error, scatter: Error) -> float:
    """Return the ratio (R) of an error to the error that rounding explains."""
    pairs = ((error.rms, scatter.rms), (error.largest, scatter.largest))
    return max(0.0 if not off else off / explained if explained else np.inf for off, explained in pairs)


def verdict_of(excess: float) -> str:
    """Return the verdict on a ratio R: ``explained``, ``doubtful`` or ``unexplained``."""
    return "explained" if excess <= EXPLAINED else "doubtful" if excess <= DOUBTFUL else "unexplained"
