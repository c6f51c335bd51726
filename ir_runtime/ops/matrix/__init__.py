"""Matrices: products, sums over named axes, inverses."""
