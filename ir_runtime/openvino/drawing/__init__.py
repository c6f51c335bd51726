"""Draw the graph of a model as text and pictures for other programs."""
