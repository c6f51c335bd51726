"""Max pooling of channels-last maps, reduced along one axis after the other, with one pass for each element of the kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.kernels.pooling import Windows
from ....ops.kernels.statistics import lowest
from ....ops.pooling import MaxPool1, MaxPool8, MaxPool14, MaxPoolWithIndices, Pooling
from ....ops.window import Pads
from ... import UNREAD, Kernel
from ...common.layout import channels_first, channels_last, is_f32, pad_spatial
from .._backend import backend
from ..parallel import parallel_for, thread_count
from ._gemm import block_count, is_finite, split_range

__all__: list[str] = []
# The cost of an element of a window, in multiplications of a GEMM.
ELEMENT_COST = 6
# Elements of the result that a thread computes at a time, so that their windows stay in the L2 cache.
BLOCK = 1 << 15

LOWEST = np.full(1, lowest(np.dtype(np.float32)), np.float32)


@backend.accelerates(MaxPool1)
def max_pool(op: MaxPool1, data: Value) -> Kernel | None:
    """Return a kernel for f32, else ``None``. As in the reference, NaN is ignored, and no result is below the lowest finite f32."""
    return Kernel(_max_kernel(op)) if is_f32(data) else None


@backend.accelerates(MaxPool8, MaxPool14)
def max_pool_without_indices(
    op: MaxPoolWithIndices, data: Value, unread: Collection[int] = ()
) -> Kernel | None:
    """Return a kernel for f32 if the indices have no consumers, else ``None``."""
    if not is_f32(data) or 1 not in unread:
        return None
    pool = _max_kernel(op)
    return Kernel(lambda x: (pool(x), UNREAD))


def _max_kernel(op: Pooling) -> Callable[[Array], Array]:
    """Return a function that pools maps ``[N, C, spatial...]``."""
    plan_of = lru_cache(maxsize=64)(lambda lengths: _Plan.of(op.place_windows(lengths), lengths))

    def kernel(x: Array) -> Array:
        plan = plan_of(x.shape[2:])
        data = pad_spatial(channels_last(x), plan.pads, float(LOWEST[0]))
        y = np.empty((len(x), *plan.lengths, x.shape[1]), np.float32)

        def work(chunk: tuple[slice, slice]) -> None:
            images, rows = chunk
            _pool(data[images], plan, rows, y[images, rows])

        cost = y.size * plan.size * ELEMENT_COST
        parallel_for(work, _chunks(y, thread_count(cost)), cost)
        return channels_first(y)

    return kernel


class _Plan(NamedTuple):
    """The plan of a pooling for data of one shape.

    ``lengths`` are the spatial lengths of the result. ``places`` has, for each spatial axis and each element of the kernel along
    it, the index of the data that the element meets.
    """

    lengths: tuple[int, ...]
    pads: Pads
    places: list[list[tuple[slice, ...]]]
    size: int
    """The number of elements of a window."""

    @classmethod
    def of(cls, windows: Windows, lengths: tuple[int, ...]) -> _Plan:
        """Return the plan for data of the given spatial lengths."""
        places = [
            [((slice(None),) * axis + (windows.positions(axis, element),)) for element in range(length)]
            for axis, length in enumerate(windows.kernel)
        ]
        return cls(tuple(windows.count), tuple(windows.pads(lengths)), places, math.prod(windows.kernel))


def _pool(data: Array, plan: _Plan, rows: slice, out: Array) -> None:
    """Write the maxima of the windows of padded data for the given rows of the result."""
    partial, last = data, len(plan.places) - 1
    for axis, places in enumerate(plan.places):
        shifted = [partial[:, *place] for place in places]
        if not axis:
            shifted = [array[:, rows] for array in shifted]
        partial = _largest(shifted, out if axis == last else None)
    if not is_finite(out.reshape(-1)):
        np.fmax(out, LOWEST, out=out)


def _chunks(y: Array, threads: int) -> list[tuple[slice, slice]]:
    """Split the result into blocks of images, or of the rows of each image if there are few images."""
    blocks = block_count(y.size, threads) if threads > 1 else y.size // BLOCK + 1
    if len(y) > blocks:
        return [(images, slice(None)) for images in split_range(len(y), blocks)]
    row_blocks = split_range(y.shape[1], -(-blocks // max(len(y), 1)))
    return [(slice(n, n + 1), rows) for n in range(len(y)) for rows in row_blocks]


def _largest(arrays: list[Array], out: Array | None) -> Array:
    """Return the elementwise maximum of arrays, in ``out`` or a new array; a single array is returned itself without ``out``."""
    first, *others = arrays
    if not others:
        if out is None:
            return first
        np.copyto(out, first)
        return out
    largest: Array = np.fmax(first, others[0], out=out)
    for other in others[1:]:
        np.fmax(largest, other, out=largest)
    return largest
