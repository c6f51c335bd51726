"""Sums, means, maxima, minima, norms and products along known axes."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.reduction import (
    ReduceL1,
    ReduceL2,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reduction,
)
from ... import Kernel
from ...common.layout import is_f32
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..threading.capture import replayed
from ._columns import REDUCE, reduce_columns
from ._reduction_steps import Reduction as Code
from .contiguous import contiguous

__all__: list[str] = []

# Layouts whose plans are cached.
MAX_PLANS = 16

_CODES = {
    ReduceSum: Code.MEAN,
    ReduceMean: Code.MEAN,
    ReduceMax: Code.MAXIMUM,
    ReduceMin: Code.MINIMUM,
    ReduceL1: Code.L1,
    ReduceL2: Code.L2,
    ReduceProd: Code.PRODUCT,
}


class _Plan(NamedTuple):
    """How data of one layout are reduced.

    Args:
        order: the axes in memory.
        sizes: ``[outer, length, inner]``.
        shape: of the result, whose axes are in that order.
        back: the order of the axes of the result.
    """

    order: tuple[int, ...]
    sizes: tuple[int, int, int]
    shape: tuple[int, ...]
    back: tuple[int, ...]


@backend.accelerates(*_CODES)
def reduction(op: Reduction, data: Value, axes: Value) -> Kernel | None:
    """f32 along at least one known axis."""
    rank, known = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or not known or any(not -rank <= axis < rank for axis in known):
        return None
    along = frozenset(axis % rank for axis in known)
    if len(along) < len(known):
        return None  # the operation itself refuses it
    code, constant, is_mean = _CODES[type(op)], np.array(known), isinstance(op, ReduceMean)
    REDUCE.prepare()

    @lru_cache(maxsize=MAX_PLANS)
    def plan(shape: tuple[int, ...], strides: tuple[int, ...]) -> _Plan:
        return _plan(shape, strides, along, op.keep_dims)

    def kernel(x: Array, _: Array) -> Array:
        if not x.size:
            return op.evaluate(x, constant)
        order, sizes, shape, back = plan(x.shape, x.strides)
        y = np.empty(shape, np.float32)
        reduce_columns(contiguous(x.transpose(order)), y, sizes, code, sizes[1] if is_mean else 1)
        return y.transpose(back)

    return accepting(replayed(kernel), any_lengths)


def _plan(shape: tuple[int, ...], strides: tuple[int, ...], along: frozenset[int], keep_dims: bool) -> _Plan:
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    places = [place for place, axis in enumerate(order) if axis in along]
    if places[-1] - places[0] >= len(along):  # they are brought together
        order = [axis for axis in range(len(shape)) if axis not in along] + sorted(along)
        places = list(range(len(shape) - len(along), len(shape)))
    lengths = [shape[axis] for axis in order]
    first, last = places[0], places[-1] + 1
    outer, length, inner = map(math.prod, (lengths[:first], lengths[first:last], lengths[last:]))
    left = order if keep_dims else [axis for axis in order if axis not in along]
    found = [1 if axis in along else shape[axis] for axis in left]
    return _Plan(tuple(order), (outer, length, inner), tuple(found), tuple(np.argsort(left).tolist()))
