"""Sums, means, maxima, minima, norms and products along constant axes."""

from __future__ import annotations

from functools import lru_cache

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
from ...common.kept_memory import empty
from ...core.kernel import any_lengths
from .._backend import backend
from ..threading.capture import replayed
from ._columns import AxesPlan, known_axes, plan_axes
from ._copy import contiguous
from ._reductions import REDUCE, reduce_columns
from ._reductions import Reduction as Code

__all__: list[str] = []

# Number of layouts whose plans are cached.
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


@backend.accelerates(*_CODES)
def reduction(op: Reduction, data: Value, axes: Value) -> Kernel | None:
    """Return a reduction kernel for f32 along at least one constant axis."""
    if (along := known_axes(data, axes)) is None:
        return None
    code, constant, is_mean = _CODES[type(op)], np.array(sorted(along)), isinstance(op, ReduceMean)
    REDUCE.prepare()

    @lru_cache(maxsize=MAX_PLANS)
    def plan(shape: tuple[int, ...], strides: tuple[int, ...]) -> AxesPlan:
        return plan_axes(shape, strides, along, op.keep_dims)

    def kernel(x: Array, _: Array) -> Array:
        if not x.size:
            return op.evaluate(x, constant)
        order, sizes, shape, back = plan(x.shape, x.strides)
        y = empty(shape, np.float32)
        reduce_columns(contiguous(x.transpose(order)), y, sizes, code, sizes[1] if is_mean else 1)
        return y.transpose(back)

    return Kernel(kernel, accepts=any_lengths, replay=replayed())
