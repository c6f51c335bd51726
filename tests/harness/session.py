"""Configuration of a test run: kernels, environment, selection, order, number of examples, and memory."""

from __future__ import annotations

import gc
import mmap
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from inspect import isfunction
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

__all__ = [
    "TARGET",
    "Bounded",
    "Chosen",
    "build_kernels",
    "examples",
    "forget_settings",
    "long_ones_first",
    "nothing_frozen",
    "only_new_objects",
]


def build_kernels() -> None:
    """Build the library for this processor unless it exists; without the build tools, tests of the backend are skipped."""
    from ir_runtime import backends  # once settings are forgotten

    if backends._lack() is None or not find_spec("llvmlite") or not find_spec("ziglang"):
        return
    subprocess.run([sys.executable, "-m", "ir_runtime.backends.native.build"], check=False)
    backends._lack.cache_clear()


TARGET = "IR_RUNTIME_TEST_TARGET"
"""The name of the target whose kernels tests run on, if that is not the best one of the processor."""

# What Python does; modules of the tests are found by pytest's own setting.
_PYTHON = "PYTHON(?!UNBUFFERED|HASHSEED|PYCACHEPREFIX|DONTWRITEBYTECODE).*"
# What this package does: kept are where things lie, and what tests tell tests that they start.
_PACKAGE = "_?IR_RUNTIME_(?!CACHE|ZOO|TEST_).*"
# How wide and colourful programs write.
_TERMINAL = "COLUMNS|LINES|PAGER|LESS|NO_COLOR|FORCE_COLOR|CLICOLOR.*|PY_COLORS|TTY_(COMPATIBLE|INTERACTIVE)"
# How libraries compute, and on how many threads. NumPy, which pytest's plugin of the package loads before, has chosen its kernels
# by then: processes that tests start choose the same, as tests compare their results bit for bit.
_LIBRARIES = "(DASK|OMP|MKL|OPENBLAS(?!_(CORETYPE|L2_SIZE|BLOCK_FACTOR)$)|ZARR|HDF5|OV|OPENVINO)_.*"
_SETTINGS = re.compile(f"{_PYTHON}|{_PACKAGE}|{_TERMINAL}|{_LIBRARIES}")


def forget_settings() -> None:
    """Remove our variables from the environment of this process and its children, and set the usual umask.

    Variables by which tests configure the test runs that they start are kept.
    """
    os.umask(0o022)
    for name in list(os.environ):
        if _SETTINGS.fullmatch(name):
            del os.environ[name]
    if target := os.environ.get(TARGET):
        os.environ["IR_RUNTIME_TARGET"] = target


GROWTH = 1 << 30
OPENED = 200
"""Files: many systems let a process have 1024."""
_PAGES = Path("/proc/self/statm")
_OPEN = Path("/proc/self/fd")


@contextmanager
def only_new_objects() -> Iterator[None]:
    """Freeze existing objects for good, so that garbage collections visit only those made inside the block."""
    gc.collect()
    gc.freeze()
    yield


@contextmanager
def nothing_frozen() -> Iterator[None]:
    """Unfreeze all objects inside the block, as in a program that freezes none; each collection then takes a second."""
    from ir_runtime._util import scoped

    gc.collect()
    gc.unfreeze()
    seen, scoped._is_frozen = scoped._is_frozen, False
    try:
        yield
    finally:
        scoped._is_frozen = seen
        gc.freeze()


class Bounded:
    """A plugin that keeps garbage collections short, and collects when the process has grown.

    Collected tests are millions of objects that live until the end, which each full collection would visit. Networks contain
    reference cycles, and the more objects there are, the more rarely Python collects the old ones.
    """

    def __init__(self) -> None:
        self._before, self._open = _resident(), _open_files()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Exclude the objects made by test collection from garbage collections."""
        gc.collect()
        gc.freeze()

    def pytest_runtest_logfinish(self) -> None:
        """Collect garbage if the tests since the last collection have taken much memory or left many files open."""
        if _resident() > self._before + GROWTH or _open_files() > self._open + OPENED:
            gc.collect()
            self._before, self._open = _resident(), _open_files()


def _resident() -> int:
    """Return the resident memory of this process in bytes; 0 if unknown."""
    return int(_PAGES.read_text().split()[1]) * mmap.PAGESIZE if _PAGES.exists() else 0


def _open_files() -> int:
    """Return the number of open files of this process; 0 if unknown."""
    return len(os.listdir(_OPEN)) if _OPEN.exists() else 0


class Chosen:
    """A plugin for runs of all tests with a mark, or of all without it; it skips generating the others.

    Args:
        mark: the name of the mark.
        wanted: whether tests with the mark are run, or those without it.
    """

    def __init__(self, mark: str, wanted: bool) -> None:
        self._mark, self._wanted = mark, wanted

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(
        self, collector: pytest.Collector, name: str, obj: object
    ) -> list[Any] | None:
        """Return no items for a function none of whose tests is run; None leaves it to pytest."""
        if not name.startswith("test") or not isfunction(obj):
            return None
        marks = [*collector.iter_markers(), *getattr(obj, "pytestmark", ())]
        whole = self._has(marks)
        if self._wanted:
            return None if whole or any(self._is_split(mark) for mark in marks) else []
        return [] if whole else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Drop parameters with the wrong mark, if the mark is on parameters."""
        definition = metafunc.definition
        split = [mark for mark in definition.iter_markers("parametrize") if self._is_split(mark)]
        if self._has(definition.iter_markers()) or len(split) != 1 or split[0] not in definition.own_markers:
            return
        (mark,) = split
        names, sets = mark.args
        # What others are called must not depend on those that are left out.
        if all(isinstance(each, ParameterSet) and each.id is not None for each in sets):
            kept = [each for each in sets if self._has(each.marks) is self._wanted]
            place = definition.own_markers.index(mark)
            definition.own_markers[place] = pytest.mark.parametrize(names, kept, **mark.kwargs).mark

    def _has(self, marks: Iterable[Any]) -> bool:
        return any(mark.name == self._mark for mark in marks)

    def _is_split(self, mark: pytest.Mark) -> bool:
        """Return whether a parametrization has the mark on some of its parameters."""
        sets = mark.args[1] if mark.name == "parametrize" and len(mark.args) == 2 else ()
        return any(isinstance(each, ParameterSet) and self._has(each.marks) for each in sets)


def long_ones_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests with those marked ``long`` at the start of each half, where the two worker processes start.

    Tests of a file stay together. The second half has the files in reverse order, so that both workers seldom build the same
    kernels at once.
    """
    files = list(dict.fromkeys(item.path for item in items if _is_long(item)))
    first, second = set(files[::2]), set(files[1::2])
    begin = [item for item in items if _is_long(item) and item.path in first]
    middle = [item for item in items if _is_long(item) and item.path in second][::-1]
    rest = [item for item in items if not _is_long(item)]
    half = max(len(items) // 2 - len(begin), 0)
    return [*begin, *rest[:half], *middle, *rest[half:]]


def _is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is not None


def examples(usual: int, thorough: int) -> int:
    """Return the number of examples: in a usual run, in a thorough one; doubled when exploring."""
    return {"thorough": thorough, "explore": 2 * thorough}.get(
        os.environ.get("HYPOTHESIS_PROFILE", ""), usual
    )
