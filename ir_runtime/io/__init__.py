"""Files of models: read XML and weights into a graph, and write them back."""
