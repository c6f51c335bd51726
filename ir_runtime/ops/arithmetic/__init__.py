"""Arithmetic, element by element and along an axis."""
