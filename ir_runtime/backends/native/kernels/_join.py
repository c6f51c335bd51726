"""Arrays joined along an axis where a run is recorded, by copies of each: NumPy's cannot be replayed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from ....ir.tensor import Array
from ...common.kept_memory import empty
from ._copy import MAX_SIZE, copy

__all__ = ["join"]


def join(parts: Sequence[Array], axis: int) -> Array:
    """Return arrays of one dtype and at least one axis joined along an axis, by tasks where that is possible.

    The axes of the result are in memory as those of the first array are that is not broadcast.
    """
    first = next((x for x in parts if all(x.strides)), parts[0])
    order = sorted(range(first.ndim), key=lambda at: -abs(first.strides[at]))
    shape = list(first.shape)
    shape[axis] = sum(x.shape[axis] for x in parts)
    if any(_differ(x.shape, first.shape, axis) for x in parts):
        return np.concatenate(parts, axis)
    found = empty([shape[at] for at in order], first.dtype).transpose(np.argsort(order))
    ends = accumulate((x.shape[axis] for x in parts), initial=0)
    places = [(slice(None),) * axis + (slice(*both),) for both in pairwise(ends)]
    most = MAX_SIZE if found.size <= MAX_SIZE else 0
    for x, place in zip(parts, places, strict=True):
        if not copy(x, found[place], most):
            return np.concatenate(parts, axis)
    return found


def _differ(shape: tuple[int, ...], other: tuple[int, ...], axis: int) -> bool:
    return shape[:axis] != other[:axis] or shape[axis + 1 :] != other[axis + 1 :]
