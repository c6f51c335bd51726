"""Threads that do pieces of a job together with whoever has it."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....forks import in_child
from .event import Bell

__all__ = ["Crew", "Job"]

# Seconds after which an abandoned job looks whether the helpers have left it.
LOOK = 1e-4


class Job:
    """Pieces of work, taken one by one by whoever is free; the caller takes part, so it never waits in vain."""

    def __init__(
        self, work: Callable[..., None], pieces: Sequence[Any], behind: Callable[[], None] | None = None
    ) -> None:
        self._work, self._pieces, self._behind = work, deque(pieces), behind
        self._left, self._lock = len(pieces), threading.Lock()
        self._inside: list[None] = []
        """An element for each helper that may have a piece."""
        self._done, self._finished = _bells.pop() if _bells else Bell(), False
        self._failure: BaseException | None = None

    def help(self) -> None:
        """Take pieces until there are none, as a helper; the caller is told of what fails when it has finished."""
        if not self._pieces:
            return
        self._inside.append(None)
        try:
            self._take()
        except BaseException as reason:
            self._failure = reason
            self._pieces.clear()  # nobody begins what is left
        self._inside.pop()
        if not self._inside:
            self._done.ring()

    def _take(self) -> None:
        while True:
            try:
                piece = self._pieces.popleft()
            except IndexError:
                return
            self._do(piece)

    def _do(self, piece: Any) -> None:
        self._work(piece)
        if self._behind is None:
            return
        with self._lock:
            self._left -= 1
            last = not self._left
        if last:
            self._behind()

    def finish(self) -> None:
        """Take pieces, as the caller, until there are none; then wait for those that helpers have taken."""
        self._take()
        while self._inside:
            self._done.wait()
        if self._failure is not None:
            raise self._failure
        if not self._finished:
            self._finished = True
            _bells.append(self._done)

    def abandon(self) -> None:
        """Let nobody begin what is left, and wait for what was begun."""
        self._pieces.clear()
        while self._inside:
            time.sleep(LOOK)  # the bell may have been heard by what was interrupted


_bells: list[Bell] = []
"""Those of jobs that were finished: to make one takes longer than to ring it. Some may ring once more."""

in_child(_bells.clear)


class _Helper:
    """A thread that does jobs until nobody has it any more."""

    def __init__(self) -> None:
        self._jobs, self._bell = deque[Job | None](), Bell()
        weakref.finalize(self, _dismiss, self._jobs, self._bell).atexit = False
        args = self._jobs, self._bell
        threading.Thread(target=_serve, args=args, name="ir_runtime", daemon=True).start()

    def call(self, job: Job) -> None:
        self._jobs.append(job)
        self._bell.ring()


def _serve(jobs: deque[Job | None], bell: Bell) -> None:
    with np.errstate(all="ignore"):
        while True:
            while jobs:
                if (job := jobs.popleft()) is None:
                    return
                job.help()
                del job  # with all that it has
            bell.wait()


def _dismiss(jobs: deque[Job | None], bell: Bell) -> None:
    jobs.append(None)
    bell.ring()


class Crew:
    """Helpers, started when they are first called."""

    def __init__(self) -> None:
        self._helpers: list[_Helper] = []
        self._lock = threading.Lock()

    def call(self, job: Job, helpers: int) -> None:
        """Let so many of them help."""
        if len(self._helpers) < helpers:
            with self._lock:
                while len(self._helpers) < helpers:
                    self._helpers.append(_Helper())
        for helper in self._helpers[:helpers]:
            helper.call(job)
