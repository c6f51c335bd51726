"""Model files: reading XML and weights into a graph, and writing them back."""
