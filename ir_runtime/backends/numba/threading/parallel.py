"""How many threads share a layer.

One set of threads only: a team does the work of a run, while the numpy backend keeps BLAS to one thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar, copy_context
from functools import cache
from threading import get_ident
from typing import NamedTuple

from ....forks import in_child
from ....ir.tensor import Array
from ....scoped import setting
from ...core.threads import most
from .pool import Team, borrowed, given_back
from .pool import sharing as _sharing

__all__ = ["running", "share", "threads"]


class _Run(NamedTuple):
    """What the run that is going on has; other threads may inherit the variable, but never the team."""

    threads: int = 0
    team: Team | None = None
    thread: int = 0


_ALONE = _Run()
_RUN: ContextVar[_Run] = ContextVar("run", default=_ALONE)


def _team() -> Team | None:
    """The team of the run of this thread."""
    run = _RUN.get()
    return run.team if run.thread == get_ident() else None


@cache
def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


in_child(_cores.cache_clear)


def threads() -> int:
    """How many threads share a layer of the run that is going on."""
    return _RUN.get().threads or most(_cores())


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Around a run: a team that helps.

    Only a run that succeeds gives its team back. Another's ends when nobody has it any more: what holds the
    error of an interrupted run holds its team, too, and later runs must not be left with both.
    """
    team, count = _team(), most(_cores())
    fresh = borrowed(count - 1) if count > 1 and team is None else None
    with setting(_RUN, _Run(count, fresh or team, get_ident())):
        if fresh is None:
            yield
            return
        try:
            fresh.begin()
            yield
        finally:
            fresh.end()
        given_back(fresh)


def share(worker: int, job: Array, out: Array, a: Array, b: Array, c: Array, threads: int) -> None:
    """Let so many threads do a worker's units; ``NOTHING`` stands for what it does not read.

    All arrays are contiguous: kernels are given addresses only.
    """
    if threads <= 1:
        _sharing()(0, worker, job, out, a, b, c, 1)
    elif (team := _team()) is not None:
        _sharing()(team.address, worker, job, out, a, b, c, threads)
    else:  # outside runs, as when weights are packed
        copy_context().run(_share_alone, worker, job, out, a, b, c, threads)


def _share_alone(worker: int, job: Array, out: Array, a: Array, b: Array, c: Array, threads: int) -> None:
    with running():
        team = _team()
        _sharing()(team.address if team else 0, worker, job, out, a, b, c, threads if team else 1)
