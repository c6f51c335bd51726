"""Context managers that restore what they set, also after an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from typing import TypeVar

__all__ = ["nested", "setting"]

T = TypeVar("T")


@contextmanager
def setting(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set a context variable within a ``with`` statement.

    An interrupt may come after any call, also between setting the variable and keeping the token that restores
    it. So one call does both. Where an interrupt keeps the statement from ending, the variable is restored when the
    exception is dropped.
    """
    tokens: list[Token[T]] = []
    try:
        tokens.extend(map(variable.set, (value,)))
        yield
    finally:
        if tokens:
            try:  # noqa: SIM105  `suppress` is written in Python, too, where another interrupt may come
                variable.reset(tokens[0])
            except ValueError:
                pass  # it was set in a context that has ended meanwhile


@contextmanager
def nested(enter: Sequence[Callable[[], AbstractContextManager[object]]]) -> Iterator[None]:
    """Enter several context managers, each inside the one before.

    As `contextlib.ExitStack`, which after an interrupt keeps what it has entered alive by a cycle of references.
    """
    if not enter:
        yield
        return
    with enter[0](), nested(enter[1:]):
        yield
