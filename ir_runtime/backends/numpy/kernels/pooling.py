"""Pooling: one pass over channels-last rows for each element of the kernel, one axis after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.kernels.pooling import Windows
from ....ops.kernels.statistics import lowest
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
from ....ops.window import Pads
from ... import UNREAD, Kernel
from ...common.layout import channels_first, channels_last, is_f32, pad_spatial
from .._backend import backend
from ..math.finite import is_finite
from ..math.gemm import block_count, split_range
from ..parallel import parallel_for, thread_count

__all__: list[str] = []
# An element of a window takes as long as this many multiplications of a GEMM.
ELEMENT_COST = 6
# Elements of a result that one thread computes at a time: what it reads for them stays in the L2 cache.
BLOCK = 1 << 15

_ALL = slice(None), slice(None)


@backend.accelerates(MaxPool1)
def max_pool(op: MaxPool1, data: Value) -> Kernel | None:
    """Return a kernel for f32. As in the reference, no result is NaN, nor below the lowest finite number."""
    return Kernel(_max_kernel(op)) if is_f32(data) else None


@backend.accelerates(MaxPool8, MaxPool14)
def max_pool_without_indices(
    op: MaxPoolWithIndices, data: Value, unread: Collection[int] = ()
) -> Kernel | None:
    """Return the same kernel, where nothing reads the indices."""
    if not is_f32(data) or 1 not in unread:
        return None
    pool = _max_kernel(op)
    return Kernel(lambda x: (pool(x), UNREAD))


def _max_kernel(op: Pooling) -> Callable[[Array], Array]:
    lowest_finite = np.full(1, lowest(np.dtype(np.float32)), np.float32)
    plan_of, fill = _cached_plans(op), float(lowest_finite[0])

    def kernel(x: Array) -> Array:
        plan = plan_of(x.shape[2:])
        return _reduce_windows(x, np.fmax, fill, plan, complete)

    def complete(y: Array, _: slice) -> None:
        if not is_finite(y.reshape(-1)):
            np.fmax(y, lowest_finite, out=y)

    return kernel


@backend.accelerates(AvgPool1, AvgPool14, AvgPool16)
def avg_pool(op: AvgPoolBase, data: Value) -> Kernel | None:
    """Return a kernel for f32."""
    if not is_f32(data):
        return None
    plan_of = _cached_plans(op)
    factor = np.float32(1 / math.prod(op.kernel))

    @lru_cache(maxsize=16)
    def divisors_of(lengths: tuple[int, ...]) -> Array | None:
        """Return the divisor of each result; ``None`` if it is the same for all."""
        padding = any(map(any, op.pads(lengths, op.kernel)))
        return None if padding and not op.exclude_pad else _window_sizes(op.placed(lengths), lengths)

    def kernel(x: Array) -> Array:
        divisors = divisors_of(x.shape[2:])

        def complete(y: Array, rows: slice) -> None:
            if divisors is None:
                np.multiply(y, factor, out=y)
            else:
                np.divide(y, divisors[rows], out=y)

        return _reduce_windows(x, np.add, 0, plan_of(x.shape[2:]), complete)

    return Kernel(kernel)


class _Plan(NamedTuple):
    """How windows are reduced: the lengths of the result, the padding, and along each axis the places of each element of the kernel."""

    lengths: tuple[int, ...]
    pads: Pads
    places: list[list[tuple[slice, ...]]]
    size: int
    """Elements of a window."""

    @classmethod
    def of(cls, windows: Windows, lengths: tuple[int, ...]) -> _Plan:
        """Return the plan for data of these lengths."""
        places = [
            [((slice(None),) * axis + (windows.positions(axis, element),)) for element in range(length)]
            for axis, length in enumerate(windows.kernel)
        ]
        return cls(tuple(windows.count), tuple(windows.pads(lengths)), places, math.prod(windows.kernel))


def _cached_plans(op: Pooling) -> Callable[[tuple[int, ...]], _Plan]:
    return lru_cache(maxsize=64)(lambda lengths: _Plan.of(op.placed(lengths), lengths))


def _window_sizes(windows: Windows, lengths: tuple[int, ...]) -> Array:
    """Return how many elements of the data each window has, at least 1."""
    number = np.ones((), np.int64)
    for axis, length in enumerate(lengths):
        number = number[..., None] * windows.inside(axis, length)
    return np.maximum(number, 1).astype(np.float32)[..., None]


def _reduce_windows(
    x: Array, ufunc: np.ufunc, fill: float, plan: _Plan, complete: Callable[[Array, slice], object]
) -> Array:
    """Reduce each window of ``x[N, C, spatial...]``, some rows of the result at a time, then call ``complete``."""
    data = pad_spatial(channels_last(x), plan.pads, fill)
    y = np.empty((len(x), *plan.lengths, x.shape[1]), np.float32)
    last = len(plan.places) - 1

    def work(chunk: tuple[slice, slice]) -> None:
        images, rows = chunk
        partial, out = data[images], y[images, rows]
        for axis, places in enumerate(plan.places):
            shifted = [partial[:, *place] for place in places]
            if not axis:
                shifted = [array[:, rows] for array in shifted]
            partial = _reduce(shifted, ufunc, out if axis == last else None)
        complete(out, rows)

    size = y.size * plan.size * ELEMENT_COST
    threads = thread_count(size)
    if threads < 2 and y.size <= BLOCK:
        work(_ALL)
    else:
        parallel_for(work, _chunks(y, threads), size)
    return channels_first(y)


def _chunks(y: Array, threads: int) -> list[tuple[slice, slice]]:
    """Return blocks of small images, or of the rows of each image."""
    blocks = block_count(y.size, threads) if threads > 1 else y.size // BLOCK + 1
    if len(y) > blocks:
        return [(images, slice(None)) for images in split_range(len(y), blocks)]
    each = split_range(y.shape[1], -(-blocks // max(len(y), 1)))
    return [(slice(n, n + 1), rows) for n in range(len(y)) for rows in each]


def _reduce(arrays: list[Array], ufunc: np.ufunc, out: Array | None) -> Array:
    """Reduce several arrays to one, into ``out`` or a new array."""
    first, *others = arrays
    if not others:
        if out is None:
            return first
        np.copyto(out, first)
        return out
    reduced: Array = ufunc(first, others[0], out=out)
    for other in others[1:]:
        ufunc(reduced, other, out=reduced)
    return reduced
