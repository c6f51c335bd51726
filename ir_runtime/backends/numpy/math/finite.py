"""Whether all numbers of an array are finite, in one pass without a result."""

from __future__ import annotations

import math

import numpy as np

from ....ir.tensor import Array

__all__ = ["is_finite"]


def is_finite(numbers: Array) -> bool:
    """Return whether all f32 of a 1-D array are finite; large ones, whose squares are not, may be taken for infinities.

    >>> is_finite(np.float32([1, -2])), is_finite(np.float32([1, np.inf])), is_finite(np.float32([np.nan]))
    (True, False, False)
    """
    return math.isfinite(np.dot(numbers, numbers))
