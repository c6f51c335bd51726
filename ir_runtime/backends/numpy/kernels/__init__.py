"""Kernels that call NumPy."""
