"""Analyses of a graph between reading and running it: inference, validation, constraints and costs."""
