"""Errors against f64, and how many times they exceed what rounding explains.

Bounds on rounding errors exceed them hundreds of times; so the error that rounding explains is measured instead, on
the model itself: the reference runs in the precision of the side, once plain and some times with each result moved by
a random part of half a unit in the last place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ..ir.blocks import blocks
from ..ir.tensor import Array
from .terms import Terms

__all__ = ["DOUBTFUL", "EXPLAINED", "LOCAL", "Error", "error_of", "excess", "scatter_of", "with_accumulation"]

EXPLAINED = 4.0
"""An output with at most this excess is explained."""
DOUBTFUL = 10.0
"""An output with more than this excess is not explained."""
LOCAL = 8.0
"""A layer, computed from the side's own inputs, is explained with at most this excess."""

_FLOOR = 2.0**-25


@dataclass(frozen=True)
class Error:
    """The error of a tensor, in the units of the tensor.

    Args:
        rms: root of the mean of the squared differences.
        largest: the largest difference.
        size: root of the mean of the squared elements of the truth.
    """

    rms: float
    largest: float
    size: float

    @property
    def relative(self) -> float:
        """``rms`` divided by ``size``; 0 for two tensors of zeros."""
        if not self.rms:
            return 0.0
        return self.rms / self.size if self.size else np.inf


def error_of(found: Array, truth: Array) -> Error:
    """Return the error of a tensor; infinite if its shape or its infinities and NaN are not those of the truth."""
    if found.shape != truth.shape:
        return Error(np.inf, np.inf, 0.0)
    count, largest, scale = 0, 0.0, 0.0
    for off, exact in _differences(found, truth):
        if not np.isfinite(off).all():
            return Error(np.inf, np.inf, 0.0)
        count += exact.size
        largest = max(largest, float(np.abs(off).max(initial=0)))
        scale = max(scale, float(np.abs(exact).max(initial=0)))
    squares = sizes = 0.0  # of numbers up to 1, which neither overflow nor vanish
    for off, exact in _differences(found, truth):
        squares += float(np.square(off / (largest or 1)).sum())
        sizes += float(np.square(exact / (scale or 1)).sum())
    rms, size = ((total / max(count, 1)) ** 0.5 for total in (squares, sizes))
    return Error(rms * largest, largest, size * scale)


def _differences(found: Array, truth: Array) -> Iterator[tuple[Array, Array]]:
    """Yield differences and the truth where it is finite, both in f64, of a part of the elements at a time.

    So no copy of a tensor in f64 is made, which may not fit into memory. Infinities and NaN that are not those of the
    truth are an infinite difference.
    """
    for parts in blocks(found, truth):
        ours, wanted = (numbers.astype(np.float64) for numbers in parts)
        finite = np.isfinite(wanted)
        if not finite.all():
            if not np.array_equal(ours[~finite], wanted[~finite], equal_nan=True):
                yield np.array([np.inf]), wanted[finite]
            ours, wanted = ours[finite], wanted[finite]
        with np.errstate(over="ignore"):
            yield ours - wanted, wanted


def scatter_of(errors: Iterable[Error]) -> Error:
    """Return the error that rounding explains: the largest of some runs, at least a quarter of a unit of f32."""
    found = [error for error in errors if np.isfinite(error.rms)]
    size = max((error.size for error in found), default=0.0)
    floor = _FLOOR * size
    return Error(
        max([floor, *(error.rms for error in found)]), max([floor, *(error.largest for error in found)]), size
    )


def with_accumulation(scatter: Error, unit: float, terms: Terms) -> Error:
    """Allow for sums of many numbers, which other runtimes add one after the other, and the reference in blocks.

    The partial sums of a random walk of ``n`` steps have an rms of sqrt(n / 2) times a step; each is rounded by an rms
    of ``unit / sqrt(3)``. So the error of the sum is ``unit * sqrt(n / 6)`` of its size; a third of that is allowed, as
    the excess that is explained is several times larger.

    Args:
        scatter: the error of the reference.
        unit: the largest relative error of rounding once.
        terms: the largest sum.
    """
    least = unit * (terms.number / 6) ** 0.5 / 3 * scatter.size
    # The largest of some thousand normal errors is four times their rms.
    return Error(max(scatter.rms, least), max(scatter.largest, 4 * terms.uneven * least), scatter.size)


def excess(error: Error, scatter: Error) -> float:
    """Return how many times an error exceeds what rounding explains."""
    pairs = ((error.rms, scatter.rms), (error.largest, scatter.largest))
    return max(0.0 if not off else off / explained if explained else np.inf for off, explained in pairs)
