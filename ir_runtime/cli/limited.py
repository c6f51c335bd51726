"""Options that limit the memory and the time of commands that read untrusted files."""

from __future__ import annotations

import functools
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import click

from .command_types import Command

__all__ = ["limited", "parse_size"]

_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def _size(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    return None if text is None else parse_size(text)


def parse_size(text: str) -> int:
    """Return a number of bytes: ``512M``, ``4G``, ``1.5GiB``, ``65536``.

    Raises:
        click.BadParameter: if the text is something else.
    """
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([KMGT]?)(?:I?B)?", text.strip().upper())
    size = int(float(match[1]) * (1 << 10 * _UNITS[match[2]])) if match else 0
    if size < 1:
        raise click.BadParameter(f"{text!r} is not a size such as 512M, 4G or 65536")
    return size


def limited(command: Command) -> Command:
    """Add ``--max-memory`` and ``--timeout`` to a command, which receives ``limits`` and runs on a timer."""

    @click.option(
        "--max-memory",
        callback=_size,
        metavar="SIZE",
        help="Memory limit of the data of a run: 512M, 4G.",
    )
    @click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Time limit; an hour by default.",
    )
    @functools.wraps(command)
    def with_limits(
        *args: object, max_memory: int | None, timeout: float | None, **options: object
    ) -> object:
        from .._util.command_line import start_of_program
        from .._util.deadline import deadline
        from ..limits import Limits, within
        from ..openvino import core  # noqa: F401  what is interrupted while it is imported cannot be used again

        limits = Limits()
        limits = limits if max_memory is None else replace(limits, memory=max_memory)
        limits = limits if timeout is None else replace(limits, seconds=timeout)
        with within(limits), deadline(limits.seconds, start_of_program()), _timer(timeout is not None):
            return command(*args, limits=limits, **options)

    return with_limits


# Seconds by which the timer is late: checks of the time between layers come first, and name the layer.
_GRACE = 0.1
# Seconds until it rings again, where code in between took its error for another one, and went on.
_AGAIN = 1.0


@contextmanager
def _timer(is_asked_for: bool) -> Iterator[None]:
    """Interrupt the block at the deadline, even within a layer if the system supports it."""
    from .._util.deadline import current_deadline, deadline_error
    from ..errors import IRError

    is_main = threading.current_thread() is threading.main_thread()
    if not is_asked_for or not hasattr(signal, "setitimer") or not is_main:
        yield
        return

    rung = False

    def ring(*_: object) -> None:
        nonlocal rung
        if time.monotonic() < current_deadline():  # what was found by then is told
            return
        rung = True
        raise deadline_error()

    left = current_deadline() - time.monotonic()
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(left, 0) + _GRACE, _AGAIN)
        yield
    except (IRError, click.ClickException, click.exceptions.Exit):
        raise
    except Exception as reason:
        if rung:
            raise deadline_error() from reason  # code in between turned it into another error
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
