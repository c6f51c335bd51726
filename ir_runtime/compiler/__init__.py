"""Compilation of a graph to an execution plan, by passes that preserve its results."""
