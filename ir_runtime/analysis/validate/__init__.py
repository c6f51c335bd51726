"""Checks of a model beyond type inference."""
