"""Planned NumPy: the same results as the reference, sooner."""

from __future__ import annotations

from . import Backend

__all__ = ["backend"]

backend = Backend("numpy")
