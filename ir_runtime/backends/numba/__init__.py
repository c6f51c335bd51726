"""Kernels that numba compiles for the machine."""
