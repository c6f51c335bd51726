"""Convolution by im2col: a strided view of the windows, and one matrix product (GEMM) for each group."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..._util.arrays import Array, Float
from ...limits import check_array_size
from .matmul import accumulator_dtype, from_accumulator

__all__ = ["convolve", "pad_spatial", "windows_of"]

# The maximum number of elements of the im2col matrix, which has at least one output row.
IM2COL_LIMIT = 1 << 22


def convolve(
    x: Array, w: Array, strides: Sequence[int], dilations: Sequence[int], pads: Sequence[tuple[int, int]]
) -> Array:
    """Correlate ``x[N, G*C, ...]`` with ``w[G, O, C, ...]`` over the trailing axes, group by group; return ``[N, G*O, ...]``."""
    groups, outputs, channels, *kernel = w.shape
    work = accumulator_dtype(x.dtype)
    padded = pad_spatial(x.astype(work, copy=False), pads)
    windows = windows_of(padded, kernel, strides, dilations)
    spatial = windows.shape[2 : x.ndim]
    rows = max(IM2COL_LIMIT // max(math.prod((groups, channels, *kernel, *spatial[1:])), 1), 1)

    flat = w.astype(work, copy=False).reshape(groups, outputs, channels * math.prod(kernel))
    y = np.empty((len(x), groups, outputs, *spatial), work)
    for n in range(len(x)):
        for start in range(0, spatial[0], rows):
            part = windows[n, :, start : start + rows]
            columns = np.moveaxis(part, range(1, 1 + len(spatial)), range(-len(spatial), 0))
            size = math.prod(part.shape[1 : 1 + len(spatial)])
            sums = flat @ columns.reshape(groups, flat.shape[2], size)
            place = y[n, :, :, start : start + rows]
            place[...] = sums.reshape(place.shape)
    return from_accumulator(y.reshape(len(x), groups * outputs, *spatial), x.dtype)


def windows_of(x: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """Return the windows over the trailing axes of ``x[N, C, ...]``, as a view ``[N, C, position..., element...]``."""
    spatial = tuple(range(2, x.ndim))
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if any(n < e for n, e in zip(x.shape[2:], extent, strict=True)):
        count = [max((n - e) // s + 1, 0) for n, e, s in zip(x.shape[2:], extent, strides, strict=True)]
        return np.empty((*x.shape[:2], *count, *kernel), x.dtype)
    every = sliding_window_view(x, extent, axis=spatial)
    steps = (*strides, *dilations)
    return every[(slice(None), slice(None), *(slice(None, None, s) for s in steps))]


def pad_spatial(x: Array, pads: Sequence[tuple[int, int]], fill: float | Float = 0) -> Array:
    """Pad the trailing axes of ``x[N, C, ...]`` with ``fill``; ``pads`` has the numbers of elements before and after each."""
    if not any(map(any, pads)):
        return x
    before = [b for b, _ in pads]
    lengths = [n + b + e for n, (b, e) in zip(x.shape[2:], pads, strict=True)]
    check_array_size(math.prod(x.shape[:2]) * math.prod(lengths), x.itemsize)
    padded = np.full((*x.shape[:2], *lengths), fill, x.dtype)
    inside = tuple(slice(b, b + n) for b, n in zip(before, x.shape[2:], strict=True))
    padded[(slice(None), slice(None), *inside)] = x
    return padded
