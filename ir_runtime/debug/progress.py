"""Report the progress of long tasks, and partial results of interrupted ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias

from .._util.deadline import without_deadline
from .._util.scoped import setting
from ..errors import LimitError

__all__ = [
    "STOPS",
    "Interrupted",
    "Show",
    "Skip",
    "report_progress",
    "TimedOut",
    "is_stop",
    "showing",
    "skip_stage",
    "stage",
    "attach_partial",
]

Show: TypeAlias = Callable[[float, str], None]
"""A function of the progress, from 0 to 1, and the current layer."""
Skip: TypeAlias = Callable[[float], None]
"""A function of the fraction of work that was restored from the cache."""


class Interrupted(KeyboardInterrupt):
    """A `KeyboardInterrupt` (Ctrl-C) with the partial result of the interrupted task.

    >>> from ir_runtime import debug
    >>> try:
    ...     raise debug.Interrupted("what is known by then")
    ... except KeyboardInterrupt as stopped:
    ...     stopped.partial
    'what is known by then'

    Args:
        partial: the partial report.
    """

    def __init__(self, partial: Any) -> None:
        super().__init__("interrupted")
        self.partial = partial


class TimedOut(LimitError):  # noqa: N818 - as Interrupted
    """The time limit was reached; ``partial`` has the results so far.

    >>> from ir_runtime import debug
    >>> try:
    ...     raise debug.TimedOut("what is known by then", "it takes too long", limit="seconds")
    ... except debug.TimedOut as stopped:
    ...     stopped.partial
    'what is known by then'

    Args:
        partial: the partial report.
        message: the message.
        how: further arguments of `LimitError`.
    """

    def __init__(self, partial: Any, message: str, **how: Any) -> None:
        super().__init__(message, **how)
        self.partial = partial


STOPS = (KeyboardInterrupt, LimitError)
"""Exceptions that end long work early."""


def is_stop(reason: BaseException) -> bool:
    """Return whether an exception is an interrupt or the time limit, after which work can be resumed."""
    return isinstance(reason, KeyboardInterrupt) or getattr(reason, "limit", "") == "seconds"


def attach_partial(reason: BaseException, partial: Callable[[], Any]) -> BaseException:
    """Attach a partial report to an interrupt or the time limit; return other exceptions unchanged.

    Args:
        reason: the exception that ended the work.
        partial: returns the partial report.
    """
    if isinstance(reason, KeyboardInterrupt):
        return Interrupted(partial())
    if not isinstance(reason, LimitError) or not is_stop(reason):
        return reason
    with without_deadline():
        return TimedOut(
            partial(),
            reason.message,
            limit=reason.limit,
            code=reason.code,
            where=reason.where,
            hint=reason.hint,
        )


class _Stage(NamedTuple):
    show: Show
    skip: Skip
    start: float
    end: float


_STAGE: ContextVar[_Stage | None] = ContextVar("stage", default=None)


@contextmanager
def showing(show: Show, skip: Skip = lambda _: None) -> Iterator[None]:
    """Call ``show`` with the progress of functions in the block, and ``skip`` with fractions done earlier."""
    with setting(_STAGE, _Stage(show, skip, 0.0, 1.0)):
        yield


@contextmanager
def stage(start: float, end: float) -> Iterator[None]:
    """Let the progress of the block advance the enclosing stage from the fraction ``start`` to ``end``, both from 0 to 1."""
    if (outer := _STAGE.get()) is None:
        yield
        return
    length = outer.end - outer.start
    inner = outer._replace(start=outer.start + start * length, end=outer.start + end * length)
    with setting(_STAGE, inner):
        yield


def report_progress(part: float, item: str = "") -> None:
    """Report progress in the current stage.

    Args:
        part: the finished fraction, from 0 to 1.
        item: the name of the current item, such as a layer.
    """
    if (now := _STAGE.get()) is not None:
        now.show(now.start + part * (now.end - now.start), item)


def skip_stage() -> None:
    """Mark the current stage as done in an earlier run, so that it does not count for the time estimate."""
    if (now := _STAGE.get()) is not None:
        now.skip(now.end - now.start)
        report_progress(1)
