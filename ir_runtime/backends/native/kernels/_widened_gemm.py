"""Products of few rows of f32 with a matrix that is packed in bf16."""

from __future__ import annotations

from ._gemm_kernel import f32_block, gemm_task
from ._widened_tile import widened_panel

__all__ = ["WIDENED_GEMM"]

WIDENED_GEMM = gemm_task("_widened_gemm", f32_block(widened_panel))
"""Multiplies rows of f32 with a matrix that is packed in bf16; the result and the extra tensors are f32."""
