"""Arithmetic of kernels, emulated in NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ir_runtime.backends.native.codegen.target import TARGET
from ir_runtime.ir.tensor import Array

__all__ = ["multiply_add", "rounded_to_bf16"]


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
