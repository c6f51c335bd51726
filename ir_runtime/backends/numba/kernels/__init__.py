"""Kernels in machine code."""
