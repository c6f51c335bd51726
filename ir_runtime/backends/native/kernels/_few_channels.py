"""Convolutions with few output channels: several neighbouring results fill a vector.

A filter is repeated, moved by one stride each time, so that one window gives the results of several; windows are as much
further apart. The layout of the result does not change. A moved filter multiplies data outside its window by
zeros, which is wrong for infinities and NaN: with those, each filter is computed by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.convolution.forward import Convolution
from ... import Compute, Kernel
from ...common.layout import channels_first, moveaxis
from ..codegen.vectors import LANES
from ._epilogue import Epilogue, PostOpKind, TilePostOp
from .contiguous import contiguous

__all__ = ["neighbours", "repeated", "widened"]

# The most results that one window gives, and the share of the work that must be saved.
MAX_NEIGHBOURS = 16
MIN_SAVED = 0.25


def neighbours(op: Convolution, data: Value, w: Array) -> int:
    """Return how many results of a row one window should give, 1 if filters are better left as they are."""
    shape, outputs, wide = data.shape, len(w), w.shape[-1]
    if wide == 1 or outputs > LANES // 2 or op.auto_pad != "explicit" or op.dilations[-1] != 1:
        return 1
    if shape.rank != w.ndim or shape[-1].is_dynamic:
        return 1
    step = op.strides[-1]
    columns = (shape[-1].min + op.pads_begin[-1] + op.pads_end[-1] - wide) // step + 1
    counts = [n for n in range(1, MAX_NEIGHBOURS + 1) if columns > 0 and columns % n == 0]
    work = {n: -(-n * outputs // LANES) * (wide + (n - 1) * step) / n for n in counts or [1]}
    best = min(work, key=work.__getitem__)
    return best if work[best] < (1 - MIN_SAVED) * wide else 1


def widened(
    op: Convolution,
    w: Array,
    epilogue: Epilogue,
    count: int,
    make: Callable[[Convolution, Array, Epilogue], Kernel],
) -> Kernel:
    """Return the kernel that ``make`` returns for filters that give ``count`` neighbours at once."""
    outputs, wide, step = len(w), w.shape[-1], op.strides[-1]
    filters = np.zeros((count, *w.shape[:-1], wide + (count - 1) * step), np.float32)
    for place in range(count):
        filters[place, ..., place * step : place * step + wide] = w
    strided = op.replace(strides=(*op.strides[:-1], count * step))
    kernel = make(strided, filters.reshape(-1, *filters.shape[2:]), repeated(epilogue, count)).run
    read = {post_op.extra for post_op in epilogue.post_ops}

    @cache
    def by_itself() -> Compute:
        return make(op, w, epilogue).run

    def compute(x: Array, given: Array, *extras: Array) -> Array | tuple[Array, ...]:
        if not _is_finite(x):
            return by_itself()(x, given, *extras)
        others = (_reshaped(extra, outputs * count) if i in read else extra for i, extra in enumerate(extras))
        y = kernel(x, given, *others)
        assert isinstance(y, np.ndarray)
        return _reshaped(y, outputs)

    return Kernel(compute)


def _is_finite(x: Array) -> bool:
    """Return whether all numbers are finite; large ones, whose sum is not, may be taken for infinities."""
    with np.errstate(all="ignore"):
        return math.isfinite(x.sum())


def _reshaped(x: Array, channels: int) -> Array:
    """Return the same memory with another number of channels: neighbours in a row become channels, or the reverse."""
    stored = contiguous(moveaxis(x, 1, -1))
    *lead, columns, known = stored.shape
    return channels_first(stored.reshape(*lead, columns * known // channels, channels))


def repeated(epilogue: Epilogue, count: int) -> Epilogue:
    """Return the epilogue of ``count`` times the columns, one after the other."""
    scale, shift = (None if row is None else np.tile(row, count) for row in (epilogue.scale, epilogue.shift))
    post_ops = tuple(_repeated_post_op(post_op, count) for post_op in epilogue.post_ops)
    return replace(epilogue, scale=scale, shift=shift, post_ops=post_ops)


def _repeated_post_op(post_op: TilePostOp, count: int) -> TilePostOp:
    row = post_op.row
    if row is None or (post_op.kind is PostOpKind.QUANTIZE and row.shape[-1] == 1):
        return post_op
    return replace(post_op, row=np.tile(row, count))
