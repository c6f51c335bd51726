"""Poolings: one pass over rows of channels for each element of the kernel, along one axis at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import lru_cache

import numpy as np

from ....ir.tensor import Array, Value
from ....kernels.pooling import Windows
from ....kernels.statistics import lowest
from ....ops.pooling.windowed import (
    AvgPool1,
    AvgPool14,
    AvgPool16,
    AvgPoolBase,
    MaxPool1,
    MaxPool8,
    MaxPool14,
    MaxPoolWithIndices,
    Pooling,
)
from ... import UNREAD, Kernel
from ...common.layout import channels_first, channels_last, is_f32, pad_spatial
from .._backend import backend
from ..math.gemm import block_count, split_range
from ..threading.parallel import parallel_for, thread_count

__all__: list[str] = []
# An element of a window takes as long as so many multiplications of a product.
COST = 6


@backend.accelerates(MaxPool1)
def largest(op: MaxPool1, data: Value) -> Kernel | None:
    """f32. As in the reference, no result is NaN, nor below the lowest finite number."""
    return _largest(op) if is_f32(data) else None


@backend.accelerates(MaxPool8, MaxPool14)
def largest_only(op: MaxPoolWithIndices, data: Value, unread: Collection[int] = ()) -> Kernel | None:
    """As before, where nobody asks for indices."""
    if not is_f32(data) or 1 not in unread:
        return None
    pool = _largest(op)
    return lambda x: (pool(x), UNREAD)


def _largest(op: Pooling) -> Callable[[Array], Array]:
    least = np.full(1, lowest(np.dtype(np.float32)), np.float32)
    placed = _placing(op)

    def kernel(x: Array) -> Array:
        return _pool(x, np.fmax, float(least[0]), placed(x.shape[2:]), lambda y, _: np.fmax(y, least, out=y))

    return kernel


@backend.accelerates(AvgPool1, AvgPool14, AvgPool16)
def mean(op: AvgPoolBase, data: Value) -> Kernel | None:
    """f32."""
    if not is_f32(data):
        return None
    placed = _placing(op)
    factor = np.float32(1 / math.prod(op.kernel))

    @lru_cache(maxsize=16)
    def elements(lengths: tuple[int, ...]) -> Array | None:
        """By what to divide each result, unless it is the same for all."""
        padding = any(map(any, op.pads(lengths, op.kernel)))
        return None if padding and not op.exclude_pad else _elements(placed(lengths), lengths)

    def kernel(x: Array) -> Array:
        divisors = elements(x.shape[2:])

        def done(y: Array, lines: slice) -> None:
            if divisors is None:
                np.multiply(y, factor, out=y)
            else:
                np.divide(y, divisors[lines], out=y)

        return _pool(x, np.add, 0, placed(x.shape[2:]), done)

    return kernel


def _placing(op: Pooling) -> Callable[[tuple[int, ...]], Windows]:
    return lru_cache(maxsize=64)(op.placed)


def _elements(windows: Windows, lengths: tuple[int, ...]) -> Array:
    """How many elements of the data each window has, at least 1."""
    number = np.ones((), np.int64)
    for axis, length in enumerate(lengths):
        number = number[..., None] * windows.inside(axis, length)
    return np.maximum(number, 1).astype(np.float32)[..., None]


def _pool(
    x: Array, ufunc: np.ufunc, fill: float, windows: Windows, done: Callable[[Array, slice], object]
) -> Array:
    """Reduce each window of ``x[N, C, spatial...]``, some lines at a time, and tell ``done`` which of the result."""
    data = pad_spatial(channels_last(x), tuple(windows.pads(x.shape[2:])), fill)
    y = np.empty((len(x), *windows.count, x.shape[1]), np.float32)

    def work(piece: tuple[int, slice]) -> None:
        image, lines = piece
        found, out = data[image], y[image, lines]
        for axis, kernel in enumerate(windows.kernel):
            before = (slice(None),) * axis
            seen = [found[(*before, windows.places(axis, element))] for element in range(kernel)]
            if not axis:
                seen = [elements[lines] for elements in seen]
            found = _reduce(seen, ufunc, out if axis == len(windows.kernel) - 1 else None)
        done(out, lines)

    size = y.size * math.prod(windows.kernel) * COST
    blocks = block_count(y[:1].size, thread_count(size))
    parallel_for(
        work, [(n, lines) for n in range(len(x)) for lines in split_range(windows.count[0], blocks)], size
    )
    return channels_first(y)


def _reduce(elements: list[Array], ufunc: np.ufunc, out: Array | None) -> Array:
    """One array of several, into ``out`` or a new one."""
    first, *others = elements
    if not others:
        if out is None:
            return first
        np.copyto(out, first)
        return out
    reduced: Array = ufunc(first, others[0], out=out)
    for other in others[1:]:
        ufunc(reduced, other, out=reduced)
    return reduced
