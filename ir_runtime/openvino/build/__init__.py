"""Construction of models in Python: factories of operations, nodes with bodies, and the graph derived from nodes."""
