"""The bins of ROI pooling: their elements, and sampling points."""

from __future__ import annotations

import numpy as np

from ..._util.arrays import Float
from ...ir.tensor import Array

__all__ = ["bins", "covers", "points", "round_half_away"]


def round_half_away(numbers: Array) -> Array:
    """Round to the nearest integers, halves away from 0."""
    return np.asarray(np.trunc(numbers + np.copysign(numbers.dtype.type(0.5), numbers)))


def bins(first: Float, last: Float, count: int, length: int) -> list[tuple[int, int]]:
    """Return the start and end of each of equal bins, in elements from ``first`` to ``last``."""
    size = np.maximum(last - first + 1, 1) / count
    steps = np.arange(count + 1, dtype=first.dtype) * size
    begins = np.clip(np.floor(steps[:-1]) + first, 0, length).astype(int)
    ends = np.clip(np.ceil(steps[1:]) + first, 0, length).astype(int)
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def covers(first: Float, last: Float, count: int, length: int) -> list[tuple[int, int]]:
    """Return the elements touched by each of equal bins between two positions."""
    size = (last - first) / count
    steps = first + np.arange(count + 1, dtype=first.dtype) * size
    begins = np.clip(np.floor(steps[:-1]), 0, max(length - 1, 0)).astype(int)
    ends = np.clip(np.ceil(first + np.arange(1, count + 1, dtype=first.dtype) * size), 0, length).astype(int)
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def points(first: Float, last: Float, count: int, length: int, *, exact: bool = True) -> Array:
    """Return sampling positions from ``first`` to ``last`` as fractions of a length; a single one is centred."""
    of = first.dtype.type
    far = of(length - 1)
    if count == 1:
        return np.array([of(0.5) * (first + last) * far])
    places = np.arange(count, dtype=first.dtype) * ((last - first) * far / of(count - 1)) + first * far
    if exact:
        places[-1] = last * far
    return np.asarray(places)
