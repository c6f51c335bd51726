"""How many threads share a layer, and starting them.

One pool only: while a plan runs, BLAS keeps to one thread, and numba's threads do the rest.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numba
from numba.np.ufunc.parallel import threading_layer

from ..numpy._threads import single_blas
from ..threads import most

__all__ = ["running", "threads"]


def _find_tbb() -> None:
    """Load tbb where pip put it, as numba does not look there."""
    for name in ("libtbb.so.12", "libtbb.12.dylib"):
        path = Path(sys.prefix) / "lib" / name
        if path.exists():
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


_find_tbb()

# Of numba's ways to start threads, workqueue ends the process when two threads of Python run at once.
_ALONE = threading.RLock()


# Asking numba takes a microsecond, so it is asked once for a run.
_RUN = threading.local()


def threads() -> int:
    """How many threads share a layer of the run that is going on."""
    return getattr(_RUN, "threads", 0) or int(numba.get_num_threads())


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Around a run: BLAS on one thread, and runs one after the other where they must not overlap."""
    with single_blas(), _ALONE if _is_fragile() else contextlib.nullcontext():
        before, usual = getattr(_RUN, "threads", 0), int(numba.get_num_threads())
        _RUN.threads = most(usual)
        numba.set_num_threads(_RUN.threads)
        try:
            yield
        finally:
            _RUN.threads = before
            numba.set_num_threads(usual)


def _is_fragile() -> bool:
    try:
        return bool(threading_layer() == "workqueue")  # type: ignore[no-untyped-call]
    except ValueError:  # nothing has run in parallel yet
        return not _has("tbbpool") and not _has("omppool")


def _has(layer: str) -> bool:
    from importlib import import_module

    try:
        import_module(f"numba.np.ufunc.{layer}")
    except ImportError:
        return False
    return True
