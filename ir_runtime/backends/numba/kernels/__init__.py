"""Kernels that numba and llvmlite compile to machine code."""
