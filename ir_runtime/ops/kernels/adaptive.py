"""Adaptive pooling: a given number of windows, which may overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._util.arrays import Array

__all__ = ["largest", "totals", "windows"]


def windows(length: int, count: int) -> tuple[Array, Array]:
    """Return the start and the end of each of ``count`` windows over an axis."""
    numbers = np.arange(count, dtype=np.int64)
    return numbers * length // max(count, 1), -(-(numbers + 1) * length // max(count, 1))


def totals(x: Array, counts: Sequence[int]) -> Array:
    """Sum ``x[N, C, ...]`` under the windows over the trailing axes, one axis after another."""
    for axis, count in enumerate(counts, 2):
        bounds = np.stack(windows(x.shape[axis], count), -1).ravel()
        # Select the sums from the start to the end of each window. A last element is appended
        # after the last bound.
        beyond = np.concatenate([x, np.zeros_like(x.take([0], axis))], axis)
        x = np.add.reduceat(beyond, bounds, axis, x.dtype)[(slice(None),) * axis + (slice(None, None, 2),)]
    return x


def largest(x: Array, counts: Sequence[int]) -> tuple[Array, Array]:
    """Return the maxima of ``x[N, C, ...]`` under the windows, and their indices in the channel.

    Ties go to the first. A NaN that is first along an axis is kept, any other is skipped.
    """
    places = np.broadcast_to(np.arange(x[0, 0].size).reshape(x.shape[2:]), x.shape)
    for axis, count in reversed([*enumerate(counts, 2)]):
        start, end = windows(x.shape[axis], count)
        # One step through all windows at a time, so that accesses are contiguous.
        values, origins = (np.ascontiguousarray(np.moveaxis(a, axis, 0)) for a in (x, places))
        best, origin = values.take(start, 0), origins.take(start, 0)
        for step in range(1, int((end - start).max(initial=0))):
            index = np.minimum(start + step, end - 1)
            candidates = values.take(index, 0)
            better = candidates > best
            np.copyto(best, candidates, where=better)
            np.copyto(origin, origins.take(index, 0), where=better)
        x, places = np.moveaxis(best, 0, axis), np.moveaxis(origin, 0, axis)
    return np.ascontiguousarray(x), np.ascontiguousarray(places)
