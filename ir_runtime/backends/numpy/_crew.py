"""Threads that do pieces of a job together with whoever has it."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._bell import Bell

__all__ = ["Crew", "Job"]


class Job:
    """Pieces of work, taken one by one by whoever is free; the caller takes part, so it never waits in vain."""

    def __init__(
        self, work: Callable[..., None], pieces: Sequence[Any], behind: Callable[[], None] | None = None
    ) -> None:
        self._work, self._pieces, self._behind = work, deque(pieces), behind
        self._left, self._lock = len(pieces), threading.Lock()
        self._done, self._alone = _bells.pop() if _bells else Bell(), False
        self.failure: BaseException | None = None

    def help(self, mine: bool = False) -> None:
        """Take pieces until there are none; ``mine`` if it is the caller's own, who need not wait for itself."""
        while True:
            try:
                piece = self._pieces.popleft()
            except IndexError:
                return
            try:
                self._work(piece)
            except BaseException as reason:
                self.failure = reason
                self._count(self._abandon(), mine)
            self._count(1, mine)

    def _count(self, pieces: int, mine: bool) -> None:
        with self._lock:
            self._left -= pieces
            if not pieces or self._left:
                return
            if self._behind is not None and self.failure is None:
                self._behind()
        if mine:
            self._alone = True
        else:
            self._done.ring()

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
            if not self._alone:
                self._done.wait()
        except BaseException:  # an interrupt: nobody waits any more
            self._abandon()
            raise
        _bells.append(self._done)
        if self.failure is not None:
            raise self.failure


_bells: list[Bell] = []
"""Those of jobs that were finished: to make one takes longer than to ring it."""


class _Helper:
    """A thread that does jobs."""

    def __init__(self) -> None:
        self._jobs, self._bell = deque[Job](), Bell()
        threading.Thread(target=self._serve, name="ir_runtime", daemon=True).start()

    def call(self, job: Job) -> None:
        self._jobs.append(job)
        self._bell.ring()

    def _serve(self) -> None:
        with np.errstate(all="ignore"):
            while True:
                while self._jobs:
                    self._jobs.popleft().help()
                self._bell.wait()


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
