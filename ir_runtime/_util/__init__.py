"""Helpers for all packages: files, text, processes, caches."""
