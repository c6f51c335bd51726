"""Changes to a graph that leave its results alone, made before it is planned."""
