"""Parallel execution of tasks: how many threads work on a layer, and the thread pool of a run.

The thread pool of a run does all of its work, while the numpy backend keeps BLAS to one thread.
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
from .pool import ThreadPool, acquire, dispatcher, release

__all__ = ["parallel_for", "running", "threads"]


class _Run(NamedTuple):
    """The current run. Other threads may inherit the context variable, but never use its pool."""

    threads: int = 0
    pool: ThreadPool | None = None
    thread: int = 0


_NO_RUN = _Run()
_RUN: ContextVar[_Run] = ContextVar("run", default=_NO_RUN)


def _pool() -> ThreadPool | None:
    """Return the pool of the run of this thread."""
    run = _RUN.get()
    return run.pool if run.thread == get_ident() else None


@cache
def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


in_child(_cores.cache_clear)


def threads() -> int:
    """Return how many threads work on a layer of the current run."""
    return _RUN.get().threads or most(_cores())


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Provide a thread pool for a run.

    An interrupted run does not return its pool for reuse: it ends with its last reference, which the traceback of
    the interrupt may hold, and later runs must not end up with both.
    """
    pool, count = _pool(), most(_cores())
    fresh = acquire(count - 1) if count > 1 and pool is None else None
    with setting(_RUN, _Run(count, fresh or pool, get_ident())):
        if fresh is None:
            yield
            return
        try:
            fresh.begin_run()
            yield
        except Exception:
            fresh.end_run()
            release(fresh)
            raise
        except BaseException:
            fresh.end_run()
            raise
        fresh.end_run()
        release(fresh)


def parallel_for(task: int, job: Array, out: Array, a: Array, b: Array, c: Array, threads: int) -> None:
    """Run the units of a task on ``threads`` threads; pass `UNUSED` for arrays that it does not read.

    All arrays must be contiguous: kernels get addresses only.
    """
    if threads <= 1:
        dispatcher()(0, task, job, out, a, b, c, 1)
    elif (pool := _pool()) is not None:
        dispatcher()(pool.address, task, job, out, a, b, c, threads)
    else:  # outside runs, as when weights are packed
        copy_context().run(_with_own_pool, task, job, out, a, b, c, threads)


def _with_own_pool(task: int, job: Array, out: Array, a: Array, b: Array, c: Array, threads: int) -> None:
    with running():
        pool = _pool()
        dispatcher()(pool.address if pool else 0, task, job, out, a, b, c, threads if pool else 1)
