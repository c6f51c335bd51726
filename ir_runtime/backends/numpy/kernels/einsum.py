"""Einsum of two inputs that multiplies matrices, by BLAS."""

from __future__ import annotations

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.matrix import Einsum
from ... import Kernel, KernelTemplate
from ...common.einsum import constant_einsum, einsum_product
from ...common.layout import is_f32
from .._backend import backend
from .elementwise import Chain

__all__: list[str] = []


@backend.accelerates(Einsum)
def constant_weights(op: Einsum, *operands: Value) -> KernelTemplate | None:
    """Return a kernel for f32 by one constant matrix, which is packed."""
    return constant_einsum(backend, op, operands)


@backend.accelerates(Einsum)
def products(op: Einsum, *operands: Value) -> KernelTemplate | None:
    """Return a kernel for f32 matrices in batches; the axes of inputs and result are put in order by views."""
    if len(operands) != 2 or not is_f32(*operands) or None in (value.shape.rank for value in operands):
        return None
    found = einsum_product(op.equation, tuple(len(value.shape) for value in operands))
    if found is None:
        return None
    product = found

    def compute(a: Array, b: Array) -> Array:
        left, right = product.ordered(a, b)
        if not product.fits(left, right):  # lengths of 1 are broadcast
            return op.evaluate(a, b)
        return product.result(np.matmul(*product.matrices(left, right)), left, right)

    return Chain(Kernel(compute), 2)
