"""Einsum with constant weights, by the kernels of matrix products."""

from __future__ import annotations

from ....ir.tensor import Value
from ....ops.matrix.einsum import Einsum
from ... import Kernel
from ...common.constant_einsum import constant_einsum
from .._backend import backend

__all__: list[str] = []


@backend.accelerates(Einsum)
def constant_weights(op: Einsum, *operands: Value) -> Kernel | None:
    """Return a kernel for f32 by one constant matrix, which is packed."""
    return constant_einsum(backend, op, operands)
