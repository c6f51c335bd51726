"""Poolings: many elements under a window become one."""
