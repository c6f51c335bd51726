"""Cumulative sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.arithmetic.accumulation import CumSum
from ... import Kernel, Unary
from ...common.layout import is_f32, moveaxis
from .._backend import backend

__all__: list[str] = []

# Numbers of a slice from which on it is faster to add slices than to let NumPy go along the axis.
MIN_SLICE = 1 << 9


@backend.accelerates(CumSum)
def cumsum(op: CumSum, data: Value, axis: Value | None = None) -> Kernel | None:
    """Return a kernel for f32 from the start of a known axis: one call, without the dispatch of `np.cumsum`."""
    known, rank = (0,) if axis is None else axis.ints(), data.shape.rank
    if not is_f32(data) or op.reverse or op.exclusive or known is None or not rank:
        return None
    along, accumulate = known[0], np.add.accumulate

    def kernel(x: Array) -> Array:
        is_wide = x.size >= MIN_SLICE * x.shape[along] and abs(x.strides[along]) > x.itemsize
        return _sum_slices(x, along, np.add) if is_wide and x.size else accumulate(x, axis=along)

    return Unary(kernel)


def _sum_slices(x: Array, axis: int, add: Callable[[Array, Array, Array], Array]) -> Array:
    """Add one slice after the other, which takes a quarter of the time of `np.add.accumulate` if they are large."""
    y = np.empty(x.shape, np.float32)
    slices, sums = moveaxis(x, axis, 0), moveaxis(y, axis, 0)
    sums[0] = slices[0]
    for before, more, sum in zip(sums, slices[1:], sums[1:], strict=False):
        add(before, more, sum)
    return y
