"""Indices into tensors: negative ones count from the end, those out of range are refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.tensor import Array, Value
from .._lengths import normalize_axis

__all__ = ["axis_input", "check_inside", "check_tuples", "flat_positions", "one_axis", "outside", "positions"]


def outside(indices: Array | None, length: Dimension, axis: int, negative: bool = True) -> str:
    """Return a message about known indices out of range, or an empty string."""
    if indices is None or length.max is None:
        return ""
    low = -length.max if negative else 0
    wrong = indices[(indices < low) | (indices >= length.max)]
    if not wrong.size:
        return ""
    if not length.max:
        return f"indices holds {wrong.flat[0]}, but axis {axis} of data has length 0"
    return (
        f"indices holds {wrong.flat[0]}, which is out of range for axis {axis} of data: {low} to {length.max - 1} are "
        f"allowed"
    )


def check_inside(indices: Array | None, length: Dimension, axis: int, negative: bool = True) -> None:
    """Refuse indices outside an axis of data for all of its possible lengths.

    Raises:
        InferenceError: if one is known to be outside ``[-length, length - 1]``, or ``[0, length - 1]``.
    """
    if problem := outside(indices, length, axis, negative):
        raise InferenceError(
            problem,
            clause=f"each of the indices is inside its axis of data{', counted from the end if negative' if negative else ''}",
        )


def check_tuples(indices: Array | None, lengths: Sequence[Dimension], first: int = 0) -> None:
    """Refuse tuples of indices, along the last axis, outside axes of data from ``first`` on."""
    for place, length in enumerate(lengths if indices is not None else ()):
        assert indices is not None
        check_inside(indices[..., place], length, first + place)


def positions(indices: Array, length: int, axis: int, negative: bool = True) -> Array:
    """Return indices into an axis of ``length``, counted from the front.

    Raises:
        InferenceError: if one is out of range.
    """
    check_inside(indices, Dimension(length), axis, negative)
    result = indices.astype(np.int64)
    return np.where(result < 0, result + length, result)


def flat_positions(indices: Array, lengths: Sequence[int], first: int = 0) -> Array:
    """Convert tuples of indices, along the last axis, to positions in a flattened tensor of ``lengths``.

    The lengths are those of axes of data from ``first`` on.
    """
    flat = np.zeros(indices.shape[:-1], np.int64)
    for axis, length in enumerate(lengths):
        flat = flat * length + positions(indices[..., axis], length, first + axis)
    return flat


def axis_input(axis: Value, rank: int | None) -> int | None:
    """Return the axis given by an input, counted from the front, if it and the rank are known."""
    one_axis(axis)
    values = axis.ints()
    return None if values is None or rank is None else normalize_axis(values[0], rank)


def one_axis(axis: Value) -> None:
    """Require a scalar or a 1-D tensor of one number."""
    if axis.shape.rank is not None and (axis.shape.rank > 1 or not axis.count.contains(1)):
        raise InferenceError(
            f"axis must be a scalar or one number, not of shape {axis.shape}",
            clause="axis is a scalar or one number",
        )
