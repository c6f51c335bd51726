"""Collections of garbage where pytest has millions of objects: of what a test has made alone, and of large networks."""

from __future__ import annotations

import gc
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Bounded", "only_new_objects"]

GROWTH = 1 << 30
_PAGES = Path("/proc/self/statm")


@contextmanager
def only_new_objects() -> Iterator[None]:
    """Leave what is there out of collections: with the millions of objects that pytest has, each takes seconds."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class Bounded:
    """A plugin that frees networks when a process has grown by them.

    They refer to themselves, and the more objects there are, the later does Python look at the old ones.
    """

    def __init__(self) -> None:
        self._before = _resident()

    def pytest_runtest_logfinish(self) -> None:
        """Collect garbage if the tests since the last time have taken much memory."""
        if _resident() > self._before + GROWTH:
            gc.collect()
            self._before = _resident()


def _resident() -> int:
    """How many bytes of this process are in memory; 0 where the system does not say."""
    return int(_PAGES.read_text().split()[1]) * mmap.PAGESIZE if _PAGES.exists() else 0
