"""Reductions: many elements become one along chosen axes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._axes import axes_of, reduced_shape
from ._define import Input, Op, Output, attr, op
from ._types import T_INDEX, T


class Reduction(Op):
    """What all reductions share. A member says how to reduce along a tuple of axes.

    Empty axes leave the data as they are. The pages forbid repeated axes; OpenVINO accepts them,
    we report them.
    """

    data = Input(T, "tensor to reduce")
    axes = Input(T_INDEX, "axes to reduce, a scalar or 1-D; negative ones count from the end")
    reduced = Output(T, "the axes gone, or of length 1")

    keep_dims: bool = attr(False, doc="keep reduced axes, with length 1")

    def infer(self, data: Value, axes: Value) -> PartialShape:
        return reduced_shape(data.shape, axes, self.keep_dims)

    def evaluate(self, data: Array, axes: Array) -> Array:
        if axes.size == 0:
            return data
        return np.asarray(self.reduce(data, axis=axes_of(axes), keepdims=self.keep_dims))

    def reduce(self, data: Array, **how: Any) -> Any:
        """Reduce along ``how['axis']``."""
        raise NotImplementedError


class Fold(Reduction):
    """A reduction that is a NumPy ufunc applied again and again."""

    ufunc: ClassVar[np.ufunc]

    def reduce(self, data: Array, **how: Any) -> Any:
        return self.ufunc.reduce(data, dtype=data.dtype, **how)


@op("ReduceSum-1")
class ReduceSum(Fold):
    """Sum of ``data`` over ``axes``."""

    ufunc = np.add
    symbolic = True


@op("ReduceProd-1")
class ReduceProd(Fold):
    """Product of ``data`` over ``axes``."""

    ufunc = np.multiply
    symbolic = True
