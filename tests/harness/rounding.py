"""Arithmetic of kernels, emulated in NumPy."""

from __future__ import annotations

from typing import Any

import llvmlite.binding
import numpy as np

from ir_runtime.ir.tensor import Array

__all__ = ["multiply_add"]


def multiply_add(a: Array, b: Any, c: Any) -> Array:
    """Return ``a * b + c`` as f32, rounded once where the processor can; no product of f32 is rounded in f64.

    LLVM contracts multiplications and additions whatever vectors they are of.
    """
    wide = a.astype(np.float64) * np.float64(b)
    if not llvmlite.binding.get_host_cpu_features().get("fma"):
        wide = wide.astype(np.float32).astype(np.float64)
    found: Array = (wide + np.float64(c)).astype(np.float32)
    return found
