"""Matrix products."""

from __future__ import annotations

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.matrix.matmul import MatMul
from ... import Kernel
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.layout import is_f32
from ...core.lengths import axis_length
from .._backend import backend
from ..math.gemm import gemm
from ..math.panels import Panels
from ._chain import Chain

__all__: list[str] = []


@backend.accelerates(MatMul)
def matmul_constant(op: MatMul, a: Value, b: Value) -> Kernel | None:
    """Return a kernel for f32 rows, of any batch, by one constant matrix.

    The matrix is packed into panels. The original is part of the mapped file, whose pages the system may drop.
    """
    known = b.known()
    if known is None or known.ndim != 2 or not known.size or not is_f32(a, b):
        return None
    if a.shape.rank is None or a.shape.rank < 2 or op.transpose_a:
        return None
    weights = Panels.of(known.T if op.transpose_b else known, known)

    def compute(x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        y = np.empty((*x.shape[:-1], weights.columns), np.float32)
        rows = y.reshape(-1, weights.columns)
        gemm(np.ascontiguousarray(x.reshape(len(rows), x.shape[-1])), weights, rows, epilogue)
        return y

    return RowKernel(compute, 2, accepts=axis_length(-1, known.shape[1 if op.transpose_b else 0]))


@backend.accelerates(MatMul)
def matmul(op: MatMul, a: Value, b: Value) -> Kernel | None:
    """Return a kernel for f32 matrices, of any batch; transposed ones are views, which BLAS supports."""
    if not is_f32(a, b) or None in (a.shape.rank, b.shape.rank) or 1 in (a.shape.rank, b.shape.rank):
        return None

    def compute(x: Array, y: Array) -> Array:
        left = x.swapaxes(-1, -2) if op.transpose_a else x
        right = y.swapaxes(-1, -2) if op.transpose_b else y
        return np.asarray(np.matmul(left, right))

    return Chain(compute, 2)
