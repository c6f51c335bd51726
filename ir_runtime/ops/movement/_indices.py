"""Positions given as tensors: negative ones counted from the end, wrong ones refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import InferenceError
from ...ir.tensor import Array, Value
from .._axes import check_list, normalize_axis

__all__ = ["axis_input", "flat_positions", "positions"]


def positions(indices: Array, length: int) -> Array:
    """Indices into an axis of ``length``, counted from the front.

    Raises:
        InferenceError: if one lies outside ``[-length, length - 1]``.
    """
    found = indices.astype(np.int64)
    wrong = (found < -length) | (found >= length)
    if wrong.any():
        raise InferenceError(f"index {found[wrong].flat[0]} is out of range for an axis of length {length}")
    return np.where(found < 0, found + length, found)


def flat_positions(indices: Array, lengths: Sequence[int]) -> Array:
    """Tuples of indices, along the last axis, as positions in a flattened tensor of ``lengths``."""
    flat = np.zeros(indices.shape[:-1], np.int64)
    for axis, length in enumerate(lengths):
        flat = flat * length + positions(indices[..., axis], length)
    return flat


def axis_input(axis: Value, rank: int | None) -> int | None:
    """The axis that an input names, counted from the front, where it and the rank are known."""
    check_list(axis, "axis")
    if not axis.count.contains(1):
        raise InferenceError(f"axis must be one number, not {axis.count}")
    known = axis.ints()
    return None if known is None or rank is None else normalize_axis(known[0], rank)
