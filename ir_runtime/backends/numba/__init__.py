"""The numba backend: kernels that are compiled for the machine.

The innermost loops are LLVM IR for SIMD vectors, on activations in NHWC layout, as in the backend ``numpy``, to which
this one falls back.

Kernel modules are imported when a model has their operations: `_index` lists them. The kernels for quantized weights
are imported at once, as they are tried first.
"""

from __future__ import annotations

from ._backend import backend
from .kernels import quantized_matmul

__all__ = ["backend", "quantized_matmul"]
