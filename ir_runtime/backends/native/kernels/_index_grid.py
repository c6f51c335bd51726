"""Constant indices that form a grid, as of slices and sliding windows: they select a strided part of the data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ....ir.tensor import Array

__all__ = ["IndexGrid", "index_grid"]


@dataclass(frozen=True)
class IndexGrid:
    """Indices that start at ``first`` and advance by a constant step along each axis of a grid.

    Args:
        first: the first index.
        lengths: the lengths of the grid's axes, outermost first.
        steps: the index step of each axis.
    """

    first: int
    lengths: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def bounds(self) -> tuple[int, int]:
        """Return the least and the greatest index."""
        spans = [step * (length - 1) for length, step in zip(self.lengths, self.steps, strict=True)]
        return self.first + sum(min(span, 0) for span in spans), self.first + sum(
            max(span, 0) for span in spans
        )

    def view(self, x: Array, axis: int) -> Array:
        """Return a view of the selected elements along an axis, which the grid's axes replace; indices must be in range."""
        stride = x.strides[axis]
        start = x[(slice(None),) * axis + (slice(self.first, None),)]
        shape = (*x.shape[:axis], *self.lengths, *x.shape[axis + 1 :])
        strides = (*x.strides[:axis], *[step * stride for step in self.steps], *x.strides[axis + 1 :])
        return np.lib.stride_tricks.as_strided(start, shape, strides)


def index_grid(indices: Array, most_axes: int) -> IndexGrid | None:
    """Return the grid formed by indices, in order; ``None`` if they form none or it has too many axes."""
    places, lengths, steps = indices.astype(np.int64).ravel(), list[int](), list[int]()
    if not places.size:
        return None
    while places.size > 1:
        apart = np.diff(places)
        others = np.flatnonzero(apart != apart[0])
        length = int(others[0]) + 1 if others.size else places.size
        if places.size % length or len(lengths) == most_axes:
            return None
        rows = places.reshape(-1, length)
        if (rows - rows[:, :1] != rows[0] - rows[0, 0]).any():
            return None
        lengths.insert(0, length)
        steps.insert(0, int(apart[0]))
        places = rows[:, 0]
    assert math.prod(lengths) == indices.size
    return IndexGrid(int(places[0]), tuple(lengths), tuple(steps))
