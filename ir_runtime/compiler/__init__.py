"""Transformations of a graph before it is planned, which do not change its results."""
