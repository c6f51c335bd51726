"""Arrays in C order."""

from __future__ import annotations

import operator
from functools import lru_cache
from itertools import accumulate

from ....ir.tensor import Array
from ...common.kept_memory import empty
from ..threading.recording import RECORD
from ._copy import WORD, copy, merge_axes

__all__ = ["contiguous", "contiguous_rows", "is_view", "reshaped"]

# Arrays with fewer elements are left to NumPy, unless a run is recorded.
MIN_SIZE = 1 << 11


def contiguous(x: Array) -> Array:
    """Return an array in C order, without a copy if it is; where a run is recorded, a copy of few elements is a task, too."""
    if x.flags.c_contiguous:
        return x
    y = empty(x.shape, x.dtype)
    if x.itemsize == WORD and x.size >= MIN_SIZE and copy(x, y, 0):
        return y
    if RECORD.get() is None or not copy(x, y):
        y[...] = x
    return y


def reshaped(x: Array, shape: tuple[int, ...]) -> Array:
    """Return an array in another shape, as a view if memory allows."""
    return (x if is_view(x, shape) else contiguous(x)).reshape(shape)


def is_view(x: Array, shape: tuple[int, ...]) -> bool:
    """Return whether an array has another shape without a copy."""
    return not x.size or _is_view(x.shape, x.strides, shape)


@lru_cache(maxsize=256)
def _is_view(shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether no axis of a target shape is made of axes that are not one in memory."""
    widths = [WORD * n for n in accumulate(reversed(shape), operator.mul, initial=1)][-2::-1]
    lengths = [length for length, *_ in merge_axes(shape, strides, tuple(widths))]
    return set(accumulate(lengths, operator.mul)).issubset(accumulate(reversed(target), operator.mul))


def contiguous_rows(x: Array) -> Array:
    """Return an array whose last axis is contiguous, without a copy if it is."""
    return x if x.strides[-1] == x.itemsize or x.shape[-1] == 1 else contiguous(x)
