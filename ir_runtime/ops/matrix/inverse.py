"""Matrix inverses."""

from __future__ import annotations

import numpy as np

from ...ir.formula import Count
from ...ir.operands import Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, InferenceError, Input, Op, Output, attr, op


@op("Inverse-14")
class Inverse(Op):
    """Inverses of the matrices in the last two axes of ``data``, computed in f32, as the page requires.

    A matrix without an inverse is an error, where OpenVINO gives infinities and NaN.
    """

    flops_per_element = 0

    data = Input(T_FLOAT, "[..., N, N]")
    output = Output(T_FLOAT, "[..., N, N]")

    adjoint: bool = attr(False, doc="transpose each inverse")

    def infer(self, data: Value) -> PartialShape:
        shape = data.shape
        if shape.rank is None:
            return shape
        if shape.rank < 2:
            raise InferenceError(
                f"data has shape {shape}; at least two axes are expected, [..., N, N]",
                clause="data has at least two axes, [..., N, N]",
            )
        side = shape[-1].merge(shape[-2])
        if side is None:
            raise InferenceError(
                f"data has shape {shape}; its last two axes, the matrices, must be equally long",
                clause="the matrices in data are square",
            )
        return PartialShape([*shape[:-2], side, side])

    def evaluate(self, data: Array) -> Array:
        try:
            inverse = np.linalg.inv(data.astype(np.float32))
        except np.linalg.LinAlgError:
            raise InferenceError(
                "a matrix in data has no inverse: its determinant is 0",
                clause="the matrices in data have an inverse",
            ) from None
        if self.adjoint:
            inverse = np.swapaxes(inverse, -1, -2)
        return np.ascontiguousarray(inverse, data.dtype)

    def macs(self, operands: Operands) -> Count:
        """Return the cube of the number of rows for each matrix, as for Gaussian elimination."""
        return operands.result * operands.inputs[0][-1]
