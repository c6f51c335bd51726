"""Garbage collection where pytest has millions of objects: they are left out, and large networks are freed in time."""

from __future__ import annotations

import gc
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["Bounded", "nothing_frozen", "only_new_objects"]

GROWTH = 1 << 30
OPENED = 200
"""Files: many systems let a process have 1024."""
_PAGES = Path("/proc/self/statm")
_OPEN = Path("/proc/self/fd")


@contextmanager
def only_new_objects() -> Iterator[None]:
    """Leave objects that exist out of collections, for good; those made inside can be told apart from them."""
    gc.collect()
    gc.freeze()
    yield


@contextmanager
def nothing_frozen() -> Iterator[None]:
    """Let collections visit every object, as in a program that freezes none; each takes a second then."""
    gc.collect()
    gc.unfreeze()
    try:
        yield
    finally:
        gc.freeze()


class Bounded:
    """A plugin that keeps collections of garbage short, and frees networks when a process has grown by them.

    Collected tests are millions of objects that live until the end, and each full collection would take a second to
    visit them. Networks refer to themselves, and the more objects there are, the later does Python look at the old ones.
    """

    def __init__(self) -> None:
        self._before, self._open = _resident(), _open_files()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Leave all that collecting tests has made out of collections of garbage."""
        gc.collect()
        gc.freeze()

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
