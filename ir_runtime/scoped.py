"""Scopes: restore what was set or borrowed, also after an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

__all__ = ["NOTHING", "Scope", "inside", "nested", "setting"]

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scope:
    """What some work needs around it, as two functions: `inside` calls them, which costs little; else a context manager.

    Args:
        begin: takes a key of the work. An interrupt may come anywhere in it.
        end: takes the key, and whether the work was interrupted; undoes what `begin` did. It does nothing where that is
            done already, so that it can be called again if an interrupt came during the first call.
    """

    begin: Callable[[object], None]
    end: Callable[[object, bool], None]

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Begin, and end, as a context manager."""
        work, interrupted = object(), True
        try:
            self.begin(work)
            yield
            interrupted = False
        except Exception:
            interrupted = False
            raise
        finally:
            try:
                self.end(work, interrupted)
            except BaseException:
                self.end(work, interrupted)
                raise


def _nothing(*args: object) -> None:
    """Do nothing."""


NOTHING = Scope(_nothing, _nothing)


def inside(scopes: Sequence[Scope], function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Call a function with scopes around it: for hot code, where context managers in Python cost more than the work."""
    work, interrupted = object(), True
    try:
        for scope in scopes:
            scope.begin(work)
        result = function(*args, **named)
        interrupted = False
        return result
    except Exception:
        interrupted = False
        raise
    finally:
        try:
            for scope in scopes[::-1]:
                scope.end(work, interrupted)
        except BaseException:
            for scope in scopes[::-1]:
                scope.end(work, interrupted)
            raise


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
