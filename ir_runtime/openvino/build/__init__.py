"""Build models from Python: operations, nodes, and the graph that is derived from them."""
