"""How far a long piece of work is, and what an interrupt leaves of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias

from ..scoped import setting

__all__ = ["Interrupted", "Show", "reached", "showing", "stage"]

Show: TypeAlias = Callable[[float, str], None]
"""Takes which part is done, from 0 to 1, and the layer that is computed."""


class Interrupted(KeyboardInterrupt):
    """An interrupt (Ctrl-C) of something that has found a part of its answer.

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
    start: float
    end: float


_STAGE: ContextVar[_Stage | None] = ContextVar("stage", default=None)


@contextmanager
def showing(show: Show) -> Iterator[None]:
    """Tell a function of all progress in the block."""
    with setting(_STAGE, _Stage(show, 0.0, 1.0)):
        yield


@contextmanager
def stage(start: float, end: float) -> Iterator[None]:
    """Count the progress of the block as the part of the work between two numbers from 0 to 1."""
    if (outer := _STAGE.get()) is None:
        yield
        return
    length = outer.end - outer.start
    with setting(_STAGE, _Stage(outer.show, outer.start + start * length, outer.start + end * length)):
        yield


def reached(part: float, item: str = "") -> None:
    """Say which part of the stage is done."""
    if (now := _STAGE.get()) is not None:
        now.show(now.start + part * (now.end - now.start), item)
