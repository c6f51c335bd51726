"""Control the number of threads of NumPy's OpenBLAS, and detect whether it uses AVX-512."""

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

from ..._util.cores import parallelism
from ..._util.forks import register
from ..._util.scoped import Scope

__all__ = ["AVX512", "Blas"]

# Beyond this many threads, waiting for the GIL outweighs the gain.
MAX_THREADS = 8
# The cores for which OpenBLAS has AVX-512 micro-kernels.
AVX512_CORES = {"SkylakeX", "Cooperlake", "SapphireRapids"}


class Blas:
    """Controls the number of threads of NumPy's OpenBLAS; has no effect with another BLAS."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before = 0
        self._runs: dict[object, int] = {}
        """The runs that currently limit BLAS to one thread, with the id of the Python thread of each."""
        self._get, self._set = _function("get_num_threads"), _function("set_num_threads")
        self.single = Scope(self._limit, self._release)
        """Limits BLAS to one thread; the last of several concurrent runs restores the previous number."""
        register(self)

    @property
    def limited(self) -> bool:
        """Whether a run currently limits BLAS to one thread."""
        return bool(self._runs)

    @property
    def threads(self) -> int:
        """The number of threads of the next BLAS call, at most `MAX_THREADS` and the number of usable cores; 1 while limited."""
        return min(self._get(), MAX_THREADS, parallelism()) if self._get is not None and not self._runs else 1

    def _limit(self, run: object) -> None:
        """Limit BLAS to one thread while a run lasts: the begin of the scope `single`."""
        if self._set is None or self._get is None:
            return
        me = get_ident()
        with self._lock:
            before = 0 if self._runs else self._get()
            self._before = before or self._before
            self._runs[run] = me
            if before > 1:
                self._set(1)

    def _release(self, run: object, interrupted: bool) -> None:
        with self._lock:
            if run in self._runs:
                del self._runs[run]
                if not self._runs and self._before > 1:
                    self._set(self._before)

    @contextlib.contextmanager
    def several(self, count: int) -> Iterator[None]:
        """Let BLAS use ``count`` threads in the block if exactly one run limits it; otherwise, change nothing."""
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
                    if self._runs:  # an interrupt may have ended the run already
                        self._set(1)

    def after_fork(self) -> None:
        """Drop the runs of threads that a forked process does not have."""
        self._lock, me = threading.Lock(), get_ident()
        limited = self.limited
        self._runs = {run: thread for run, thread in self._runs.items() if thread == me}
        if limited and not self._runs:
            self._set(self._before)


def core_name() -> str:
    """Return the processor that OpenBLAS's kernels target, such as ``SkylakeX``, or an empty string if unknown."""
    name = _function("get_corename")
    if name is None:
        return ""
    name.restype = ctypes.c_char_p
    return bytes(name()).decode()


@cache
def _function(name: str) -> Any:
    """Return a C function of the OpenBLAS in NumPy's wheel, or ``None`` if NumPy has another BLAS or the function is missing."""
    place = Path(np.__file__).parent
    for folder in (place.parent / "numpy.libs", place / ".dylibs"):
        for file in folder.glob("*openblas*"):
            with contextlib.suppress(OSError, AttributeError):
                suffix = "64_" if "64_" in file.name else ""
                return getattr(ctypes.CDLL(str(file)), f"scipy_openblas_{name}{suffix}")
    return None


AVX512 = core_name() in AVX512_CORES
