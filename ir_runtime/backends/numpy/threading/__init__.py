"""A thread pool for kernels made of NumPy calls."""
