"""Making all kernels at once: on request, or in the background of the first program that could use them."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from .. import kernels
from ..codegen.language import Routine
from .cache import folder, is_kept, make_folder
from .loader import make, missing

__all__ = ["Making", "in_background", "make_all", "ready", "waiting"]

# Seconds after which whoever said to be making kernels is taken for dead.
_PATIENCE = 600


# Stands beside the kernels once all of them are there.
_COMPLETE = "complete"


def ready() -> bool:
    """Whether every kernel is in the cache."""
    place = folder()
    return place is not None and (place / _COMPLETE).exists()


def waiting() -> list[Routine]:
    """The kernels of all modules that are missing."""
    for module in iter_modules(kernels.__path__, f"{kernels.__name__}."):
        import_module(module.name)
    return missing()


def make_all() -> Iterator[Routine]:
    """Make what is missing; gives each kernel once it is there."""
    for routine in waiting():
        if not is_kept(routine):  # another process may have made it meanwhile
            with _uncollected():
                make(routine)
        yield routine
    if (place := folder()) is not None:
        with suppress(OSError):  # which was said when the kernels could not be kept
            (place / _COMPLETE).touch(mode=0o600)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Collect no garbage meanwhile: most of what numba makes stays, and looking through it takes a twentieth of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def in_background() -> None:
    """Start a process that makes what is missing, unless one is at it; it outlives this one."""
    if getattr(sys, "frozen", False) or not sys.executable:
        return  # what would be started is not Python
    place = folder()
    if place is None:
        return
    try:
        make_folder(place)
        if _is_at_it(place / Making.MARK):
            return
    except OSError as reason:
        message = (
            f"kernels cannot be kept in {place}: {reason.strerror or reason}; numpy is used instead of numba"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return
    _tell("compiling kernels for this machine, once, in the background; until they are there, numpy is used")
    nothing = subprocess.DEVNULL
    command = [sys.executable, "-m", __package__.rpartition(".")[0]]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with suppress(OSError):
        subprocess.Popen(  # noqa: S603 - this interpreter, and a module of this package
            command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True, env=environment
        )


class Making:
    """Says in the folder that somebody makes the kernels."""

    MARK = "making"

    @classmethod
    @contextmanager
    def marked(cls) -> Iterator[bool]:
        """Whether this process is the one; the mark is gone afterwards.

        Where making fails, it stays until it is too old, so that not every program tries again at once.
        """
        place = folder()
        if place is None:
            yield False
            return
        make_folder(place)
        mark = place / cls.MARK
        if _is_at_it(mark):
            yield False
            return
        mark.write_text(str(os.getpid()))
        yield True
        mark.unlink(missing_ok=True)


def _is_at_it(mark: Path) -> bool:
    try:
        return time.time() - mark.stat().st_mtime < _PATIENCE
    except FileNotFoundError:
        return False


def _tell(text: str) -> None:
    """A line for whoever sits at a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"ir_runtime: {text}", file=sys.stderr)
