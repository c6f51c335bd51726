"""Combination of updates with the data in Scatter operations: replaced, or reduced."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._util.arrays import DType
from ...ir.dimension import Interval
from ...ir.tensor import Array, objects
from .._define.bounds import Number, maximum, minimum
from ..kernels.statistics import highest, lowest

_COMBINE = {"sum": np.add, "sub": np.subtract, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
_COMBINE_BOOLEAN = {
    "sum": np.logical_or,
    "sub": np.logical_xor,
    "prod": np.logical_and,
    "min": np.logical_and,
    "max": np.logical_or,
}
_COMBINE_BOUNDS: dict[str, Callable[[Number, Number], Number]] = {
    "sum": operator.add,
    "sub": operator.sub,
    "prod": operator.mul,
    "min": minimum,
    "max": maximum,
}
_BEYOND = 2**64
"""Above all integers, as ``-_BEYOND`` is below them."""


def writable_copy(data: Array, updates: Array) -> Array:
    """Return a copy in C order that can also hold the updates, which may be intervals."""
    return data.astype(np.result_type(data.dtype, updates.dtype), order="C")


def apply_updates(target: Array, where: tuple[Array, ...], updates: Array, reduction: str) -> None:
    """Update ``target`` at positions given by one array of indices per axis, one update after another."""
    if reduction == "none":
        target[where] = updates
    elif target.dtype == object:
        np.frompyfunc(_COMBINE_BOUNDS[reduction], 2, 1).at(target, where, updates)
    else:
        combine = _COMBINE_BOOLEAN if target.dtype == np.bool_ else _COMBINE
        combine[reduction].at(target, where, updates)


def neutral(dtype: DType, reduction: str) -> Any:
    """Return the neutral element of a reduction; finite for floating-point types, as in the reference."""
    if reduction in ("sum", "prod", "mean"):
        return dtype.type(reduction == "prod")
    if dtype == np.bool_:
        return reduction == "min"
    if dtype.hasobject:
        return _BEYOND if reduction == "min" else -_BEYOND
    return highest(dtype) if reduction == "min" else lowest(dtype)


def quotient(sums: Array, counts: Array) -> Array:
    """Return means in the type of the sums; integers are rounded down."""
    if sums.dtype == object:  # sums may wrap around before the division
        return objects([Interval()] * sums.size, sums.shape)
    if sums.dtype.kind in "iu":
        return np.asarray(
            np.floor_divide(sums, counts.astype(np.result_type(sums.dtype, np.uint8))), sums.dtype
        )
    return np.asarray(
        np.true_divide(sums.astype(np.promote_types(sums.dtype, np.float32)), counts), sums.dtype
    )
