"""Options of commands that read untrusted files: limits on memory and time."""

from __future__ import annotations

import functools
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

__all__ = ["limited"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


class _Size(click.ParamType):  # type: ignore[type-arg]  # not generic in older versions
    """A number of bytes: ``512M``, ``4G``, ``1.5GiB``, ``65536``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([KMGT]?)(?:I?B)?", str(value).strip().upper())
        size = int(float(found[1]) * (1 << 10 * _UNITS[found[2]])) if found else 0
        if size < 1:
            self.fail(f"{value!r} is not a size such as 512M, 4G or 65536", param, ctx)
        return size


def limited(command: _Command) -> _Command:
    """Give a command ``--max-memory`` and ``--timeout``. It is called with both as ``limits``, on a timer."""

    @click.option(
        "--max-memory",
        type=_Size(),
        metavar="SIZE",
        help="The most memory to use: 512M, 4G; by default, what the machine has.",
    )
    @click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Stop after this time; by default, an hour.",
    )
    @functools.wraps(command)
    def with_limits(*args: Any, max_memory: int | None, timeout: float | None, **options: Any) -> Any:
        from ..api import core  # noqa: F401  what is interrupted while it is imported cannot be used again
        from ..limits import Limits, within

        given = {"memory": max_memory, "seconds": timeout}
        limits = Limits(**{name: most for name, most in given.items() if most is not None})  # type: ignore[arg-type]
        with within(limits), _timer(timeout):
            return command(*args, limits=limits, **options)

    return with_limits  # type: ignore[return-value]


# Seconds by which the timer is late: where the time is looked at, too, that is told which layer runs.
_GRACE = 0.1


@contextmanager
def _timer(seconds: float | None) -> Iterator[None]:
    """Interrupt the block at the deadline, also in the middle of a layer where the system supports it."""
    from ..deadline import deadline_error
    from ..errors import IRError

    is_main = threading.current_thread() is threading.main_thread()
    if seconds is None or not hasattr(signal, "setitimer") or not is_main:
        yield
        return

    rung = False

    def ring(*_: object) -> None:
        nonlocal rung
        rung = True
        raise deadline_error()

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE)
    try:
        yield
    except (IRError, click.ClickException, click.exceptions.Exit):
        raise
    except Exception as reason:
        if rung:
            raise deadline_error() from reason  # somebody between turned it into something else
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
