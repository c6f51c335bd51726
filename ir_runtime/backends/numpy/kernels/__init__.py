"""Kernels made of NumPy calls."""
