"""The host's table of a library: words that it needs of the process that loads it."""

from __future__ import annotations

__all__ = ["TABLE", "WORDS"]

TABLE = "ir_runtime_host"
"""The symbol of the table."""

WORDS = "allocate", "release", "yield", "log", "array_data"
"""Its words: addresses of four C functions, and the offset of the address of the data in NumPy's array objects."""
