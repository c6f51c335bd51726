"""Layers that are refused, one file per group of operations, and what is said about them."""
