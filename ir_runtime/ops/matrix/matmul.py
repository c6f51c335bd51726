"""Matrix products (MatMul), also of batches."""

from __future__ import annotations

import numpy as np

from ...ir.dimension import Dimension
from ...ir.formula import Count
from ...ir.operands import Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import InferenceError, Input, Op, Output, T, attr, op
from .._lengths import broadcast_shapes
from ..kernels.matmul import matmul

_BATCHES = ("batches of a", "batches of b")


@op("MatMul-1", spec="matrix/matmul-1")
class MatMul(Op):
    """Multiply the matrices in the last two axes of ``a`` and ``b``; leading axes are batches.

    A 1-D ``a`` is a row, a 1-D ``b`` a column, and neither leaves an axis in the output. Integers
    wrap around, as in OpenVINO's reference; its plugin saturates them.
    """

    bounded = True
    flops_per_element = 0

    a = Input(T, "matrices of the left side, rank 1 or more")
    b = Input(T, "matrices of the right side, rank 1 or more; batches broadcast")
    product = Output(T, "the products, with the broadcast batch axes")

    transpose_a: bool = attr(False, doc="swap the last two axes of a, unless it is 1-D")
    transpose_b: bool = attr(False, doc="swap the last two axes of b, unless it is 1-D")

    def infer(self, a: Value, b: Value) -> PartialShape:
        for name, shape in (("a", a.shape), ("b", b.shape)):
            if shape.rank == 0:
                raise InferenceError(
                    f"{name} is a scalar; at least one axis is expected",
                    clause=f"{name} has at least one axis",
                )
        if a.shape.rank is None or b.shape.rank is None:
            return PartialShape.dynamic()
        left, right = _matrices(a.shape, self.transpose_a), _matrices(b.shape, self.transpose_b)
        columns, rows = left[-1], right[-2] if len(right) > 1 else right[0]
        if not columns.compatible(rows):
            raise InferenceError(
                f"a {_describe(a.shape, self.transpose_a)} has {columns} columns, "
                f"b {_describe(b.shape, self.transpose_b)} has {rows} rows; both must be equal",
                hint=self._way_out(left, right),
                clause="the columns of a are as many as the rows of b",
            )
        batch = broadcast_shapes(PartialShape(left[:-2]), PartialShape(right[:-2]), names=_BATCHES)
        return PartialShape([*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else [])])

    def _way_out(self, left: list[Dimension], right: list[Dimension]) -> str:
        """Return the attribute whose negation would make the shapes match."""
        if len(right) > 1 and left[-1].compatible(right[-1]):
            return f"with transpose_b {'false' if self.transpose_b else 'true'} they would fit"
        if len(left) > 1 and left[-2].compatible(right[-2] if len(right) > 1 else right[0]):
            return f"with transpose_a {'false' if self.transpose_a else 'true'} they would fit"
        return ""

    def refuses_lengths(self) -> bool:
        return True

    def evaluate(self, a: Array, b: Array) -> Array:
        left = np.swapaxes(a, -1, -2) if self.transpose_a and a.ndim > 1 else a
        right = np.swapaxes(b, -1, -2) if self.transpose_b and b.ndim > 1 else b
        return matmul(left, right)

    def macs(self, operands: Operands) -> Count:
        """Return one MAC for each element of the product and each column of a."""
        a = operands.inputs[0]
        return operands.result * (a[-2] if self.transpose_a and len(a) > 1 else a[-1])


def _matrices(shape: PartialShape, transpose: bool) -> list[Dimension]:
    dims = list(shape)
    if transpose and len(dims) > 1:
        dims[-2:] = dims[:-3:-1]
    return dims


def _describe(shape: PartialShape, transpose: bool) -> str:
    return f"{shape} transposed" if transpose and len(shape) > 1 else str(shape)
