"""The progress of long tasks, and the partial results of interrupted ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias

from .._util.scoped import setting

__all__ = ["Interrupted", "Show", "Skip", "reached", "showing", "skipped", "stage"]

Show: TypeAlias = Callable[[float, str], None]
"""Takes which part is done, from 0 to 1, and the layer that is computed."""
Skip: TypeAlias = Callable[[float], None]
"""Takes the length of a part that was done before, so that it takes no time now."""


class Interrupted(KeyboardInterrupt):
    """An interrupt (Ctrl-C) of a task with a partial result.

    >>> from ir_runtime import debug
    >>> try:
    ...     raise debug.Interrupted("what is known by then")
    ... except KeyboardInterrupt as stopped:
    ...     stopped.partial
    'what is known by then'

    Args:
        partial: the report, which says that it is partial.
    """

    def __init__(self, partial: Any) -> None:
        super().__init__("interrupted")
        self.partial = partial


class _Stage(NamedTuple):
    show: Show
    skip: Skip
    start: float
    end: float


_STAGE: ContextVar[_Stage | None] = ContextVar("stage", default=None)


@contextmanager
def showing(show: Show, skip: Skip = lambda _: None) -> Iterator[None]:
    """Report progress of functions in the block, and of skipped parts."""
    with setting(_STAGE, _Stage(show, skip, 0.0, 1.0)):
        yield


@contextmanager
def stage(start: float, end: float) -> Iterator[None]:
    """Scale the progress of the block to a range from 0 to 1."""
    if (outer := _STAGE.get()) is None:
        yield
        return
    length = outer.end - outer.start
    inner = outer._replace(start=outer.start + start * length, end=outer.start + end * length)
    with setting(_STAGE, inner):
        yield


def reached(part: float, item: str = "") -> None:
    """Report progress within the stage."""
    if (now := _STAGE.get()) is not None:
        now.show(now.start + part * (now.end - now.start), item)


def skipped() -> None:
    """Mark the stage as done earlier, so that it does not affect the estimated remaining time."""
    if (now := _STAGE.get()) is not None:
        now.skip(now.end - now.start)
        reached(1)
