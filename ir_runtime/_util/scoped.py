"""Scopes that restore settings, resources and the garbage collector at their end, even after an interrupt."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

__all__ = ["NOTHING", "Scope", "inside", "enter_all", "no_collection", "setting"]

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scope:
    """A context manager as two functions, which `inside` calls without the overhead of a ``with`` statement.

    Args:
        begin: enters the scope, given a key of the work. An interrupt may come anywhere in it.
        end: leaves the scope, given the key and whether the work was interrupted. It must be idempotent, as it is called
            again if an interrupt came during the first call.
    """

    begin: Callable[[object], None]
    end: Callable[[object, bool], None]

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Enter the scope as a context manager."""
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


def inside(scopes: Sequence[Scope], function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function inside scopes, faster than with context managers; return its result.

    The scopes begin in order and end in reverse order, with the same key of the work.
    """
    work, interrupted = object(), True
    try:
        for scope in scopes:
            scope.begin(work)
        result = function(*args, **kwargs)
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

    An interrupt may come after any call, so a single call sets the variable and stores the token that restores it. If an
    interrupt prevents the statement from ending, the variable is restored when the exception is released.
    """
    tokens: list[Token[T]] = []
    try:
        tokens.extend(map(variable.set, (value,)))
        yield
    finally:
        if tokens:
            try:  # noqa: SIM105  another interrupt may come inside `suppress`
                variable.reset(tokens[0])
            except ValueError:
                pass  # it was set in a context that has ended


@contextmanager
def enter_all(enter: Sequence[Callable[[], AbstractContextManager[object]]]) -> Iterator[None]:
    """Enter several context managers, each inside the previous one, for the block.

    Unlike `contextlib.ExitStack`, it does not keep the managers alive by a reference cycle after an interrupt.

    Args:
        enter: functions that return the context managers; each is called when the previous manager has been entered.
    """
    if not enter:
        yield
        return
    with enter[0](), enter_all(enter[1:]):
        yield


@contextmanager
def no_collection() -> Iterator[None]:
    """Disable garbage collection while most new objects stay alive: it would find nothing, and cost up to 10 % of the time.

    Afterwards, all objects count as old; otherwise, the next collection would visit every new one.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            _make_old()
            gc.enable()


_is_frozen = False
"""Whether this program is known to use `gc.freeze`. Then this is not checked again, as Python counts all frozen objects."""


def _make_old() -> None:
    """Move all objects to the oldest generation, unless a program uses `gc.freeze`."""
    global _is_frozen
    _is_frozen = _is_frozen or gc.get_freeze_count() > 0
    if not _is_frozen:
        gc.freeze()
        gc.unfreeze()
