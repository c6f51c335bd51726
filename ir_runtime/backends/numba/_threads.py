"""How many threads share a layer.

One set of threads only: while a plan runs, BLAS keeps to one thread, and a team does the rest.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from functools import cache

from ...ir.tensor import Array
from ..numpy._threads import single_blas
from ..threads import most
from ._team import borrowed, given_back
from ._team import sharing as _sharing

__all__ = ["running", "share", "threads"]


class _Run(threading.local):
    """What the run of this thread has."""

    threads: int = 0
    team: int = 0
    """The address of its team, if it has one."""


_RUN = _Run()


@cache
def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """How many threads share a layer of the run that is going on."""
    return _RUN.threads or most(_cores())


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Around a run: BLAS on one thread, and a team that helps."""
    before = _RUN.threads, _RUN.team
    count = most(_cores())
    team = borrowed(count - 1) if count > 1 and not _RUN.team else None
    with single_blas():
        try:
            _RUN.threads = count
            if team is not None:
                _RUN.team = team.address
                team.begin()
            yield
        finally:
            _RUN.threads, _RUN.team = before
            if team is not None:
                team.end()
                given_back(team)


def share(worker: int, job: Array, out: Array, a: Array, b: Array, c: Array, threads: int) -> None:
    """Let so many threads do a worker's units; ``NOTHING`` stands for what it does not read.

    All arrays are contiguous: kernels are given addresses only.
    """
    if threads > 1 and not _RUN.team:  # outside runs, as when weights are packed
        with running():
            _sharing()(_RUN.team, worker, job, out, a, b, c, threads)
        return
    _sharing()(_RUN.team, worker, job, out, a, b, c, threads)
