"""The host table: words that a library needs from its process."""

from __future__ import annotations

__all__ = ["TABLE", "WORDS"]

TABLE = "ir_runtime_host"
"""The symbol of the table."""

WORDS = "allocate", "release", "yield", "log", "array_data"
"""Its words: the addresses of four C functions, and the offset of the data pointer in NumPy array objects."""
