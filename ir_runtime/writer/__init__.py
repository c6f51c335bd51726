"""Graphs to XML and weights: the other direction of ``frontend``."""
