"""A thread pool for kernels made of calls of NumPy, and the threads of BLAS."""
