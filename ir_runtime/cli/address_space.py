"""Detect an address-space limit (``ulimit -v``) that is too small to load the libraries.

Imports that run out of memory fail with misleading errors. NumPy's BLAS exits the process, or raises SIGINT,
if it cannot allocate its buffers and threads.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["check_before_numpy", "shortage"]

# Messages of the dynamic linker when it runs out of memory.
_SHORTAGES = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")


def check_before_numpy() -> None:
    """Make the first import of NumPy raise `MemoryError` if the address space is too small."""
    if _limit() is not None and "numpy" not in sys.modules:
        sys.meta_path.insert(0, _Check())


def shortage(problem: BaseException) -> str | None:
    """Return the message for an out-of-memory failure; ``None`` for any other exception."""
    if isinstance(problem, MemoryError):
        return str(problem) or "for this model"
    if not isinstance(problem, ImportError) or isinstance(problem, ModuleNotFoundError):
        return None
    limit, lines = _limit(), str(problem).strip().splitlines()
    if limit is None and not any(text in str(problem) for text in _SHORTAGES):
        return None
    detail = f": {lines[-1]}" if lines else ""
    return f"a library cannot be loaded{_within(limit)}{detail}"


def _limit() -> int | None:
    """Return the address-space limit in bytes; ``None`` if unlimited."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def _within(limit: int | None) -> str:
    return "" if limit is None else f" within {limit >> 20} MiB of address space (ulimit -v)"


class _Check:
    """Import hook that first tries ``import numpy`` in a child process."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise `MemoryError` if NumPy cannot be imported in a child process; otherwise defer to other finders."""
        if name == "numpy":
            sys.meta_path.remove(self)
            from .._util.child_process import can_import

            if not can_import(name):
                raise MemoryError(f"NumPy cannot be loaded{_within(_limit())}")
