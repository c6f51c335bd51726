"""NumPy's own OpenBLAS: its threads, and the kind of its kernels."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Blas", "kernels"]

# More threads than this wait for the interpreter more than they compute.
MOST = 8


class Blas:
    """The number of threads of NumPy's own OpenBLAS, if that is what NumPy came with."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.runs = self._before = 0
        """How many runs hold it to one thread now."""
        self._get, self._set = _function("get_num_threads"), _function("set_num_threads")

    @property
    def threads(self) -> int:
        return min(self._get(), MOST) if self._get is not None and not self.runs else 1

    @contextlib.contextmanager
    def single(self) -> Iterator[None]:
        """Keep to one thread; the last of several runs at once restores what was before the first."""
        if self._set is None or self._get is None:
            yield
            return
        entered = False
        try:  # from here on, for an interrupt may come at any time
            with self._lock:
                if not self.runs:
                    self._before = self._get()
                    self._set(1)
                self.runs += 1
                entered = True
            yield
        finally:
            with self._lock:
                self.runs -= entered
                if not self.runs and self._before:
                    self._set(self._before)

    @contextlib.contextmanager
    def several(self, count: int) -> Iterator[None]:
        """Inside the only run that goes on, let it use so many threads after all."""
        with self._lock:
            allowed = self._set is not None and self.runs == 1 and count > 1
            if allowed:
                self._set(count)
        try:
            yield
        finally:
            if allowed:
                with self._lock:
                    self._set(1)


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
