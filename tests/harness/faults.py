"""Let one call of the file system fail, of those that the package makes to write files.

    with failing_call(3) as calls:     # the third one raises OSError, as that of a disk that is full
        save()
    assert calls.count >= 3

What removes files is not among them: what is to be cleaned up after a fault would stay, whoever does it.
"""

from __future__ import annotations

import builtins
import errno
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from ir_runtime._util import files

__all__ = ["Calls", "failing_call", "open_files"]

_FUNCTIONS = ("open", "fsync", "replace", "rename", "mkdir")
_METHODS = ("write", "flush", "truncate", "close")


class Calls:
    """The calls so far, of all threads; ``failed`` is the name of the one that failed."""

    def __init__(self, number: int) -> None:
        self.count, self.failed = 0, ""
        self._number, self._lock = number, threading.Lock()

    def fails(self, name: str) -> bool:
        """Count a call; return whether it is to fail."""
        with self._lock:
            self.count += 1
            if self.count == self._number:
                self.failed = name
            return self.count == self._number


def _full(name: str) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)


class _File:
    """An open file whose methods may fail."""

    def __init__(self, file: Any, calls: Calls) -> None:
        self._file, self._calls = file, calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._file, name)
        if name not in _METHODS or self._file.closed:
            return found

        def method(*args: Any) -> Any:
            if not self._calls.fails(name):
                return found(*args)
            if name == "close":  # a file is closed, also where that says that it is not written
                found()
            elif name == "write" and len(args[0]) > 1:  # a disk that is nearly full takes a part
                found(memoryview(args[0]).cast("B")[: len(memoryview(args[0]).cast("B")) // 2])
            raise _full("")

        return method

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._file)


@contextmanager
def failing_call(number: int) -> Iterator[Calls]:
    """Let one call fail, the first being 1; with 0, count them."""
    calls = Calls(number)

    def opened(*args: Any, **options: Any) -> Any:
        return _File(builtins.open(*args, **options), calls)

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller.startswith("ir_runtime.") and calls.fails(name):
                raise _full(str(args[0]))
            return function(*args, **options)

        return call

    with patch.object(files, "open", opened, create=True), ExitStack() as patches:
        for name in _FUNCTIONS:
            patches.enter_context(patch.object(os, name, counted(name, getattr(os, name))))
        yield calls


def open_files() -> set[str]:
    """The files that this process has open, but for what is no file of a folder."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:  # that of the listing
            continue
    return {path for path in found if path.startswith("/") and not path.startswith("/dev/")}
