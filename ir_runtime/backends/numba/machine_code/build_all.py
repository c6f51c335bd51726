"""The build of all kernels at once: on request, or in the background of the first program that could use them."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from ...._util.child_process import can_start, start_in_background
from ...._util.files import create
from ...._util.garbage import no_collection
from .. import kernels
from ..codegen.language import Routine
from .cache import folder, is_cached, make_folder
from .loader import build, missing

__all__ = ["BuildLock", "build_all", "in_background", "pending", "ready"]

# Seconds after which a lock is stale.
_TIMEOUT = 600
# Narrower terminals are written to as if they were as wide as this.
_NARROWEST = 20
# A file in the folder that exists once all kernels are compiled.
_COMPLETE = "complete"


def ready() -> bool:
    """Return whether every kernel is in the cache."""
    place = folder()
    return place is not None and (place / _COMPLETE).exists()


def pending() -> list[Routine]:
    """Return the kernels of all modules that are not in the cache."""
    for module in iter_modules(kernels.__path__, f"{kernels.__name__}."):
        import_module(module.name)
    return missing()


def build_all() -> Iterator[Routine]:
    """Compile the missing kernels, and yield each when it is done."""
    for routine in pending():
        if not is_cached(routine.name):  # another process may have compiled it meanwhile
            with no_collection():
                build(routine)
        yield routine
    if (place := folder()) is not None:
        with suppress(OSError):  # of which the cache has warned, or it is there
            create(place / _COMPLETE, 0o600).close()


def in_background() -> None:
    """Start a process that compiles the missing kernels, unless one is running; it outlives this one."""
    if not can_start():
        return
    place = folder()
    if place is None:
        return
    try:
        make_folder(place)
        if _is_held(place / BuildLock.NAME):
            return
    except OSError as reason:
        message = f"compiled kernels cannot be cached in {place}: {reason.strerror or reason}; numpy is used instead of numba"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return
    _notify(
        "compiling kernels for this machine in the background (once); numpy is used until compilation ends"
    )
    with suppress(OSError):
        start_in_background(__package__.rpartition(".")[0])


class BuildLock:
    """A lock file of the process that compiles the kernels."""

    NAME = "building"

    @classmethod
    @contextmanager
    def acquire(cls) -> Iterator[bool]:
        """Yield whether this process got the lock, and release it afterwards.

        If the build fails, the lock stays until it is stale, so that not every program tries again at once.
        """
        place = folder()
        if place is None:
            yield False
            return
        make_folder(place)
        path = place / cls.NAME
        if _is_held(path):
            yield False
            return
        path.unlink(missing_ok=True)  # a stale one
        with create(path, 0o600) as file:
            file.write(str(os.getpid()).encode())
        yield True
        path.unlink(missing_ok=True)


def _is_held(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime < _TIMEOUT
    except FileNotFoundError:
        return False


def _notify(text: str) -> None:
    """Print a text if there is a terminal, within its width."""
    if sys.stderr is not None and sys.stderr.isatty():
        width = max(shutil.get_terminal_size().columns, _NARROWEST)
        print(textwrap.fill(f"ir_runtime: {text}", width, subsequent_indent="  "), file=sys.stderr)
