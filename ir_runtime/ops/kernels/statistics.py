"""Sums and means along axes, with wide accumulators."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from ..._util.arrays import Array, DType, Float

__all__ = ["accumulator", "count", "highest", "lowest", "mean", "sum_along", "compute_dtype"]

Axes = tuple[int, ...]


def accumulator(dtype: DType) -> DType:
    """Return the accumulator dtype of sums: f64 for floats, 64-bit integers for integers; booleans and objects keep their dtype."""
    if dtype.kind in "iu":
        return np.dtype(f"{dtype.kind}8")
    return dtype if dtype.kind in "Ob" else np.dtype(np.float64)


def compute_dtype(dtype: DType) -> DType:
    """Return the dtype to compute in: f32 for narrower floating-point types, or else ``dtype`` itself."""
    return dtype if dtype.kind in "Oiub" or dtype.itemsize >= 4 else np.dtype(np.float32)


def lowest(dtype: DType) -> float | Float:
    """Return the lowest finite number of a dtype."""
    return _limits(dtype).min


def highest(dtype: DType) -> float | Float:
    """Return the highest finite number of a dtype."""
    return _limits(dtype).max


def _limits(dtype: DType) -> np.iinfo[np.integer] | ml_dtypes.finfo:
    return np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def count(shape: tuple[int, ...], axes: Axes) -> int:
    """Return the number of elements that a reduction over ``axes`` reduces to one."""
    return math.prod(shape[axis] for axis in axes)


def sum_along(data: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Sum along ``axes`` in the dtype of `accumulator`."""
    return np.asarray(np.sum(data, axis=axes, dtype=accumulator(data.dtype), keepdims=keepdims))


def mean(data: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Average along ``axes`` in the dtype of `accumulator`; the mean of no elements is 0.

    Means of integers are truncated toward zero, as in C.
    """
    summed, number = sum_along(data, axes, keepdims), max(count(data.shape, axes), 1)
    if summed.dtype.kind not in "iu":
        return np.asarray(summed / number)
    rest = np.fmod(summed, summed.dtype.type(number))
    return np.asarray((summed - rest) // summed.dtype.type(number))
