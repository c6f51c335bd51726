"""Fusion patterns that backends share."""
