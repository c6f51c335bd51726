"""Planned NumPy: the same results as the reference, sooner.

4-D activations are stored with their channels last and passed on as ``[N, C, H, W]`` views, so that
operations without a kernel here work unchanged. Kernels take constants apart once, when the model is
compiled, and finish their fresh results in place: bias, residual and activation of the layers that
read nothing else.

Modules with kernels are imported when a model has their operations: `_index` lists them. Those that take
compressed weights are asked before.
"""

from __future__ import annotations

from ..common.layout import keep_freed_memory
from ._backend import backend
from .kernels import embedding, quantized_matmul

__all__ = ["backend", "embedding", "quantized_matmul"]

keep_freed_memory()
