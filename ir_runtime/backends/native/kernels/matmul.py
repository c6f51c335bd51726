"""Matrix products with constant weights."""

from __future__ import annotations

import math

from ....ir.tensor import Array, Value
from ....ops.matrix.matmul import MatMul
from ... import Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import is_f32
from ...core.lengths import axis_length
from .._backend import backend
from ..threading.capture import replayed
from ..threading.task import UNUSED
from ._epilogue import Epilogue, FusedKernel
from ._gemm import Gemm
from ._products import Products, asked_products, few_row_products
from .contiguous import contiguous

__all__ = ["constant_product"]


@backend.accelerates(MatMul)
def constant_matmul(op: MatMul, a: Value, b: Value) -> KernelTemplate | None:
    """f32 rows, of any batch, by one constant matrix."""
    known = b.known()
    if known is None or not known.size or not is_f32(a, b) or math.prod(known.shape[:-2]) != 1:
        return None
    if a.shape.rank is None or a.shape.rank < max(known.ndim, 2) or known.ndim < 2:
        return None
    matrix = known.reshape(known.shape[-2:])
    weights = matrix.T if op.transpose_b else matrix
    rows = math.prod(a.shape.static) // len(weights) if a.shape.is_static else None
    products = few_row_products(asked_products(rows, weights.size), rows, len(weights), weights.size)

    def make(epilogue: Epilogue) -> Kernel:
        return constant_product(weights, op.transpose_a, epilogue, products)

    accepts = axis_length(-2 if op.transpose_a else -1, len(weights))
    return FusedKernel(make, accepts=accepts, bf16=products.bf16_tensors(len(weights)))


def constant_product(weights: Array, transposed: bool, epilogue: Epilogue, products: Products) -> Kernel:
    """Return the kernel that multiplies rows by a constant matrix.

    Args:
        weights: ``[depth, columns]``.
        transposed: whether the last two axes of the rows are swapped first.
        epilogue: the layers that are fused.
        products: how numbers are multiplied.
    """
    depth, columns = weights.shape
    panels = products.pack(weights.T[None, :, None], epilogue.scale, epilogue.shift)
    dense = Gemm(panels, epilogue, columns, 1, products.words(depth), UNUSED, products.task)
    rows = products.rows_of(depth)

    def kernel(x: Array, _: Array, *extras: Array) -> Array:
        x = x.swapaxes(-1, -2) if transposed else x
        y = empty((*x.shape[:-1], columns), epilogue.dtype)
        dense.multiply(rows(contiguous(x)), y, extras)
        return y

    return Kernel(kernel, name=products.name, replay=replayed())
