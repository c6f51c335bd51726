"""Run a function in a background thread, robust against interrupts of the caller."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from .._util.forks import register
from ..codes import Code
from ..errors import ExecutionError, InputError

__all__ = ["Background"]


# Seconds that an idle thread waits for a job before it ends.
IDLE_SECONDS = 10.0

_Job = Callable[["_Worker"], None]


class _Workers:
    """A pool of idle threads: starting a thread takes longer than running a small model."""

    def __init__(self) -> None:
        self.idle: list[_Worker] = []
        register(self)

    def run(self, job: _Job) -> None:
        """Run a job in an idle thread, or in a new one if none is idle."""
        try:
            worker = self.idle.pop()
        except IndexError:
            worker = _Worker(self.idle)
            worker.jobs.put(job)
            worker.start()
        else:
            worker.jobs.put(job)

    def after_fork(self) -> None:
        """Drop the threads, which do not exist in a child process."""
        self.idle = []


class _Worker:
    """A thread that runs one job after another, each in a new context, as if in a new thread."""

    def __init__(self, idle: list[_Worker]) -> None:
        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        self._idle = idle

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._serve, daemon=True).start()

    def release(self) -> None:
        """Mark the thread as idle; called by the job just before it reports its end."""
        self._idle.append(self)

    def _serve(self) -> None:
        while True:
            try:
                job = self.jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                try:
                    self._idle.remove(self)
                except ValueError:  # another thread has just taken this worker: a job follows
                    continue
                return
            contextvars.Context().run(job, self)
            del job  # and free the data that it refers to
            # The job has forked, and this is the child process.
            if threading.current_thread() is threading.main_thread():
                return


_WORKERS = _Workers()


class Background:
    """A function run in a background thread, and the exception that it raised.

    Args:
        work: the function to run.
        after: called at the end, before waiters are notified, and also if the work could not start.
    """

    def __init__(self, work: Callable[[], None], after: Callable[[], None]) -> None:
        self.failure: BaseException | None = None
        self._work, self._after = work, after
        self._ended = threading.Event()
        self._ticket: list[None] = [None]
        """A token that is popped once: by the worker to start the work, or by `cancel`."""
        self._thread: int | None = None

    @property
    def is_running(self) -> bool:
        """Whether the work is still running."""
        return not self._ended.is_set()

    def start(self) -> None:
        """Start the work. An interrupt either prevents the start or has no effect on the work."""
        try:
            _WORKERS.run(self._go)
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Cancel the work if it has not started."""
        if self._take_ticket():
            self._end(None)

    def _take_ticket(self) -> bool:
        try:
            self._ticket.pop()
        except IndexError:
            return False
        return True

    def _go(self, worker: _Worker) -> None:
        if not self._take_ticket():
            worker.release()
            return
        self._thread = threading.get_ident()
        try:
            self._work()
        except BaseException as reason:  # of any kind, as the caller raises it when waiting
            self.failure = reason
        self._end(worker)

    def _end(self, worker: _Worker | None) -> None:
        try:
            self._after()
        finally:
            if worker is not None:
                worker.release()
            self._ended.set()

    def wait(self, seconds: float | None) -> bool:
        """Wait at most ``seconds`` for the end, and return whether the work has ended."""
        if self.is_running and self._thread == threading.get_ident():
            raise InputError("a callback cannot wait for its own request", code=Code.BAD_REQUEST)
        return not self.is_running or self._ended.wait(seconds)

    def after_fork(self) -> None:
        """Mark the work as failed in a child process, unless its own thread forked."""
        if not self.is_running or self._thread == threading.get_ident():
            return
        self.failure = ExecutionError(
            "the process was forked while the request ran",
            code=Code.BAD_REQUEST,
            hint="start it again in the child, or wait for requests before forking",
        )
        self._ended = threading.Event()
        self._ended.set()
