"""Layers that mean one thing together, recognised once for every backend."""
