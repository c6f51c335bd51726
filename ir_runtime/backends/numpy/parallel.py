"""Parallel for: several threads compute one layer, each some of its rows.

OpenBLAS has its own thread pool, but between its products everything else runs on one thread, and its threads wait
for each other spinning: with another program on the same cores, a product of 1 ms was seen to take 60. So BLAS is
limited to one thread while a model runs, and the chunks of a layer, products and all, go to the thread pool here.
Where the number of BLAS's threads cannot be set, it is left as it is, and this pool has no threads.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from ..._util.forks import in_child
from ..common.blas import Blas
from ..core.threads import most

__all__ = ["multithreaded_blas", "parallel_for", "single_blas", "thread_count"]

# Multiplications (or work that takes as long), in several calls of NumPy, that threads must save the caller to be worth
# it: after each call they may wait some 10 µs for each other, and they find data in the caches of others. With two, layers
# that saved half of this took longer than on one. The caller runs the chunks that a worker has not begun.
MIN_PARALLEL_WORK = 1 << 24

_blas = Blas()
_pools: dict[int, ThreadPoolExecutor] = {}
"""The thread pool, by the number of its threads."""
single_blas = _blas.single
max_threads = _blas.threads

in_child(_pools.clear)  # a forked process does not have the parent's threads


def multithreaded_blas() -> contextlib.AbstractContextManager[None]:
    """Let BLAS's own threads share the products inside, as many as the run may use."""
    return _blas.several(most(max_threads))


def thread_count(size: int) -> int:
    """Return the number of threads that should share this many multiplications."""
    if size < MIN_PARALLEL_WORK:
        return 1
    threads = most(max_threads)
    return threads if size * (threads - 1) >= MIN_PARALLEL_WORK * threads else 1


def parallel_for(work: Callable[[Any], object], chunks: Sequence[Any], size: int) -> None:
    """Call ``work`` with every chunk, in no particular order; on several threads if ``size`` is worth it."""
    workers = min(thread_count(size), len(chunks)) - 1
    if workers < 1 or not _blas.limited:
        for chunk in chunks:
            work(chunk)
        return
    remaining, helpers = deque(chunks), list[Future[None]]()
    run = partial(_run_chunks, work, remaining)
    try:
        with contextlib.suppress(RuntimeError):  # the interpreter is shutting down: no new threads
            helpers += (_pool(max_threads - 1).submit(run) for _ in range(workers))
        run()
    finally:
        remaining.clear()  # after a failure
        begun = [helper for helper in helpers if not helper.cancel()]
        failures = [helper.exception() for helper in begun]
    for failure in failures:
        if failure is not None:
            raise failure


def _run_chunks(work: Callable[[Any], object], remaining: deque[Any]) -> None:
    """Run chunks until none remain; a failure discards the others."""
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


def _pool(threads: int) -> ThreadPoolExecutor:
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads, "ir_runtime", partial(np.seterr, all="ignore"))
    return _pools[threads]
