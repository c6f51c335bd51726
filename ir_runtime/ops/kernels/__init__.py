"""NumPy kernels shared by operations and backends, independent of the IR."""
