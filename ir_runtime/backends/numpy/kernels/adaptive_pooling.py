"""Adaptive average pooling: sums along each axis are products with ones where a window is, and zeros elsewhere."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.kernels.adaptive import windows
from ....ops.pooling.adaptive import AdaptiveAvgPool
from ... import Kernel
from ...common.layout import channels_first, channels_last, is_f32
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..math.finite import is_finite

__all__: list[str] = []

# Windows along an axis up to which a product takes less time than sums of slices: it multiplies each number by as many.
MOST = 64


@backend.accelerates(AdaptiveAvgPool)
def adaptive_mean(op: AdaptiveAvgPool, data: Value, output_size: Value) -> Kernel | None:
    """Return a kernel for f32, and few known windows."""
    counts, rank = output_size.ints(), data.shape.rank
    if (
        not is_f32(data)
        or not counts
        or rank != len(counts) + 2
        or not 0 < min(counts) <= max(counts) <= MOST
    ):
        return None

    def kernel(x: Array, output_size: Array) -> Array:
        last = channels_last(x)
        by_rows = last.flags.c_contiguous
        data = last if by_rows else np.ascontiguousarray(x)
        if not x.size or not is_finite(data.reshape(-1)):
            return op.evaluate(x, output_size)
        # The first product is that of the most numbers, and one for all images and channels.
        axes = [*enumerate(counts, 1)] if by_rows else [*enumerate(counts, 2)][::-1]
        sizes = np.ones((), np.float32)
        for axis, count in axes:
            ones = _ones(data.shape[axis], count)
            data = _sums(data, axis, ones)
            sizes = sizes * ones.sum(1).reshape(-1, *(1,) * (data.ndim - 1 - axis))
        np.divide(data, sizes, out=data)
        return channels_first(data) if by_rows else data

    return accepting(kernel, any_lengths)


@lru_cache(maxsize=64)
def _ones(length: int, count: int) -> Array:
    """Return 1 for the elements of each window over an axis: ``[window, element]``."""
    start, end = windows(length, count)
    places = np.arange(length)
    return np.asarray((places >= start[:, None]) & (places < end[:, None]), np.float32)


def _sums(x: Array, axis: int, ones: Array) -> Array:
    """Return the sums of windows along an axis of a contiguous array."""
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    if math.prod(after) == 1:
        found = x.reshape(-1, x.shape[axis]) @ ones.T
    else:
        found = np.matmul(ones, x.reshape(math.prod(before), x.shape[axis], -1))
    return np.asarray(found.reshape(*before, len(ones), *after))
