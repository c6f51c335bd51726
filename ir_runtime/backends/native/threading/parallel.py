"""Parallel execution of tasks: the number of threads for a layer, and the thread pool of a run.

The thread pool does all the work of a run; the numpy backend limits BLAS to one thread.
"""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from threading import get_ident

from ...._util.cores import parallelism
from ...._util.scoped import Scope, inside
from ....ir.tensor import Array
from ...core.threads import most
from .denormals import mode_bits
from .pool import ThreadPool, acquire, dispatcher, release
from .recording import RECORD, Call
from .task import NO_SCRATCH, UNUSED

__all__ = [
    "at_most_cores", "parallel_for", "pays_to_share", "pool_address", "running", "threads", "threads_for",
]  # fmt: skip

MIN_PARALLEL_WORK = 1 << 12
"""The time in nanoseconds from which several threads are faster; sharing a layer costs one or two thousand."""
# What a thread does in a nanosecond: bytes that it moves within the caches, and f32 operations in vectors.
_MOVED, _COMPUTED = 64, 32


@dataclass(slots=True, eq=False)
class _Run:
    """The current run. Other threads may inherit the context variable, but never use its pool."""

    thread: int = 0
    """The thread of the run; 0 after the run has ended."""
    work: object = None
    """The key of its scope."""
    outer: _Run | None = None
    """The enclosing run."""
    pool: ThreadPool | None = None
    """The run's own pool, acquired when a kernel first needs threads."""
    threads: int = 0
    """The number of threads for a layer; 0 before a kernel asks for it."""


_NO_RUN = _Run()
_RUN: ContextVar[_Run] = ContextVar("run", default=_NO_RUN)


def _pool(run: _Run) -> ThreadPool:
    """Return the thread pool of this thread's run, or of the run that contains it.

    It is acquired when a kernel first needs threads, so small models wake none.
    """
    outer: _Run | None = run
    while outer is not None and outer.thread == run.thread:
        if outer.pool is not None:
            return outer.pool
        outer = outer.outer
    pool = run.pool = acquire(threads() - 1)
    pool.begin_run()
    return pool


def at_most_cores(threads: int) -> int:
    """Return the number of threads for a layer of a run limited to ``threads`` threads."""
    return min(threads, parallelism())


def threads() -> int:
    """Return the number of threads for a layer of the current run."""
    run = _RUN.get()
    if run.threads:
        return run.threads
    found = most(parallelism())
    if run is not _NO_RUN:
        run.threads = found
    return found


def pays_to_share(*, moved: int = 0, computed: int = 0, steps: int = 0) -> bool:
    """Return whether a layer takes longer in one thread than the cost of sharing it.

    Args:
        moved: the bytes read and written.
        computed: the number of vectorized f32 operations.
        steps: the number of scalar or address operations, of a nanosecond each.
    """
    return moved / _MOVED + computed / _COMPUTED + steps >= MIN_PARALLEL_WORK


def threads_for(*, moved: int = 0, computed: int = 0, steps: int = 0) -> int:
    """Return the number of threads for a layer of the current run: one unless it `pays_to_share`."""
    return threads() if moved / _MOVED + computed / _COMPUTED + steps >= MIN_PARALLEL_WORK else 1


def _begin(work: object) -> None:
    if (outer := _RUN.get()) is _NO_RUN and most(parallelism()) == 1:
        return  # nothing asks for a pool
    _RUN.set(_Run(get_ident(), work, outer))


def _end(work: object, interrupted: bool) -> None:
    run = _RUN.get()
    if run.work is not work or run.outer is None:
        return
    if (pool := run.pool) is not None:
        pool.end_run()
        run.pool = None
        if not interrupted:
            release(pool)
    run.thread = 0
    _RUN.set(run.outer)


running = Scope(_begin, _end)
"""Provides a thread pool for a run.

An interrupted run does not return its pool for reuse: it ends with its last reference, which the traceback of
the interrupt may hold, and later runs must not end up with both.
"""


def parallel_for(
    task: int, job: Array, out: Array, a: Array, b: Array, c: Array, threads: int, d: Array = UNUSED
) -> None:  # fmt: skip
    """Run the units of a task on ``threads`` threads, limited by those of the run; pass `UNUSED` for unread arrays.

    All arrays must be contiguous, since kernels only get addresses.

    Raises:
        MemoryError: if the task runs out of scratch memory.
    """
    if (record := RECORD.get()) is not None:
        record.calls.append(Call(task, job, (out, a, b, c, d), threads))
    if threads <= 1:
        failed = dispatcher()(0, task, job, out, a, b, c, d, 1, mode_bits())
    elif address := pool_address():
        failed = dispatcher()(address, task, job, out, a, b, c, d, threads, mode_bits())
    else:  # as when weights are packed
        failed = copy_context().run(inside, (running,), _parallel_for, task, job, out, a, b, c, threads, d)
    if failed:
        raise MemoryError(NO_SCRATCH)


def _parallel_for(
    task: int, job: Array, out: Array, a: Array, b: Array, c: Array, threads: int, d: Array
) -> int:  # fmt: skip
    address = pool_address()  # 0 where the caller may use one thread only
    return dispatcher()(address, task, job, out, a, b, c, d, threads if address else 1, mode_bits())


def pool_address() -> int:
    """Return the address of the thread pool of the current run; 0 outside runs."""
    return _pool(run).address if (run := _RUN.get()).thread == get_ident() else 0
