"""How many threads a run may use: one setting, which every backend keeps to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["at_most", "most"]

_MOST: ContextVar[int | None] = ContextVar("threads", default=None)


@contextmanager
def at_most(threads: int | None) -> Iterator[None]:
    """Let the run inside use so many threads; ``None`` for as many as its backend likes."""
    token = _MOST.set(threads)
    try:
        yield
    finally:
        _MOST.reset(token)


def most(otherwise: int) -> int:
    """How many threads the run that is going on may use, of those that there are."""
    threads = _MOST.get()
    return otherwise if threads is None else min(threads, otherwise)
