"""How long something may take: set around it, asked for inside it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

from .diagnostics import Location
from .errors import LimitError
from .forks import SAFEPOINT
from .scoped import setting

__all__ = ["check", "deadline", "ends", "overdue", "set_deadline", "watched"]

_Item = TypeVar("_Item")
_UNWATCHED = 1024


class _Deadline(NamedTuple):
    ends: float
    seconds: float


_NEVER = _Deadline(math.inf, math.inf)
_DEADLINE: ContextVar[_Deadline] = ContextVar("deadline", default=_NEVER)


def deadline(seconds: float) -> AbstractContextManager[None]:
    """Let what is inside take so long, or as long as what is around it has left, if that is less."""
    return setting(_DEADLINE, _earlier(seconds))


def set_deadline(seconds: float) -> None:
    """Let what follows in this context, which is one of its own, take so long, or what it has left."""
    _DEADLINE.set(_earlier(seconds))


def _earlier(seconds: float) -> _Deadline:
    return min(_Deadline(time.monotonic() + seconds, seconds), _DEADLINE.get())


def check(where: Location | None = None) -> None:
    """Raise if the time is up; for loops, each pass of which takes a microsecond at least.

    Here a thread may halt while another one forks, so that it is called where none is inside a library.

    Raises:
        LimitError: naming the place, if it is given.
    """
    if time.monotonic() > _DEADLINE.get().ends:
        raise overdue(where)
    if SAFEPOINT.forking is not None:
        SAFEPOINT.halt()


def watched(items: Iterable[_Item]) -> Iterator[_Item]:
    """The items, with a look at the clock every so many of them; for loops of less than a microsecond.

    Raises:
        LimitError: when the time is up.
    """
    for number, item in enumerate(items):
        if not number % _UNWATCHED:
            check()
        yield item


def ends() -> float:
    """When the time is up, on the clock of `time.monotonic`; infinite without a deadline."""
    return _DEADLINE.get().ends


def overdue(where: Location | None = None) -> LimitError:
    """What is raised when the time is up."""
    seconds = _DEADLINE.get().seconds
    return LimitError(
        f"it takes longer than {seconds:g} seconds, the limit",
        limit="seconds",
        where=where,
        hint="if that is expected, give it more: limits=ir_runtime.Limits(seconds=...), or --timeout",
    )
