"""Fast kernels made of calls of NumPy."""
