"""Base of activation functions, which are computed in at least f32."""

from __future__ import annotations

import numpy as np

from ..ir.tensor import Array
from ._define.operation import T_FLOAT, Input, Output
from .elementwise import Unary
from .kernels.statistics import compute_dtype

__all__ = ["Pointwise"]


class Pointwise(Unary):
    """Base of activation functions. A subclass defines `apply`.

    f16 and bf16 are computed in f32, and the result is rounded once, as in OpenVINO's reference.
    """

    data = Input(T_FLOAT, "tensor of any shape")
    output = Output(T_FLOAT, "the function of each element")

    def evaluate(self, data: Array) -> Array:
        result = self.apply(data.astype(compute_dtype(data.dtype), copy=False))
        return np.asarray(result).astype(data.dtype, copy=False)

    def apply(self, x: Array) -> Array:
        """Apply the function to every element."""
        raise NotImplementedError
