"""Analyses of a graph before it runs: inference, validation, constraints and costs."""
