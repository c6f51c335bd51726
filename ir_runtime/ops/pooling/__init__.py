"""Pooling: reductions over windows."""
