"""Whether hints are for users of the command line, who have options, or of Python, who have parameters."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar

from .scoped import setting

__all__ = ["for_command_line", "on_command_line"]

_ACTIVE: ContextVar[bool] = ContextVar("on_command_line", default=False)


def on_command_line() -> bool:
    """Return whether hints should name options of the command line."""
    return _ACTIVE.get()


def for_command_line() -> AbstractContextManager[None]:
    """Let hints name options of the command line within a ``with`` statement."""
    return setting(_ACTIVE, True)
