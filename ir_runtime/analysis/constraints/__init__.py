"""Infer constraints on the lengths of a model's inputs."""
