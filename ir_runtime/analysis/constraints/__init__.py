"""The constraint solver: what must hold of the lengths of a model's inputs."""
