"""Linear algebra that kernels share: GEMM with packed matrices, windows, quantized matrices."""
