"""Operations that make one element of one element."""

from __future__ import annotations

import numpy as np

from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ..kernels.statistics import working
from ._define import Input, Op, Output
from ._types import T_FLOAT

__all__ = ["Pointwise"]


class Pointwise(Op):
    """What functions of a single element share. A member says what the function is.

    It sees f16 and bf16 as f32, and what it returns is rounded once, as in OpenVINO's reference.
    """

    data = Input(T_FLOAT, "tensor of any shape")
    output = Output(T_FLOAT, "the function of each element")

    def infer(self, data: Value) -> PartialShape:
        return data.shape

    def evaluate(self, data: Array) -> Array:
        found = self.apply(data.astype(working(data.dtype), copy=False))
        return np.asarray(found).astype(data.dtype, copy=False)

    def apply(self, x: Array) -> Array:
        """The function of every element."""
        raise NotImplementedError
