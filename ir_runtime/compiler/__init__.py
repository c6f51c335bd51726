"""Transformations of a graph before planning that preserve its results."""
