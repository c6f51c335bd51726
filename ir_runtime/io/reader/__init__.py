"""Readers of whole models, and of fragments as the specification prints them."""
