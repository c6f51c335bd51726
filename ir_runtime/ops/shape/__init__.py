"""Shapes: what they are, and other shapes for the same elements."""
