"""The NumPy backend: kernels that call NumPy, several times faster than the reference.

4-D feature maps are stored channels last (NHWC) and passed on as ``[N, C, H, W]`` views, so that operations without a
kernel work unchanged. Kernels pack constants when the model is compiled, and apply post-ops (bias, residual, activation) to
their results in place.

A kernel module is imported when a model contains one of its operations, as listed in `_index`.
"""

from __future__ import annotations

from ..common.kept_memory import keep_freed_memory
from ._backend import backend

__all__ = ["backend"]

keep_freed_memory()
