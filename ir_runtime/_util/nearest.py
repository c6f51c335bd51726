"""Suggestions of the most similar known name for an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from itertools import islice

from .scoped import setting

__all__ = ["did_you_mean", "limit_lookups", "nearest", "suggestion"]

# Names are compared letter by letter, and a file may have many and long ones: these constants bound the work.
_LONGEST = 100
"""Maximum number of characters of a name to compare."""
_AMONG = 10_000
"""Maximum number of known names to compare."""
_OFTEN = 100
"""Maximum number of lookups while a file is read."""


class _Left:
    """A mutable count of the lookups left."""

    def __init__(self, count: int) -> None:
        self.count = count


_LEFT: ContextVar[_Left | None] = ContextVar("left", default=None)


def limit_lookups() -> AbstractContextManager[None]:
    """Limit the number of lookups within a ``with`` statement."""
    return setting(_LEFT, _LEFT.get() or _Left(_OFTEN))


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar of several names, or ``None`` if none is similar.

    >>> nearest("Convolutoin", ["Concat", "Convolution"])
    'Convolution'
    """
    left = _LEFT.get()
    if len(name) > _LONGEST or (left is not None and left.count <= 0):
        return None
    if left is not None:
        left.count -= 1
    among = [candidate for candidate in islice(names, _AMONG) if len(candidate) <= _LONGEST]
    return next(iter(difflib.get_close_matches(name, among, n=1)), None)


def suggestion(name: str | None, *, before: str = "", after: str = "") -> str:
    """Return a hint that a name may have been meant; empty without a name.

    Args:
        name: the name, if there is one.
        before: the text before the hint.
        after: the text after the hint.

    >>> suggestion("Relu"), suggestion(None)
    ("did you mean 'Relu'?", '')
    """
    return "" if name is None else f"{before}did you mean {name!r}?{after}"


def did_you_mean(name: str, names: Iterable[str], *, before: str = "", after: str = "") -> str:
    """Return a hint that the most similar of several names may have been meant; empty if none is similar.

    >>> f"unknown mode 'linaer'{did_you_mean('linaer', ['linear', 'cubic'], before='; ')}"
    "unknown mode 'linaer'; did you mean 'linear'?"
    """
    return suggestion(nearest(name, names), before=before, after=after)
