"""Helpers that the NumPy and the native backend share: memory layouts, post-ops, quantization, and the control of BLAS threads."""
