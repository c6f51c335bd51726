"""Sparse operations: sums over rows of embedding tables, and sparse tensors without empty rows."""
