"""Einsum by the kernels of matrix products: with constant weights, and of two computed inputs."""

from __future__ import annotations

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.matrix.einsum import Einsum
from ....ops.matrix.matmul import MatMul
from ... import Kernel, KernelTemplate
from ...common.constant_einsum import constant_einsum
from ...common.einsum import EinsumProduct, einsum_product
from ...common.layout import is_f32
from .._backend import backend
from ..threading.capture import replayed
from ._epilogue import Epilogue
from .computed_matmul import matrix_product
from .contiguous import reshaped

__all__: list[str] = []


@backend.accelerates(Einsum)
def constant_weights(op: Einsum, *operands: Value) -> KernelTemplate | None:
    """Return a kernel for f32 by one constant matrix, which is packed."""
    return constant_einsum(backend, op, operands, reshaped)


@backend.accelerates(Einsum)
def products(op: Einsum, *operands: Value) -> Kernel | None:
    """Return a kernel for f32 matrices in batches; the axes of inputs and result are put in order by views."""
    if len(operands) != 2 or not is_f32(*operands) or None in (value.shape.rank for value in operands):
        return None
    found = einsum_product(op.equation, tuple(len(value.shape) for value in operands))
    return None if found is None else _kernel(op, found)


def _kernel(op: Einsum, found: EinsumProduct) -> Kernel:
    multiply = matrix_product(MatMul(transpose_a=False, transpose_b=False), Epilogue())

    def kernel(a: Array, b: Array) -> Array:
        left, right = found.ordered(a, b)
        if not found.fits(left, right):  # lengths of 1 are broadcast
            return op.evaluate(a, b)
        return found.result(np.asarray(multiply(*found.matrices(left, right, reshaped))), left, right)

    return Kernel(kernel, replay=replayed())
