"""Tensors made from a few numbers: ranges, identity matrices, random numbers."""
