"""State of the command line: its start, and whether hints name its options or parameters in Python."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from contextvars import ContextVar

from .scoped import setting

__all__ = ["for_command_line", "on_command_line", "start_of_program"]

_STARTED: ContextVar[float | None] = ContextVar("started", default=None)


def on_command_line() -> bool:
    """Return whether hints should name options of the command line."""
    return _STARTED.get() is not None


def start_of_program() -> float | None:
    """Return the start of the program on the clock of `time.monotonic`, or ``None`` if it only imports this package."""
    return _STARTED.get()


def for_command_line(started: float | None = None) -> AbstractContextManager[None]:
    """Let hints name options of the command line within a ``with`` statement.

    Args:
        started: when the program started, on the clock of `time.monotonic`; by default, now.
    """
    return setting(_STARTED, time.monotonic() if started is None else started)
