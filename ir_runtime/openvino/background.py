"""Run a function in a background thread, robust against interrupts of the caller."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..codes import Code
from ..errors import ExecutionError, InputError

__all__ = ["Background"]


class Background:
    """Work in a thread, and what it raised.

    Args:
        work: what to do.
        after: called when it has ended, before anyone is notified; also if it could not begin.
    """

    def __init__(self, work: Callable[[], None], after: Callable[[], None]) -> None:
        self.failure: BaseException | None = None
        self._work, self._after = work, after
        self._ended = threading.Event()
        self._ticket: list[None] = [None]
        """The thread that pops the item decides whether the work starts or is cancelled."""
        self._thread: int | None = None

    @property
    def is_running(self) -> bool:
        """Whether the work has not ended."""
        return not self._ended.is_set()

    def start(self) -> None:
        """Start the thread; an interrupt either prevents the start or has no effect on the work."""
        try:
            threading.Thread(target=self._go, daemon=True).start()
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Cancel the work if it has not started."""
        if self._take_ticket():
            self._end()

    def _take_ticket(self) -> bool:
        try:
            self._ticket.pop()
        except IndexError:
            return False
        return True

    def _go(self) -> None:
        if not self._take_ticket():
            return
        self._thread = threading.get_ident()
        try:
            self._work()
        except BaseException as reason:  # of every kind: it is raised where the result is awaited
            self.failure = reason
        self._end()

    def _end(self) -> None:
        try:
            self._after()
        finally:
            self._ended.set()

    def wait(self, seconds: float | None) -> bool:
        """Wait until it has ended, at most so long; return whether it has."""
        if self.is_running and self._thread == threading.get_ident():
            raise InputError("a callback cannot wait for its own request", code=Code.BAD_REQUEST)
        return not self.is_running or self._ended.wait(seconds)

    def after_fork(self) -> None:
        """In a child process, it continues only if its thread is the one that forked."""
        if not self.is_running or self._thread == threading.get_ident():
            return
        self.failure = ExecutionError(
            "the process was forked while the request ran",
            code=Code.BAD_REQUEST,
            hint="start it again in the child, or wait for requests before forking",
        )
        self._ended = threading.Event()
        self._ended.set()
