"""Kernels that numba compiles for the machine.

The innermost loops are written in LLVM's language for vectors, on activations that are stored with
their channels last, as in the backend ``numpy``, on which this one falls back.

Modules with kernels are imported when a model has their operations: `_index` lists them. What multiplies
compressed weights is asked before.
"""

from __future__ import annotations

from ._backend import backend
from .kernels import quantized_matmul

__all__ = ["backend", "quantized_matmul"]
