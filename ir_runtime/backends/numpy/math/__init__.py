"""What kernels share: matrix products, activation functions, quantized matrices."""
