"""Matrix products that are right in every element type. Knows nothing of the IR."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

__all__ = ["matmul", "working_dtype"]


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which to add up products: BLAS has no other floats than f32 and f64.

    Integers of up to 16 bits are exact in f64, however many are added; wider ones stay as they are
    and wrap around.
    """
    if dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        return dtype
    if dtype.kind in "iu":
        return np.dtype(np.float64) if dtype.itemsize <= 2 else dtype
    return np.dtype(np.float32)


def matmul(a: Array, b: Array) -> Array:
    """`np.matmul` of two arrays of one dtype; integers wrap around, small floats are rounded once."""
    work = working_dtype(a.dtype)
    product = np.asarray(np.matmul(a.astype(work, copy=False), b.astype(work, copy=False)))
    return back(product, a.dtype)


def back(product: Array, dtype: np.dtype[Any]) -> Array:
    """Bring sums of products from their working dtype to ``dtype``."""
    if dtype.kind in "iu" and product.dtype.kind == "f":
        product = product.astype(np.int64)
    return product.astype(dtype, copy=False)
