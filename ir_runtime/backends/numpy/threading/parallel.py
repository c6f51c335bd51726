"""Several threads over one layer, each with its own part of the rows.

OpenBLAS has threads of its own, but between its products everything else runs on one, and they wait
for each other spinning: with another program on the same cores, a product of 1 ms was seen to take 60.
So BLAS keeps to one thread while a plan runs, and the parts of a layer, products and all, go to
threads here. Where BLAS cannot be told, it is left as it is, and there are no threads here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any

from ....forks import before_fork, helping, in_child
from ....scoped import setting
from ...common.blas import Blas
from ...core.threads import most
from .pool import Crew, Job

__all__ = ["compiling", "each", "later", "several_blas", "share", "single_blas"]

# Multiplications, or so, in several calls of NumPy, that are worth a second thread: after each call, two threads
# may wait some 10 µs for each other. What a helper has not begun when it comes is done without it.
WORTH = 1 << 24

_blas = Blas()
_crew = Crew()
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
    if helpers < 1 or not _blas.limited:
        for piece in pieces:
            work(piece)
        return
    job = Job(work, pieces)
    try:
        _crew.call(job, helpers)
        job.finish()
    except BaseException:
        job.abandon()
        raise


_LATER: ContextVar[list[Job] | None] = ContextVar("later", default=None)


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Around a compilation: what it leaves for `later` is done when it ends."""
    if _LATER.get() is not None:  # of a graph inside another
        yield
        return
    jobs: list[Job] = []
    with setting(_LATER, jobs), single_blas():
        try:
            yield
            _finish()
        except BaseException:
            for job in jobs:
                job.abandon()
            raise


@before_fork
def _finish() -> None:
    """Do what was left for later; a forked process has none of the helpers that have begun with it."""
    for job in _LATER.get() or ():
        job.finish()


def later(work: Callable[[Any], None], pieces: Sequence[Any], behind: Callable[[], None]) -> None:
    """Call ``work`` with every piece, then ``behind``: on other threads, while the compilation goes on.

    Outside of one, and where there are no others, this is done at once.
    """
    jobs, helpers = _LATER.get(), most(threads) - 1
    if jobs is None or helpers < 1 or not _blas.limited:
        for piece in pieces:
            work(piece)
        behind()
        return
    job = Job(partial(_apart, work), pieces, behind)
    jobs.append(job)
    _crew.call(job, min(helpers, len(pieces)))


def _apart(work: Callable[[Any], None], piece: Any) -> None:
    """A piece that no layer waits for, as a fork has to."""
    with helping():
        work(piece)


@in_child
def _forget() -> None:
    """A forked process has none of its parent's threads."""
    global _crew
    _crew = Crew()
