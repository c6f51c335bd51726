"""Reductions along known axes; sums of a few contiguous elements are products with ones, in a tenth of NumPy's time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.kernels.statistics import count, lowest
from ....ops.reduction import ReduceMax, ReduceMean, ReduceMin, ReduceSum
from ... import Kernel, Unary
from ...common.layout import axes_by_stride, is_f32
from .._backend import backend

__all__: list[str] = []

# The most elements of a sum for which an f32 accumulator is precise enough.
MAX_LENGTH = 256
# Numbers for which every call counts.
FEW = 1 << 10


@backend.accelerates(ReduceSum)
def reduce_sum(op: ReduceSum, data: Value, axes: Value) -> Kernel | None:
    """Return a kernel for f32 over one axis, if it is short and contiguous."""
    rank, known = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or known is None or len(known) != 1 or not -rank <= known[0] < rank:
        return None
    axis, constant = known[0] % rank, np.array(known)
    add: Callable[..., Array] = np.add.reduce

    def kernel(x: Array, _: Array) -> Array:
        length = x.shape[axis]
        if 0 < x.size <= FEW:
            return np.asarray(add(x, axis, np.float64, keepdims=op.keep_dims), np.float32)
        if not x.size or not 1 < length <= MAX_LENGTH or x.strides[axis] != x.itemsize:
            return op.evaluate(x, constant)
        order = axes_by_stride(x, axis)
        ordered = x.transpose(order)
        sums = np.dot(ordered.reshape(-1, length), np.ones(length, np.float32)).reshape(ordered.shape[:-1])
        sums = sums[..., None].transpose(np.argsort(order))
        return np.asarray(sums if op.keep_dims else sums.squeeze(axis))

    return kernel


@backend.accelerates(ReduceSum, ReduceMean)
def reduce_known_axes(op: ReduceSum | ReduceMean, data: Value, axes: Value) -> Kernel | None:
    """Return a kernel for f32 along known axes, which are counted from the front once; as the reference, in f64."""
    if (along := _known_axes(data, axes)) is None:
        return None
    add: Callable[..., Array] = np.add.reduce

    def sums(x: Array) -> Array:
        return add(x, along, np.float64, keepdims=op.keep_dims)

    if isinstance(op, ReduceSum):
        return Unary(lambda x: np.asarray(sums(x), np.float32))
    return Unary(lambda x: np.asarray(sums(x) / max(count(x.shape, along), 1), np.float32))


@backend.accelerates(ReduceMax, ReduceMin)
def reduce_extremes(op: ReduceMax | ReduceMin, data: Value, axes: Value) -> Kernel | None:
    """Return a kernel for f32 over known axes, which are counted from the front once."""
    if (along := _known_axes(data, axes)) is None:
        return None
    is_max, keep_dims = isinstance(op, ReduceMax), op.keep_dims
    choose: Callable[..., Array] = np.fmax.reduce if is_max else np.fmin.reduce
    # No maximum is below the lowest finite number, as in the reference.
    initial = lowest(np.dtype(np.float32)) if is_max else np.float32(np.inf)
    return Unary(lambda x: np.asarray(choose(x, along, keepdims=keep_dims, initial=initial)))


def _known_axes(data: Value, axes: Value) -> tuple[int, ...] | None:
    """Return the axes, counted from the front, if data is f32, and they are known and valid."""
    rank, known = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or not known or any(not -rank <= axis < rank for axis in known):
        return None
    along = tuple(axis % rank for axis in known)
    return along if len({*along}) == len(along) else None  # the operation itself refuses others
