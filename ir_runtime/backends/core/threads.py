"""The thread limit of a run, shared by all backends."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar

from ..._util.scoped import setting

__all__ = ["at_most", "most", "set_most"]

_MOST: ContextVar[int | None] = ContextVar("threads", default=None)


def at_most(threads: int | None) -> AbstractContextManager[None]:
    """Limit the number of threads of runs in the block; ``None`` lets backends choose."""
    return setting(_MOST, threads)


def set_most(threads: int | None) -> None:
    """Limit the number of threads of later runs in the current context (`contextvars`)."""
    _MOST.set(threads)


def most(otherwise: int) -> int:
    """Return the number of threads that the current run may use: the limit, but at most ``otherwise``."""
    threads = _MOST.get()
    return otherwise if threads is None else min(threads, otherwise)
