"""Collections of garbage where pytest has millions of objects: of what a test has made alone, and of large networks."""

from __future__ import annotations

import gc
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Bounded", "only_new_objects"]

GROWTH = 1 << 30
OPENED = 200
"""Files: many systems let a process have 1024."""
_PAGES = Path("/proc/self/statm")
_OPEN = Path("/proc/self/fd")


@contextmanager
def only_new_objects() -> Iterator[None]:
    """Leave what is there out of collections: with the millions of objects that pytest has, each takes seconds."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class Bounded:
    """A plugin that frees networks when a process has grown by them, or has many of their files open.

    They refer to themselves, and the more objects there are, the later does Python look at the old ones.
    """

    def __init__(self) -> None:
        self._before, self._open = _resident(), _open_files()

    def pytest_runtest_logfinish(self) -> None:
        """Collect garbage if the tests since the last time have taken much memory, or left many files open."""
        if _resident() > self._before + GROWTH or _open_files() > self._open + OPENED:
            gc.collect()
            self._before, self._open = _resident(), _open_files()


def _resident() -> int:
    """How many bytes of this process are in memory; 0 where the system does not say."""
    return int(_PAGES.read_text().split()[1]) * mmap.PAGESIZE if _PAGES.exists() else 0


def _open_files() -> int:
    """How many files this process has open; 0 where the system does not say."""
    return len(os.listdir(_OPEN)) if _OPEN.exists() else 0
