"""Pooling over the trailing axes: sliding windows are reduced one kernel element at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from ..._util import deadline
from ..._util.arrays import Array, DType, Float
from ...limits import check_array_size
from .convolution import pad_spatial
from .statistics import lowest

Pads = Sequence[tuple[int, int]]

__all__ = ["Windows", "pool", "pool_indices", "sum_dtype"]


class Windows:
    """The geometry of sliding windows, with one number for each trailing axis.

    Args:
        count: the number of windows.
        kernel: the number of elements of a window.
        strides: the distance between the starts of consecutive windows.
        dilations: the distance between consecutive elements of a window.
        begins: the padding before the first element.
    """

    def __init__(
        self,
        count: Sequence[int],
        kernel: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        begins: Sequence[int],
    ) -> None:
        self.count, self.kernel, self.begins = count, kernel, begins
        self.strides, self.dilations = strides, dilations

    def pads(self, lengths: Sequence[int]) -> Pads:
        """Return the padding before and after each axis, up to the end of the last window."""
        ends = [
            max((c - 1) * s + (k - 1) * d + 1 - b - n, 0)
            for n, c, k, s, d, b in zip(
                lengths, self.count, self.kernel, self.strides, self.dilations, self.begins, strict=True
            )
        ]
        return list(zip(self.begins, ends, strict=True))

    def positions(self, axis: int, element: int) -> slice:
        """Return the positions of a kernel element in all windows, as a slice of the padded axis."""
        start = element * self.dilations[axis]
        reach = max((self.count[axis] - 1) * self.strides[axis] + 1, 0)
        return slice(start, start + reach, self.strides[axis])

    def inside(self, axis: int, length: int) -> Array:
        """Return the number of elements of each window that are not in the padding, along an axis."""
        check_array_size(self.count[axis] * self.kernel[axis], 8)
        first = np.arange(self.count[axis]) * self.strides[axis] - self.begins[axis]
        where = first[:, None] + np.arange(self.kernel[axis]) * self.dilations[axis]
        return np.asarray(np.sum((where >= 0) & (where < length), axis=1))

    def taps(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yield, for each kernel element, its offset in a window and its positions in all windows."""
        for element in itertools.product(*map(range, self.kernel)):
            deadline.check()
            offset = tuple(e * d for e, d in zip(element, self.dilations, strict=True))
            yield offset, tuple(self.positions(axis, e) for axis, e in enumerate(element))


def pool(x: Array, ufunc: np.ufunc, start: float | Float, windows: Windows) -> Array:
    """Reduce each window of ``x[N, C, ...]`` with an associative ufunc, one axis after the other.

    The padding is filled with ``start``, the identity of the ufunc.
    """
    reduced_data = pad_spatial(x, windows.pads(x.shape[2:]), start)
    for axis, kernel in enumerate(windows.kernel):
        before = (slice(None),) * (axis + 2)
        shape = (*reduced_data.shape[: axis + 2], windows.count[axis], *reduced_data.shape[axis + 3 :])
        reduced = np.full(shape, start, x.dtype)
        for element in range(kernel):
            deadline.check()
            ufunc(reduced, reduced_data[(*before, windows.positions(axis, element))], out=reduced)
        reduced_data = reduced
    return reduced_data


def pool_indices(x: Array, windows: Windows) -> tuple[Array, Array]:
    """Return the maximum of each window of ``x[N, C, ...]``, and its flat index in the channel.

    Of equal maxima, the first counts. If no element exceeds the lowest finite number, the index is 0.
    """
    least = lowest(x.dtype)
    padded = pad_spatial(x, windows.pads(x.shape[2:]), least)
    largest = np.full((*x.shape[:2], *windows.count), least, x.dtype)
    indices = np.zeros(largest.shape, np.int64)
    # The index of a window's first element, ignoring padding.
    first = np.zeros(windows.count, np.int64)
    steps = [math.prod(x.shape[axis + 1 :]) for axis in range(2, x.ndim)]
    for axis, (count, step) in enumerate(zip(windows.count, steps, strict=True)):
        starts = (np.arange(count) * windows.strides[axis] - windows.begins[axis]) * step
        first += starts.reshape((-1,) + (1,) * (len(steps) - axis - 1))
    for offset, places in windows.taps():
        candidates = padded[(slice(None), slice(None), *places)]
        better = candidates > largest
        np.copyto(largest, candidates, where=better)
        shift = sum(o * s for o, s in zip(offset, steps, strict=True))
        np.copyto(indices, first + shift, where=better)
    return largest, indices


def sum_dtype(dtype: DType) -> DType:
    """Return the accumulator dtype for sums of window elements: 64-bit integers, or at least f32."""
    if dtype.kind in "iu":
        return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    return dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
