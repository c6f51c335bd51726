"""A thread pool whose workers share the chunks of a task with the thread that submits it."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...._util.forks import in_child
from .event import Event

__all__ = ["Task", "ThreadPool"]

# Seconds between looks whether the workers have left a cancelled task.
POLL_INTERVAL = 1e-4


class Task:
    """A parallel for: chunks of work that free threads take one by one; the caller takes part, so it never waits in vain.

    Args:
        work: called with every chunk.
        chunks: what it is called with.
        on_complete: called once, by the thread that completes the last chunk.
    """

    def __init__(
        self,
        work: Callable[..., object],
        chunks: Sequence[Any],
        on_complete: Callable[[], None] | None = None,
    ) -> None:
        self._work, self._chunks, self._on_complete = work, deque(chunks), on_complete
        self._incomplete, self._lock = len(chunks), threading.Lock()
        self._active: list[None] = []
        """An element for each worker that may have a chunk."""
        self._done, self._joined = _events.pop() if _events else Event(), False
        self._failure: BaseException | None = None

    def run_chunks(self) -> None:
        """Run chunks as a worker until there are none; `join` raises what fails."""
        if not self._chunks:
            return
        self._active.append(None)
        try:
            self._run_all()
        except BaseException as reason:
            self._failure = reason
            self._chunks.clear()  # the remaining chunks are not begun
        self._active.pop()
        if not self._active:
            self._done.set()

    def _run_all(self) -> None:
        while True:
            try:
                chunk = self._chunks.popleft()
            except IndexError:
                return
            self._run(chunk)

    def _run(self, chunk: Any) -> None:
        self._work(chunk)
        if self._on_complete is None:
            return
        with self._lock:
            self._incomplete -= 1
            last = not self._incomplete
        if last:
            self._on_complete()

    def join(self) -> None:
        """Run chunks as the caller until there are none; then wait for those that workers have begun."""
        self._run_all()
        while self._active:
            self._done.wait()
        if self._failure is not None:
            raise self._failure
        if not self._joined:
            self._joined = True
            _events.append(self._done)

    def cancel(self) -> None:
        """Discard the chunks that have not begun, and wait for the others."""
        self._chunks.clear()
        while self._active:
            time.sleep(POLL_INTERVAL)  # the event may have been consumed by what was interrupted


_events: list[Event] = []
"""Those of joined tasks: to make one takes longer than to set it. Some may be set once more."""

in_child(_events.clear)


class _Worker:
    """A thread that runs tasks until it is garbage collected."""

    def __init__(self) -> None:
        self._tasks, self._wake = deque[Task | None](), Event()
        weakref.finalize(self, _stop, self._tasks, self._wake).atexit = False
        args = self._tasks, self._wake
        threading.Thread(target=_worker_loop, args=args, name="ir_runtime", daemon=True).start()

    def submit(self, task: Task) -> None:
        self._tasks.append(task)
        self._wake.set()


def _worker_loop(tasks: deque[Task | None], wake: Event) -> None:
    with np.errstate(all="ignore"):
        while True:
            while tasks:
                if (task := tasks.popleft()) is None:
                    return
                task.run_chunks()
                del task  # and the arrays that it holds
            wake.wait()


def _stop(tasks: deque[Task | None], wake: Event) -> None:
    tasks.append(None)
    wake.set()


class ThreadPool:
    """Workers, started when they are first needed."""

    def __init__(self) -> None:
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()

    def submit(self, task: Task, workers: int) -> None:
        """Let this many workers help with a task."""
        if len(self._workers) < workers:
            with self._lock:
                while len(self._workers) < workers:
                    self._workers.append(_Worker())
        for worker in self._workers[:workers]:
            worker.submit(task)
