"""Refused layers and their messages, one file per group of operations."""
