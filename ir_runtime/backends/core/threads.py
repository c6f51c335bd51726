"""The number of threads that a run may use: one setting for all backends."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar

from ..._util.scoped import setting

__all__ = ["at_most", "most", "set_most"]

_MOST: ContextVar[int | None] = ContextVar("threads", default=None)


def at_most(threads: int | None) -> AbstractContextManager[None]:
    """Limit the threads of runs in the block; ``None`` lets backends choose."""
    return setting(_MOST, threads)


def set_most(threads: int | None) -> None:
    """Limit the threads in the rest of the current context (`contextvars`)."""
    _MOST.set(threads)


def most(otherwise: int) -> int:
    """Return the number of existing threads that the current run may use."""
    threads = _MOST.get()
    return otherwise if threads is None else min(threads, otherwise)
