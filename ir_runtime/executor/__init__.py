"""Execution: compile a graph to a plan, run it, and observe runs."""
