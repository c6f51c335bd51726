"""Matrix products of any numeric dtype, with their accumulator dtypes and the rounding of sums."""

from __future__ import annotations

import numpy as np

from ..._util.arrays import Array, DType

__all__ = ["matmul", "accumulator_dtype"]


def accumulator_dtype(dtype: DType) -> DType:
    """Return the accumulator dtype for sums of products of ``dtype``; BLAS supports only f32 and f64.

    Floats narrower than f32 use f32. Sums of products of integers of up to 16 bits are exact in f64; wider integers keep their
    dtype and wrap around.
    """
    if dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        return dtype
    if dtype.kind in "iu":
        return np.dtype(np.float64) if dtype.itemsize <= 2 else dtype
    return np.dtype(np.float32)


def matmul(a: Array, b: Array) -> Array:
    """Multiply matrices of equal dtype; integers wrap around, and sums of f16 and bf16 are rounded once."""
    work = accumulator_dtype(a.dtype)
    product = np.asarray(np.matmul(a.astype(work, copy=False), b.astype(work, copy=False)))
    return from_accumulator(product, a.dtype)


def from_accumulator(product: Array, dtype: DType) -> Array:
    """Convert sums of products from the accumulator dtype to ``dtype``."""
    if dtype.kind in "iu" and product.dtype.kind == "f":
        product = product.astype(np.int64)
    return product.astype(dtype, copy=False)
