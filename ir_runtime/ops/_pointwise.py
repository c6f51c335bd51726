"""Functions of single elements that are computed in f32 at least."""

from __future__ import annotations

import numpy as np

from ..ir.tensor import Array
from ..kernels.statistics import working
from ._define.operation import Input, Output
from ._define.types import T_FLOAT
from .elementwise import Unary

__all__ = ["Pointwise"]


class Pointwise(Unary):
    """What activation functions share. A member says what the function is.

    It sees f16 and bf16 as f32, and what it returns is rounded once, as in OpenVINO's reference.
    """

    data = Input(T_FLOAT, "tensor of any shape")
    output = Output(T_FLOAT, "the function of each element")

    def evaluate(self, data: Array) -> Array:
        found = self.apply(data.astype(working(data.dtype), copy=False))
        return np.asarray(found).astype(data.dtype, copy=False)

    def apply(self, x: Array) -> Array:
        """The function of every element."""
        raise NotImplementedError
