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
    """Sum ``x[N, C, ...]`` under the windows over the trailing axes, one axis after the other."""
    for axis, count in enumerate(counts, 2):
        bounds = np.stack(windows(x.shape[axis], count), -1).ravel()
        # Of the sums between all bounds, those from the start to the end of a window. There must be
        # something behind the last one.
        beyond = np.concatenate([x, np.zeros_like(x.take([0], axis))], axis)
        x = np.add.reduceat(beyond, bounds, axis, x.dtype)[(slice(None),) * axis + (slice(None, None, 2),)]
    return x


def largest(x: Array, counts: Sequence[int]) -> tuple[Array, Array]:
    """Return the maxima of ``x[N, C, ...]`` under the windows, and their indices in the channel.

    The first one wins. NaN that comes first along an axis stays, any other is passed over.
    """
    places = np.broadcast_to(np.arange(x[0, 0].size).reshape(x.shape[2:]), x.shape)
    for axis, count in reversed([*enumerate(counts, 2)]):
        start, end = windows(x.shape[axis], count)
        # Step by step through the windows: what is taken together must be contiguous.
        values, origins = (np.ascontiguousarray(np.moveaxis(a, axis, 0)) for a in (x, places))
        best, found = values.take(start, 0), origins.take(start, 0)
        for step in range(1, int((end - start).max(initial=0))):
            index = np.minimum(start + step, end - 1)
            candidates = values.take(index, 0)
            better = candidates > best
            np.copyto(best, candidates, where=better)
            np.copyto(found, origins.take(index, 0), where=better)
        x, places = np.moveaxis(best, 0, axis), np.moveaxis(found, 0, axis)
    return np.ascontiguousarray(x), np.ascontiguousarray(places)
