"""Deadlines of the current context, and checks that they have not passed."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TypeVar

from ..diagnostics import Location
from ..errors import LimitError
from .command_line import on_command_line
from .forks import SAFEPOINT
from .scoped import setting

__all__ = [
    "check",
    "deadline",
    "current_deadline",
    "deadline_error",
    "set_deadline",
    "check_periodically",
    "is_far",
    "without_deadline",
]

_Item = TypeVar("_Item")
_CHECK_INTERVAL = 1024
_NEAR = 0.1
"""Time limits below this, in seconds, may end before the first step of a run."""


_NEVER = math.inf, math.inf
_DEADLINE: ContextVar[tuple[float, float]] = ContextVar("deadline", default=_NEVER)
"""The deadline on the clock of `time.monotonic`, and the seconds that it was set for."""


def deadline(seconds: float, since: float | None = None) -> AbstractContextManager[None]:
    """Set a deadline within a ``with`` statement; an earlier enclosing deadline stays in effect.

    Args:
        seconds: the allowed time.
        since: the start, on the clock of `time.monotonic`; by default, now.
    """
    return setting(_DEADLINE, _earlier(seconds, since))


def without_deadline() -> AbstractContextManager[None]:
    """Suspend deadlines within a ``with`` statement, for work that must be done even after one has passed."""
    return setting(_DEADLINE, _NEVER)


def set_deadline(seconds: float) -> float:
    """Set a deadline for the rest of the current context, unless an earlier one is set; return the one in effect."""
    earlier = _earlier(seconds)
    _DEADLINE.set(earlier)
    return earlier[0]


def is_far(seconds: float) -> bool:
    """Return whether no deadline is set, and a limit of ``seconds`` cannot pass before the first step of a run."""
    return seconds >= _NEAR and _DEADLINE.get() is _NEVER


def _earlier(seconds: float, since: float | None = None) -> tuple[float, float]:
    enclosing, ends = _DEADLINE.get(), (time.monotonic() if since is None else since) + seconds
    return (ends, seconds) if ends < enclosing[0] else enclosing


def check(where: Location | None = None) -> None:
    """Raise if the deadline has passed. Call it in loops whose iterations take at least a microsecond.

    It is also a safepoint, at which a thread halts while another one forks, so call it only outside of libraries.

    Raises:
        LimitError: if the deadline has passed; it has the location ``where``, if given.
    """
    if time.monotonic() > _DEADLINE.get()[0]:
        raise deadline_error(where)
    if SAFEPOINT.forking is not None:
        SAFEPOINT.halt()


def check_periodically(items: Iterable[_Item], interval: int = _CHECK_INTERVAL) -> Iterator[_Item]:
    """Yield the items, and check the deadline at intervals. Use it in loops with short iterations.

    Args:
        items: the items.
        interval: the number of items between two checks.

    Raises:
        LimitError: if the deadline has passed.
    """
    for number, item in enumerate(items):
        if not number % interval:
            check()
        yield item


def current_deadline() -> float:
    """Return the deadline on the clock of `time.monotonic`; infinity if none is set."""
    return _DEADLINE.get()[0]


def deadline_error(where: Location | None = None) -> LimitError:
    """Return the error to raise when the deadline has passed, with the location ``where`` if given."""
    _, seconds = _DEADLINE.get()
    return LimitError(
        f"it takes longer than {seconds:g} seconds, the limit",
        limit="seconds",
        where=where,
        hint="if that is expected, raise the limit: --timeout SECONDS"
        if on_command_line()
        else "if that is expected, raise the limit: limits=ir_runtime.Limits(seconds=...), or --timeout",
    )
