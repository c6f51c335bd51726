"""NumPy's own OpenBLAS: its threads, and the kind of its kernels."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np

from ....forks import registered

__all__ = ["Blas", "kernels"]

# More threads than this wait for the interpreter more than they compute.
MOST = 8


class Blas:
    """The number of threads of NumPy's own OpenBLAS, if that is what NumPy came with."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before = 0
        self._runs: dict[object, int] = {}
        """The runs that hold it to one thread now, and the thread of each."""
        self._get, self._set = _function("get_num_threads"), _function("set_num_threads")
        registered(self)

    @property
    def held(self) -> bool:
        """Whether runs hold it to one thread now."""
        return bool(self._runs)

    @property
    def threads(self) -> int:
        return min(self._get(), MOST) if self._get is not None and not self._runs else 1

    @contextlib.contextmanager
    def single(self) -> Iterator[None]:
        """Keep to one thread; the last of several runs at once restores what was before the first.

        An interrupt may come after any call, so nothing is called between noting that a run holds it and that
        taking effect. One that keeps it from being released is followed by another attempt.
        """
        if self._set is None or self._get is None:
            yield
            return
        run, me = object(), get_ident()
        try:
            with self._lock:
                before = 0 if self._runs else self._get()
                self._before = before or self._before
                self._runs[run] = me
                if before:
                    self._set(1)
            yield
        finally:
            try:
                self._release(run)
            except BaseException:
                self._release(run)
                raise

    def _release(self, run: object) -> None:
        with self._lock:
            if run in self._runs:
                del self._runs[run]
                if not self._runs:
                    self._set(self._before)

    @contextlib.contextmanager
    def several(self, count: int) -> Iterator[None]:
        """Inside the only run that goes on, let it use so many threads after all."""
        allowed = False
        try:
            with self._lock:
                allowed = self._set is not None and len(self._runs) == 1 and count > 1
                if allowed:
                    self._set(count)
            yield
        finally:
            if allowed:
                with self._lock:
                    if self._runs:  # an interrupt may have ended the run first
                        self._set(1)

    def after_fork(self) -> None:
        """Runs of other threads hold it no more."""
        self._lock, me = threading.Lock(), get_ident()
        held = self.held
        self._runs = {run: thread for run, thread in self._runs.items() if thread == me}
        if held and not self._runs:
            self._set(self._before)


def kernels() -> str:
    """What processors the kernels in use are made for, such as ``SkylakeX``; empty if it is not known."""
    name = _function("get_corename")
    if name is None:
        return ""
    name.restype = ctypes.c_char_p
    return bytes(name()).decode()


@cache
def _function(name: str) -> Any:
    """A function of the OpenBLAS that NumPy came with, or ``None``."""
    place = Path(np.__file__).parent
    for folder in (place.parent / "numpy.libs", place / ".dylibs"):
        for file in folder.glob("*openblas*"):
            with contextlib.suppress(OSError, AttributeError):
                suffix = "64_" if "64_" in file.name else ""
                return getattr(ctypes.CDLL(str(file)), f"scipy_openblas_{name}{suffix}")
    return None
