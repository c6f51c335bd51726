"""Kernels that numba compiles for the machine.

The innermost loops are written in LLVM's language for vectors, on activations that are stored with
their channels last, as in the backend ``numpy``, on which this one falls back.
"""

from __future__ import annotations

from . import (
    attention,
    compressed,
    convolution,
    depthwise,
    elementwise,
    embedding,
    interpolation,
    joining,
    movement,
    normalization,
    pooling,
    products,
    recurrence,
    spelled,
    suppression,
)
from ._backend import backend

__all__ = [
    "attention",
    "backend",
    "compressed",
    "convolution",
    "depthwise",
    "elementwise",
    "embedding",
    "interpolation",
    "joining",
    "movement",
    "normalization",
    "pooling",
    "products",
    "recurrence",
    "spelled",
    "suppression",
]
