"""Find the nearest of known names, for hints."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from itertools import islice

from .scoped import setting

__all__ = ["limited_lookups", "nearest"]

# Names are compared letter by letter, and a file may have as many and as long ones as it likes: longer ones are not searched
# ones than this, among more, or, where a file is read, again and again.
_LONGEST = 100
_AMONG = 10_000
_OFTEN = 100


class _Left:
    """How many more lookups are allowed."""

    def __init__(self, count: int) -> None:
        self.count = count


_LEFT: ContextVar[_Left | None] = ContextVar("left", default=None)


def limited_lookups() -> AbstractContextManager[None]:
    """Limit the number of lookups within a ``with`` statement."""
    return setting(_LEFT, _LEFT.get() or _Left(_OFTEN))


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is most similar to another one, if any.

    >>> nearest("Convolutoin", ["Concat", "Convolution"])
    'Convolution'
    """
    left = _LEFT.get()
    if len(name) > _LONGEST or (left is not None and left.count <= 0):
        return None
    if left is not None:
        left.count -= 1
    among = [each for each in islice(names, _AMONG) if len(each) <= _LONGEST]
    return next(iter(difflib.get_close_matches(name, among, n=1)), None)
