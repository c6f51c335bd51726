"""Cumulative sums."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....ir.tensor import Value
from ....ops.arithmetic.accumulation import CumSum
from ... import Kernel, Unary
from ...common.layout import is_f32
from .._backend import backend

__all__: list[str] = []


@backend.accelerates(CumSum)
def cumsum(op: CumSum, data: Value, axis: Value | None = None) -> Kernel | None:
    """Return a kernel for f32 from the start of a known axis: one call, without the dispatch of `np.cumsum`."""
    known, rank = (0,) if axis is None else axis.ints(), data.shape.rank
    if not is_f32(data) or op.reverse or op.exclusive or known is None or not rank:
        return None
    return Unary(partial(np.add.accumulate, axis=known[0]))
