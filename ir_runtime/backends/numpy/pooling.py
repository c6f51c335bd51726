"""Poolings: one pass over rows of channels for each element of the kernel, along one axis at a time."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from ...ir.tensor import Array, Value
from ...kernels.pooling import Windows
from ...kernels.statistics import lowest
from ...ops.pooling.windowed import (
    Average,
    AvgPool1,
    AvgPool14,
    AvgPool16,
    MaxPool1,
    MaxPool8,
    MaxPool14,
    MaxWithIndices,
)
from .. import Kernel
from ._backend import backend
from ._memory import channels_first, channels_last, is_f32, padded

__all__: list[str] = []

UNREAD = np.empty(0)


@backend.accelerates(MaxPool1)
def largest(op: MaxPool1, data: Value) -> Kernel | None:
    """f32. As in the reference, no result is NaN, nor below the lowest finite number."""
    if not is_f32(data):
        return None
    least = np.full(1, lowest(np.dtype(np.float32)), np.float32)

    def kernel(x: Array) -> Array:
        y = _pool(x, np.fmax, float(least[0]), op.placed(x.shape[2:]))
        np.fmax(y, least, out=y)
        return channels_first(y)

    return kernel


@backend.accelerates(MaxPool8, MaxPool14)
def largest_only(op: MaxWithIndices, data: Value, unread: Collection[int] = ()) -> Kernel | None:
    """As before, where nobody asks for indices."""
    if not is_f32(data) or 1 not in unread:
        return None
    least = np.full(1, lowest(np.dtype(np.float32)), np.float32)

    def kernel(x: Array) -> tuple[Array, Array]:
        y = _pool(x, np.fmax, float(least[0]), op.placed(x.shape[2:]))
        np.fmax(y, least, out=y)
        return channels_first(y), UNREAD

    return kernel


@backend.accelerates(AvgPool1, AvgPool14, AvgPool16)
def mean(op: Average, data: Value) -> Kernel | None:
    """f32."""
    if not is_f32(data):
        return None

    def kernel(x: Array) -> Array:
        lengths = x.shape[2:]
        windows = op.placed(lengths)
        y = _pool(x, np.add, 0, windows)
        if op.exclude_pad or not any(map(any, op.pads(lengths, op.kernel))):
            np.divide(y, _elements(windows, lengths), out=y)
        else:
            np.multiply(y, np.float32(1 / math.prod(op.kernel)), out=y)
        return channels_first(y)

    return kernel


def _elements(windows: Windows, lengths: tuple[int, ...]) -> Array:
    """How many elements of the data each window has, at least 1."""
    number = np.ones((), np.int64)
    for axis, length in enumerate(lengths):
        number = number[..., None] * windows.inside(axis, length)
    return np.maximum(number, 1).astype(np.float32)[..., None]


def _pool(x: Array, ufunc: np.ufunc, fill: float, windows: Windows) -> Array:
    """Reduce each window of ``x[N, C, spatial...]``; the result is ``[N, spatial..., C]``, and fresh."""
    found = padded(channels_last(x), tuple(windows.pads(x.shape[2:])), fill)
    for axis, kernel in enumerate(windows.kernel):
        before = (slice(None),) * (axis + 1)
        first, *others = (found[(*before, windows.places(axis, element))] for element in range(kernel))
        reduced = ufunc(first, others[0]) if others else first.copy()
        for other in others[1:]:
            ufunc(reduced, other, out=reduced)
        found = reduced
    return found
