"""A thread pool for kernels that call NumPy."""
