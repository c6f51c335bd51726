"""MatMul, and Einsum that is a matrix product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....ir.operation import Operation
from ....ir.tensor import Array, Value
from ....ops.matrix import Einsum, MatMul
from ... import Kernel, KernelTemplate
from ...common.einsum import constant_einsum, einsum_product
from ...common.epilogue import RowEpilogue, RowKernel
from ...common.layout import is_f32
from ...core.kernel import Accepts, axis_length
from .._backend import backend
from ..parallel import multithreaded_blas, thread_count
from ._gemm import gemm, own_matrix
from .elementwise import Chain

# The maximum elements of a matrix, and multiplications of a product, for a plain call of NumPy: dividing rows and threads
# then takes longer than it saves.
FEW_NUMBERS, FEW_MULTIPLICATIONS = 1 << 16, 1 << 18
# The minimum columns and elements of a matrix whose product with one row is shared by BLAS's own threads; they need no GIL.
SHARED_COLUMNS, SHARED_NUMBERS = 1 << 10, 1 << 19


@backend.accelerates(MatMul)
def matmul_constant(op: MatMul, a: Value, b: Value) -> KernelTemplate | None:
    """Return a kernel for f32 rows, of any batch, multiplied by a single constant matrix, which is copied; else ``None``."""
    known = b.known()
    if known is None or known.ndim != 2 or not known.size or not is_f32(a, b):
        return None
    if a.shape.rank is None or a.shape.rank < 2 or op.transpose_a:
        return None
    return constant_product(a, known.T if op.transpose_b else known)


def constant_product(a: Value, matrix: Array) -> KernelTemplate:
    """Return a kernel for f32 rows, of any batch, multiplied by a constant matrix ``[depth, columns]``, which is copied."""
    most = FEW_MULTIPLICATIONS // matrix.shape[1] if matrix.size <= FEW_NUMBERS else 0
    static = math.prod(a.shape.static) if a.shape.is_static else None
    if static is not None and 0 < static <= most:
        return _few_rows(a, matrix)
    large = matrix.shape[1] >= SHARED_COLUMNS and matrix.size >= SHARED_NUMBERS
    if static == len(matrix) and large and thread_count(1 << 62) > 1:
        return _one_row(matrix)
    many = _many_rows(matrix)
    return many if static is not None or not most else _FewOrMany(_few_rows(a, matrix), many, most)


def _few_rows(a: Value, matrix: Array) -> Chain:
    """Return a kernel that is a single call of NumPy, for few rows."""
    right = np.array(matrix, order="C")
    product = np.dot if a.shape.rank == 2 else np.matmul
    return Chain(Kernel.unary(lambda x: np.asarray(product(x, right))), 2)


def _one_row(matrix: Array) -> RowKernel:
    """Return a kernel for a single row and a large matrix, whose columns BLAS's own threads share."""
    weights = own_matrix(matrix, matrix.T if matrix.flags.f_contiguous else matrix)

    def compute(x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        y = np.empty((*x.shape[:-1], weights.shape[1]), np.float32)
        row = y.reshape(1, -1)
        with multithreaded_blas():
            np.matmul(x.reshape(1, -1), weights, row)
        epilogue(row, 0)
        return y

    return RowKernel(compute, 2, accepts=axis_length(-1, len(matrix)))


def _many_rows(matrix: Array) -> RowKernel:
    """Return a kernel for many rows, which the thread pool shares."""
    weights = own_matrix(matrix, matrix.T if matrix.flags.f_contiguous else matrix)

    def compute(x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        y = np.empty((*x.shape[:-1], weights.shape[1]), np.float32)
        rows = y.reshape(-1, weights.shape[1])
        gemm(np.ascontiguousarray(x.reshape(len(rows), x.shape[-1])), weights, rows, epilogue)
        return y

    return RowKernel(compute, 2, accepts=axis_length(-1, len(matrix)))


@dataclass(frozen=True)
class _FewOrMany(KernelTemplate):
    """Two kernels for the same layers: ``few`` for inputs of at most ``most`` elements, ``many`` for larger ones."""

    few: KernelTemplate
    many: RowKernel
    most: int

    @property
    def accepts(self) -> Accepts | None:
        """The check of lengths, which is the same for both kernels."""
        return self.many.accepts

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> KernelTemplate | None:
        """Return a kernel that also computes ``op``, or ``None``; if only ``many`` can fuse it, ``few`` is dropped."""
        few, many = self.few.fuse(op, inputs, place), self.many.fuse(op, inputs, place)
        if few is None or many is None:
            return many
        return replace(self, few=few, many=many)

    def prepare(self) -> Kernel:
        """Prepare both kernels, and return one that chooses between them by the size of its first input."""
        few, many, most = self.few.prepare().whole, self.many.prepare().whole, self.most

        def kernel(x: Array, *others: Array) -> Array | tuple[Array, ...]:
            return few(x, *others) if x.size <= most else many(x, *others)

        return Kernel(kernel, accepts=self.accepts)


@backend.accelerates(MatMul)
def matmul(op: MatMul, a: Value, b: Value) -> KernelTemplate | None:
    """Return a kernel for f32 matrices, of any batch, else ``None``; transposed operands are views, which BLAS supports."""
    if not is_f32(a, b) or None in (a.shape.rank, b.shape.rank) or 1 in (a.shape.rank, b.shape.rank):
        return None

    def compute(x: Array, y: Array) -> Array:
        left = x.swapaxes(-1, -2) if op.transpose_a else x
        right = y.swapaxes(-1, -2) if op.transpose_b else y
        return np.asarray(np.matmul(left, right))

    return Chain(Kernel(compute), 2)


@backend.accelerates(Einsum)
def constant_weights(op: Einsum, *operands: Value) -> KernelTemplate | None:
    """Return a kernel for an f32 Einsum with a constant matrix, which is packed, or ``None`` (see `constant_einsum`)."""
    return constant_einsum(backend, op, operands)


@backend.accelerates(Einsum)
def products(op: Einsum, *operands: Value) -> KernelTemplate | None:
    """Return a kernel for an f32 Einsum that is a batched matrix product, with axes permuted by views, else ``None``."""
    if len(operands) != 2 or not is_f32(*operands) or None in (value.shape.rank for value in operands):
        return None
    matched = einsum_product(op.equation, tuple(len(value.shape) for value in operands))
    if matched is None:
        return None
    product = matched

    def compute(a: Array, b: Array) -> Array:
        left, right = product.permute(a, b)
        if not product.fits(left, right):  # lengths of 1 are broadcast
            return op.evaluate(a, b)
        return product.result(np.matmul(*product.matrices(left, right)), left, right)

    return Chain(Kernel(compute), 2)
