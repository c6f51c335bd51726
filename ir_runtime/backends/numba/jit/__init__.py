"""Compile kernels, keep them in a cache, and load them."""
