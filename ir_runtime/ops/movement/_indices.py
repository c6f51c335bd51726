"""Positions given as tensors: negative ones counted from the end, wrong ones refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import InferenceError
from ...ir.tensor import Array, Value
from .._axes import normalize_axis

__all__ = ["axis_input", "flat_positions", "one_axis", "outside", "positions"]


def positions(indices: Array, length: int, axis: int) -> Array:
    """Indices into an axis of ``length``, counted from the front.

    Raises:
        InferenceError: if one lies outside ``[-length, length - 1]``.
    """
    found = indices.astype(np.int64)
    wrong = (found < -length) | (found >= length)
    if wrong.any():
        raise InferenceError(
            f"indices holds {found[wrong].flat[0]}, {outside(length, axis)}",
        )
    return np.where(found < 0, found + length, found)


def outside(length: int, axis: int, lowest: int | None = None) -> str:
    """What is wrong with an index outside an axis, for messages; ``lowest`` is the first allowed."""
    if not length:
        return f"but axis {axis} of data has length 0"
    low = -length if lowest is None else lowest
    return f"which is out of range for axis {axis} of data: {low} to {length - 1} are allowed"


def flat_positions(indices: Array, lengths: Sequence[int], first: int = 0) -> Array:
    """Tuples of indices, along the last axis, as positions in a flattened tensor of ``lengths``.

    Those are axes of data, from the ``first`` on.
    """
    flat = np.zeros(indices.shape[:-1], np.int64)
    for axis, length in enumerate(lengths):
        flat = flat * length + positions(indices[..., axis], length, first + axis)
    return flat


def axis_input(axis: Value, rank: int | None) -> int | None:
    """The axis that an input names, counted from the front, where it and the rank are known."""
    one_axis(axis)
    known = axis.ints()
    return None if known is None or rank is None else normalize_axis(known[0], rank)


def one_axis(axis: Value) -> None:
    """Require a scalar or a 1-D tensor of one number."""
    if axis.shape.rank is not None and (axis.shape.rank > 1 or not axis.count.contains(1)):
        raise InferenceError(f"axis must be a scalar or one number, not of shape {axis.shape}")
