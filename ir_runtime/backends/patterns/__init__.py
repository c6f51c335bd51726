"""Patterns that all backends share."""
