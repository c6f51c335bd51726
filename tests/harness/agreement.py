"""How far results of two sides may differ, and what rounding to a type does."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ir_runtime.backends.native.codegen.target import TARGET
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

__all__ = ["assert_agree", "multiply_add", "rounded_to_bf16"]

# Relative to a number, and to the largest of a result: sums of thousands of products have few digits of their
# own near zero. f16 and bf16 have about 3 and 2 digits, f64 nearly 16; numbers of 8 bits are equal.
RTOL = {"f64": 1e-10, "f32": 1e-4, "f16": 2e-3, "bf16": 1.6e-2}
FLOOR = {"f64": 1e-11, "f32": 5e-5, "f16": 2e-3, "bf16": 1.6e-2}


def assert_agree(found: Array, wanted: Array, backend: str, atol: float = 0.0) -> None:
    """Fail unless a result is that of the reference: reals nearly, all else exactly.

    Args:
        found: what a fast backend gave.
        wanted: what the reference gave.
        backend: the name of the fast one.
        atol: by how much numbers may differ at least.

    Raises:
        AssertionError: if they differ.
    """
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), backend
    element = ElementType.from_dtype(found.dtype) if found.dtype != object else ElementType.string
    if not element.real:
        np.testing.assert_array_equal(found, wanted, err_msg=backend)
        return
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    floor = max(atol, FLOOR.get(element.label, 0) * np.abs(b[np.isfinite(b)]).max(initial=0.0))
    np.testing.assert_allclose(a, b, rtol=RTOL.get(element.label, 0), atol=floor, err_msg=backend)


def rounded_to_bf16(x: Array) -> Array:
    """Return f32 rounded to the nearest bf16, halves to even."""
    found: Array = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    return found


def multiply_add(a: Array, b: Any, c: Any) -> Array:
    """Return ``a * b + c`` as f32, rounded once where the processor can; no product of f32 is rounded in f64.

    LLVM contracts multiplications and additions whatever vectors they are of.
    """
    wide = a.astype(np.float64) * np.float64(b)
    if not (TARGET.is_arm or TARGET.has("fma")):
        wide = wide.astype(np.float32).astype(np.float64)
    found: Array = (wide + np.float64(c)).astype(np.float32)
    return found
