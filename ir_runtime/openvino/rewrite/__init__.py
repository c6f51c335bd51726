"""Patterns of nodes, and passes that rewrite models where they match."""
