"""Sums of a few elements that lie side by side: products with ones, which NumPy's own sums take ten times as long for."""

from __future__ import annotations

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.reduction import ReduceSum
from ... import Kernel
from ...common.layout import axes_by_stride, is_f32
from .._backend import backend

__all__: list[str] = []

# Elements of a sum that f32 is wide enough for.
FEW = 256


@backend.accelerates(ReduceSum)
def sums(op: ReduceSum, data: Value, axes: Value) -> Kernel | None:
    """f32 over one axis, where it is short and its elements lie side by side."""
    rank, where = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or where is None or len(where) != 1 or not -rank <= where[0] < rank:
        return None
    axis, constant = where[0] % rank, np.array(where)

    def kernel(x: Array, _: Array) -> Array:
        length = x.shape[axis]
        if not x.size or not 1 < length <= FEW or x.strides[axis] != x.itemsize:
            return op.evaluate(x, constant)
        order = axes_by_stride(x, axis)
        seen = x.transpose(order)
        found = np.dot(seen.reshape(-1, length), np.ones(length, np.float32)).reshape(seen.shape[:-1])
        found = found[..., None].transpose(np.argsort(order))
        return np.asarray(found if op.keep_dims else found.squeeze(axis))

    return kernel
