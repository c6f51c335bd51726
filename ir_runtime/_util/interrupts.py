"""Interrupts (Ctrl-C) of the command line: the program exits immediately, unless a command must clean up.

An exception would not do while modules are imported, as imports replace or ignore it. All modules that this one imports
are loaded when Python starts, except `signal`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

TYPE_CHECKING = False  # as `typing` is not loaded yet
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

__all__ = ["catch", "end", "raise_interrupts"]

# Seconds after which code whose exceptions Python ignores has ended.
_A_LITTLE = 0.01


def catch() -> None:
    """Let interrupts end this process from now on, unless it ignores them, as background jobs of a shell do."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)


@contextmanager
def raise_interrupts() -> Iterator[None]:
    """Let interrupts raise `KeyboardInterrupt` within a ``with`` statement, if `catch` was called."""
    if signal.getsignal(signal.SIGINT) is not _end_at_once:
        yield
        return
    former = sys.unraisablehook
    sys.unraisablehook = _interrupt_again
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _end_at_once)
        sys.unraisablehook = former


def end(code: int, message: bytes) -> NoReturn:
    """Write a message and exit immediately, without allocating memory or running code that can be interrupted."""
    try:
        os.write(2, message)
    finally:
        os._exit(code)


def _end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    end(130, b"interrupted\n")


def _interrupt_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Repeat an interrupt shortly after it was raised where Python ignores exceptions, as in import callbacks."""
    if unraisable.exc_type is KeyboardInterrupt:
        import threading

        threading.Timer(_A_LITTLE, _interrupt_main_thread).start()
    else:
        sys.__unraisablehook__(unraisable)


def _interrupt_main_thread() -> None:
    import threading

    if hasattr(signal, "pthread_kill"):  # it also wakes the thread
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        import _thread

        _thread.interrupt_main()
