"""Runs networks on the kernels of each target, those of AArch64 in an emulated machine, and compares the results."""
