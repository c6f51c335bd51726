"""Helpers that any package may use: files, text, processes, caches."""
