"""MVN (layer normalization), SoftMax and spatial means."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.activation.softmax import SoftMax
from ....ops.normalization import MVN
from ....ops.reduction import ReduceMean
from ... import Kernel
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.layout import axes_by_stride, channels_last, is_f32, moveaxis
from ...core.lengths import any_lengths
from .._backend import backend
from ..math.gemm import for_row_blocks
from ..math.ones import ones_column
from ._chain import Chain

__all__ = ["softmax_rows"]

# Rows so short that their maxima take longer than everything else, and the spread of elements up to which one maximum
# for all rows does: the exponentials are then far from underflow.
SHORT_ROW, MAX_SPREAD = 64, 60
# Numbers for which every call counts.
FEW = 1 << 10
_INFINITY = np.float32(np.inf)


@backend.accelerates(MVN)
def layer_norm(op: MVN, data: Value, axes: Value) -> Kernel | None:
    """Return a kernel for f32 over the last axis, or over the channels of maps, which are then stored last."""
    rank, over = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or over is None or len(over) != 1 or not -rank <= over[0] < rank:
        return None
    axis = over[0] % rank
    if axis not in (rank - 1, 1):
        return None
    normalize = _row_normalizer(op)

    def compute(x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        rows_last = x if axis == rank - 1 else moveaxis(x, axis, -1)
        y = np.empty(rows_last.shape, np.float32)
        if not y.size:
            return moveaxis(y, -1, axis)
        length = x.shape[axis]
        ones, count = ones_column(length), np.array(length, np.float32)
        source, target = rows_last.reshape(-1, length), y.reshape(-1, length)

        def normalize_rows(rows: Array, out: Array, first: int) -> None:
            means = np.dot(rows, ones)
            np.subtract(rows, np.divide(means, count, means), out)
            sums = means if normalize is None else normalize(out, count)
            if not np.vdot(sums, sums) < _INFINITY:  # sums of huge numbers, which f32 does not hold
                out[...] = op.normalize(rows, (1,))
            epilogue(out, first)

        if y.size <= FEW:
            normalize_rows(source, target, 0)
        else:
            for_row_blocks(
                lambda block: normalize_rows(source[block], target[block], block.start), *target.shape
            )
        return y if axis == rank - 1 else moveaxis(y, -1, axis)

    return RowKernel(compute, 2, axis if axis < rank - 1 else -1, accepts=any_lengths)


def _row_normalizer(op: MVN) -> Callable[[Array, Array], Array] | None:
    """Return the function that divides differences to the mean by their deviation, given their number in a row.

    It returns the deviations.
    """
    if not op.normalize_variance:
        return None
    eps, inside = np.array(op.eps, np.float32), op.eps_mode == "inside_sqrt"

    def normalize(rows: Array, count: Array) -> Array:
        deviations = np.vecdot(rows, rows)
        np.divide(deviations, count, deviations)
        if inside:
            np.sqrt(np.add(deviations, eps, deviations), deviations)
        else:
            np.add(np.sqrt(deviations, deviations), eps, deviations)
        np.divide(rows, deviations[:, None], rows)
        return np.asarray(deviations)

    return normalize


@backend.accelerates(SoftMax)
def softmax(op: SoftMax, data: Value) -> Kernel | None:
    """Return a kernel for f32, along the last axis or one that is contiguous in memory."""
    rank = data.shape.rank
    if not is_f32(data) or not rank or not -rank <= op.axis < rank:
        return None
    axis = op.axis % rank

    def kernel(x: Array) -> Array:
        if 0 < x.size <= FEW:
            return _softmax_of_few(x, axis)
        if axis == rank - 1:
            order = None
        elif x.strides[axis] == x.itemsize:
            order = axes_by_stride(x, axis)
        else:
            return op.evaluate(x)
        y = np.array(x if order is None else x.transpose(order), order="C")
        if y.size:
            softmax_rows(y.reshape(-1, x.shape[axis]))
        return y if order is None else y.transpose(np.argsort(order))

    return Chain(kernel, 1)


def _softmax_of_few(x: Array, axis: int) -> Array:
    y = np.asarray(np.subtract(x, np.maximum.reduce(x, axis, keepdims=True)))
    np.exp(y, y)
    np.divide(y, np.add.reduce(y, axis, keepdims=True), y)
    return y


def softmax_rows(rows: Array) -> None:
    """Compute the softmax of each row in place."""
    ones = np.ones((rows.shape[1], 1), np.float32)

    def work(block: slice) -> None:
        part = rows[block]
        np.subtract(part, _maximum(part), part)
        np.exp(part, part)
        np.divide(part, np.dot(part, ones), part)

    for_row_blocks(work, *rows.shape)


def _maximum(rows: Array) -> Array | np.float32:
    """Return the maximum of each row or, if rows are short and similar, of all of them."""
    if rows.shape[1] <= SHORT_ROW:
        maximum: np.float32 = rows.max()
        if maximum - rows.min() < MAX_SPREAD:
            return maximum
    return np.asarray(np.maximum.reduce(rows, axis=1, keepdims=True))


@backend.accelerates(ReduceMean)
def spatial_mean(op: ReduceMean, data: Value, axes: Value) -> Kernel | None:
    """Return a kernel for f32 over all spatial axes: a product of ones and channels-last rows."""
    rank = data.shape.rank
    if not is_f32(data) or not rank or rank < 4 or axes.ints() is None:
        return None
    if {axis % rank for axis in axes.ints() or ()} != set(range(2, rank)):
        return None

    def kernel(x: Array, _: Array) -> Array:
        rows = channels_last(x).reshape(len(x), math.prod(x.shape[2:]), x.shape[1])
        ones, count = ones_column(rows.shape[1]), np.array(rows.shape[1], np.float32)
        means: Array = np.matmul(ones.T, rows)
        if rows.shape[1]:
            np.divide(means, count, means)
        return means.reshape(x.shape[:2] + ((1,) * (rank - 2) if op.keep_dims else ()))

    return Chain(kernel, 2)
