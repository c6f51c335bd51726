"""Operations that rescale a tensor by its own statistics, or by given ones."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..errors import InferenceError
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ..kernels.statistics import mean, total, working
from ._axes import axes_of, normalize_axes, normalize_axis, reduced_shape
from ._define import Input, Op, Output, attr, op
from ._types import T_FLOAT, T_INDEX, T_INDEX_64


@op("NormalizeL2-1")
class NormalizeL2(Op):
    """Divide ``data`` by its L2 norm over ``axes``.

    Over no axes, each element is divided by itself: 1, and 0 for 0.
    """

    data = Input(T_FLOAT, "tensor to normalize")
    axes = Input(T_INDEX, "axes of the norm, a scalar or 1-D; none means each element alone")
    normalized = Output(T_FLOAT, "of the shape of data")

    eps: float = attr(gt=0, doc="keeps the norm away from zero")
    eps_mode: Literal["add", "max"] = attr(doc="how eps meets the sum of squares")

    def infer(self, data: Value, axes: Value) -> PartialShape:
        reduced_shape(data.shape, axes, keep_dims=True)  # rejects axes that data has not
        return data.shape

    def evaluate(self, data: Array, axes: Array) -> Array:
        if axes.size == 0:
            return np.asarray(data != 0).astype(data.dtype)
        over = normalize_axes(axes_of(axes), data.ndim)
        x = data.astype(working(data.dtype), copy=False)
        squares = total(np.square(x, dtype=np.float64), over, keepdims=True)
        eps = x.dtype.type(self.eps)
        guarded = squares + eps if self.eps_mode == "add" else np.maximum(squares, eps)
        return np.asarray(x / np.sqrt(guarded)).astype(data.dtype, copy=False)


@op("MVN-6")
class MVN(Op):
    """Subtract the mean of ``data`` over ``axes`` and, if asked to, divide by the standard deviation."""

    data = Input(T_FLOAT, "tensor to normalize")
    axes = Input(T_INDEX_64, "axes of the mean, 1-D, in any order")
    normalized = Output(T_FLOAT, "of the shape of data")

    normalize_variance: bool = attr(doc="divide by the standard deviation, too")
    eps: float = attr(gt=0, doc="keeps the divisor away from zero")
    eps_mode: Literal["inside_sqrt", "outside_sqrt"] = attr(
        doc="add eps to the variance, or to the standard deviation"
    )

    def infer(self, data: Value, axes: Value) -> PartialShape:
        if axes.shape.rank not in (None, 1):
            raise InferenceError(f"axes have shape {axes.shape}; they must be 1-D")
        known = axes.ints()
        if known is not None and data.shape.rank is not None:
            _distinct(known, data.shape.rank)
        return data.shape

    def evaluate(self, data: Array, axes: Array) -> Array:
        over = _distinct(axes_of(axes), data.ndim)
        x = data.astype(working(data.dtype), copy=False)
        centred = x - mean(x, over, keepdims=True)
        if self.normalize_variance:
            variance = mean(np.square(centred), over, keepdims=True)
            if self.eps_mode == "inside_sqrt":
                centred /= np.sqrt(variance + self.eps)
            else:
                centred /= np.sqrt(variance) + self.eps
        return np.asarray(centred).astype(data.dtype)


def _distinct(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Axes from the front, each once."""
    return tuple(sorted({normalize_axis(axis, rank) for axis in axes}))
