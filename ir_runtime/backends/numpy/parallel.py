"""Parallel for: threads share the chunks of a layer.

OpenBLAS has a thread pool of its own, but all work between products runs on one thread, and its threads spin while they wait
for each other: with another program on the same cores, a product of 1 ms was seen to take 60 ms. So BLAS is limited to one
thread while a model runs, and whole chunks of a layer, including products, go to the thread pool of this module. If the
number of BLAS threads cannot be set, this pool has no threads.
"""

from __future__ import annotations

import _thread
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np

from ..._util.forks import in_child
from ..common.blas import Blas
from ..core.threads import most

__all__ = ["multithreaded_blas", "parallel_for", "single_blas", "thread_count"]

# The work, in multiplications, that threads must take from the caller to be worth it. After each call of NumPy they may wait
# some 10 µs for each other (GIL), and their data are in the caches of other cores. On two threads, layers with half of this
# saving took longer than on one.
MIN_PARALLEL_WORK = 1 << 24

_Tasks: TypeAlias = "SimpleQueue[Callable[[], None]]"

_blas = Blas()
single_blas = _blas.single
max_threads = _blas.threads


def multithreaded_blas() -> contextlib.AbstractContextManager[None]:
    """Let BLAS use its own threads for products in the block, as many as the run may use."""
    return _blas.several(most(max_threads))


def thread_count(size: int) -> int:
    """Return the number of threads that should share work of ``size`` multiplications."""
    if size < MIN_PARALLEL_WORK:
        return 1
    threads = most(max_threads)
    return threads if size * (threads - 1) >= MIN_PARALLEL_WORK * threads else 1


def parallel_for(work: Callable[[Any], object], chunks: Sequence[Any], size: int) -> None:
    """Call ``work`` with every chunk, in any order, on several threads if ``size``, in multiplications, is worth it."""
    workers = min(thread_count(size), len(chunks)) - 1
    if workers < 1 or not _blas.limited:
        for chunk in chunks:
            work(chunk)
        return
    remaining, unclaimed = deque(chunks), deque(range(workers))
    ended: SimpleQueue[BaseException | None] = SimpleQueue()
    try:
        _pool.submit(partial(_help, work, remaining, unclaimed, ended), workers)
        _run_chunks(work, remaining)
    finally:
        remaining.clear()  # after a failure
        failures = [ended.get() for _ in range(workers - _take_back(unclaimed))]
    for failure in failures:
        if failure is not None:
            raise failure


def _help(
    work: Callable[[Any], object],
    remaining: deque[Any],
    unclaimed: deque[int],
    ended: SimpleQueue[BaseException | None],
) -> None:
    """Run chunks on a thread of the pool, and put ``None`` or the exception into ``ended``.

    Args:
        work: the function of a chunk.
        remaining: the chunks that no thread has taken.
        unclaimed: an element for each call of this function that has not begun; if it is empty, the caller has withdrawn them.
        ended: the outcomes of calls.
    """
    try:
        unclaimed.pop()
    except IndexError:
        return
    failure: BaseException | None = None
    try:
        _run_chunks(work, remaining)
    except BaseException as reason:
        failure = reason
    ended.put(failure)


def _take_back(unclaimed: deque[int]) -> int:
    """Withdraw the calls of `_help` that no thread has begun; return their number."""
    count = 0
    with contextlib.suppress(IndexError):
        while True:
            unclaimed.pop()
            count += 1
    return count


def _run_chunks(work: Callable[[Any], object], remaining: deque[Any]) -> None:
    """Run chunks until none remain; an exception discards the remaining ones."""
    try:
        while remaining:
            try:
                chunk = remaining.popleft()
            except IndexError:  # another thread took the last one
                return
            work(chunk)
    except BaseException:
        remaining.clear()
        raise


class _Pool:
    """Threads that run tasks from a queue.

    It does not use `concurrent.futures`, whose locks may stay held if an interrupt (Ctrl-C) arrives in between; a
    `SimpleQueue` has no locks that Python code holds.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drop the threads, which a forked process does not have."""
        self._tasks: _Tasks = SimpleQueue()
        self._threads = 0

    def close(self) -> None:
        """End the threads; the next task starts new ones."""
        for _ in range(self._threads):
            self._tasks.put(_thread.exit)
        self.reset()

    def submit(self, task: Callable[[], None], times: int) -> None:
        """Queue a task ``times`` times, and start missing threads; while the interpreter shuts down, none can be started."""
        with contextlib.suppress(RuntimeError):
            while self._threads < max_threads - 1:
                # `Thread.start` would hold a lock until the thread runs.
                _thread.start_new_thread(_serve, (self._tasks,))
                self._threads += 1
        for _ in range(times):
            self._tasks.put(task)


def _serve(tasks: _Tasks) -> None:
    np.seterr(all="ignore")
    while True:
        tasks.get()()


_pool = _Pool()
in_child(_pool.reset)
