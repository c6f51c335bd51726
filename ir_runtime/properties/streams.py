"""How many runs are expected at once: each has its share of the threads."""

from __future__ import annotations

from ._property import Property

__all__ = ["num"]

num = Property("NUM_STREAMS")
