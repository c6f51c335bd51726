"""Tests do not depend on user settings, on their order, or on the limit of open files."""

from __future__ import annotations

import io
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import session

from ir_runtime.cli import exits

SETTINGS = {
    "COLUMNS": "47",
    "FORCE_COLOR": "1",
    "IR_RUNTIME_BACKEND": "reference",
    "IR_RUNTIME_TARGET": "x86-64-v3",
    "IR_RUNTIME_TRACEBACK": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",
    "PYTHONWARNINGS": "ignore",
}
PLACES = {"IR_RUNTIME_CACHE": "/cache", "IR_RUNTIME_ZOO": "/zoo", "PYTHONHASHSEED": "0"}
PROGRAM = "import sys; sys.path.append(sys.argv[1]); import conftest, os; print(*os.environ, os.umask(0), sep='\\n')"


def test_settings_of_the_user_do_not_reach_tests() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(Path(__file__).parent)],
        env={**os.environ, **SETTINGS, **PLACES},
        capture_output=True,
        text=True,
        check=True,
        umask=0o077,
    )
    left = set(done.stdout.splitlines())
    assert left & set(SETTINGS) == {"IR_RUNTIME_BACKEND"}
    assert set(PLACES) <= left
    assert done.stdout.splitlines()[-1] == str(0o022)


class Holder:
    """An open memory file, like weights, in a reference cycle."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self.pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.itself = self


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not say which files are open")
def test_files_that_garbage_holds_are_closed_before_there_are_too_many() -> None:
    with session.only_new_objects():
        plugin = session.Bounded()
        for _ in range(session.OPENED + 1):
            Holder(Path(__file__))
        before = len(os.listdir("/proc/self/fd"))
        plugin.pytest_runtest_logfinish()
    assert len(os.listdir("/proc/self/fd")) <= before - session.OPENED // 2


def next_descriptor() -> int:
    found = os.open(os.devnull, os.O_RDONLY)
    os.close(found)
    return found


def test_a_reader_that_is_gone_leaves_no_file_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    before = next_descriptor()
    exits._abandon_stdout()
    assert next_descriptor() == before
