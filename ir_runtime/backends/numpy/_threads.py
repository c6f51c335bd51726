"""Several threads over one layer, each with its own part of the rows.

OpenBLAS has threads of its own, but between its products everything else runs on one, and they wait
for each other spinning: with another program on the same cores, a product of 1 ms was seen to take 60.
So BLAS keeps to one thread while a plan runs, and the parts of a layer, products and all, go to
threads here. Where BLAS cannot be told, it is left as it is, and there are no threads here.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any

import numpy as np

from ..threads import most
from ._blas import Blas

__all__ = ["compiling", "each", "later", "several_blas", "share", "single_blas"]

# Multiplications, or so, that are worth a second thread, about 0.3 ms of them: a sleeping thread takes 20 µs
# to come, up to 0.2 ms on a virtual machine whose other cores are idle; and after each call of NumPy, two threads
# may wait some 10 µs for each other. What it has not begun by then is done without it.
WORTH = 1 << 24


class _Job:
    """Pieces of work, taken one by one by whoever is free; the caller takes part, so it never waits in vain."""

    def __init__(
        self, work: Callable[..., None], pieces: Sequence[Any], behind: Callable[[], None] | None = None
    ) -> None:
        self._work, self._pieces, self._behind = work, deque(pieces), behind
        self._left, self._lock, self._done = len(pieces), threading.Lock(), threading.Lock()
        self._done.acquire()
        self.failure: BaseException | None = None

    def help(self) -> None:
        """Take pieces until there are none."""
        while True:
            try:
                piece = self._pieces.popleft()
            except IndexError:
                return
            try:
                self._work(piece)
            except BaseException as reason:
                self.failure = reason
                self._count(self._abandon())
            self._count(1)

    def _count(self, pieces: int) -> None:
        with self._lock:
            self._left -= pieces
            if not pieces or self._left:
                return
            if self._behind is not None and self.failure is None:
                self._behind()
            self._done.release()

    def _abandon(self) -> int:
        """Take all that is left, so that nobody begins it; what was begun is finished."""
        dropped = 0
        with contextlib.suppress(IndexError):
            while True:
                self._pieces.popleft()
                dropped += 1
        return dropped

    def finish(self) -> None:
        """Wait for pieces that others took."""
        try:
            self._done.acquire()
        except BaseException:  # an interrupt: nobody waits any more
            self._abandon()
            raise
        if self.failure is not None:
            raise self.failure


class _Crew:
    """Threads that wait for jobs; started at the first."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._started = 0
        self._lock = threading.Lock()

    def call(self, job: _Job, helpers: int) -> None:
        if self._started < helpers:
            self._start(helpers)
        for _ in range(helpers):
            self._jobs.put(job)

    def _start(self, helpers: int) -> None:
        with self._lock:
            for _ in range(self._started, helpers):
                threading.Thread(target=self._serve, name="ir_runtime", daemon=True).start()
            self._started = max(self._started, helpers)

    def _serve(self) -> None:
        with np.errstate(all="ignore"):
            while True:
                self._jobs.get().help()


_blas = Blas()
_crew = _Crew()
single_blas = _blas.single
threads = _blas.threads


def several_blas() -> contextlib.AbstractContextManager[None]:
    """Let threads of BLAS itself share the products inside, as many as the run may use."""
    return _blas.several(most(threads))


def share(size: int) -> int:
    """Among how many threads to share so many multiplications."""
    return most(threads) if size >= WORTH else 1


def each(work: Callable[[Any], None], pieces: Sequence[Any], size: int) -> None:
    """Call ``work`` with every piece, on several threads if ``size`` is worth it; in no particular order."""
    helpers = min(share(size), len(pieces)) - 1
    if helpers < 1 or not _blas.runs:
        for piece in pieces:
            work(piece)
        return
    job = _Job(work, pieces)
    _crew.call(job, helpers)
    job.help()
    job.finish()


_LATER: ContextVar[list[_Job] | None] = ContextVar("later", default=None)


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Around a compilation: what it leaves for `later` is done when it ends."""
    if _LATER.get() is not None:  # of a graph inside another
        yield
        return
    jobs: list[_Job] = []
    token = _LATER.set(jobs)
    try:
        with single_blas():
            yield
            for job in jobs:
                job.help()
                job.finish()
    finally:
        _LATER.reset(token)


def later(work: Callable[[Any], None], pieces: Sequence[Any], behind: Callable[[], None]) -> None:
    """Call ``work`` with every piece, then ``behind``: on other threads, while the compilation goes on.

    Outside of one, and where there are no others, this is done at once.
    """
    jobs, helpers = _LATER.get(), most(threads) - 1
    if jobs is None or helpers < 1 or not _blas.runs:
        for piece in pieces:
            work(piece)
        behind()
        return
    job = _Job(work, pieces, behind)
    jobs.append(job)
    _crew.call(job, min(helpers, len(pieces)))


def _forget() -> None:
    """A forked process has none of its parent's threads."""
    global _crew
    _crew = _Crew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
