"""Sums and means along axes, added up in a type wide enough that order hardly matters."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

__all__ = ["accumulator", "count", "highest", "lowest", "mean", "total", "working"]

Array = NDArray[Any]
Axes = tuple[int, ...]


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type to add up numbers of ``dtype`` in: f64, or integers of 64 bits."""
    if dtype.kind in "iu":
        return np.dtype(f"{dtype.kind}8")
    return dtype if dtype.kind in "Ob" else np.dtype(np.float64)


def working(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type to compute in: f32 for the narrower floating-point types, else ``dtype`` itself."""
    return dtype if dtype.kind in "Oiub" or dtype.itemsize >= 4 else np.dtype(np.float32)


def lowest(dtype: np.dtype[Any]) -> Any:
    """The lowest finite number of a type."""
    return _limits(dtype).min


def highest(dtype: np.dtype[Any]) -> Any:
    """The highest finite number of a type."""
    return _limits(dtype).max


def _limits(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def count(shape: tuple[int, ...], axes: Axes) -> int:
    """How many elements become one."""
    return math.prod(shape[axis] for axis in axes)


def total(data: Array, axes: Axes, keepdims: bool = False) -> Array:
    """The sum along ``axes``, in the accumulator's type."""
    return np.asarray(np.sum(data, axis=axes, dtype=accumulator(data.dtype), keepdims=keepdims))


def mean(data: Array, axes: Axes, keepdims: bool = False) -> Array:
    """The mean along ``axes``, in the accumulator's type; of nothing, 0.

    Integers are divided as in C: what is left over is dropped, also below zero.
    """
    summed, number = total(data, axes, keepdims), max(count(data.shape, axes), 1)
    if summed.dtype.kind not in "iu":
        return np.asarray(summed / number)
    rest = np.fmod(summed, summed.dtype.type(number))
    return np.asarray((summed - rest) // summed.dtype.type(number))
