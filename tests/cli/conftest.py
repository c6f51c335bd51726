"""Fixtures for the command line: an empty working directory, and comparison of outputs with snapshots."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ir_runtime.cli import main, progress

SNAPSHOTS = Path(__file__).parents[1] / "snapshots" / "cli"

# On a busy machine, each run would be one that takes long; tests of bars set another delay.
progress.DELAY = 600.0

Invoke = Callable[[str], Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, so that messages have short paths."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def invoke(folder: Path) -> Invoke:
    """Run a command line in the folder."""
    return lambda line: CliRunner().invoke(main, shlex.split(line))


@pytest.fixture
def check(invoke: Invoke) -> Callable[..., Result]:
    """Run a command line and compare its whole output with a snapshot.

    ``UPDATE_SNAPSHOTS=1 pytest tests/cli`` rewrites the snapshots; review the difference.
    """

    def compare(name: str, line: str, hide: Callable[[str], str] = str) -> Result:
        found = invoke(line)
        said = hide(
            f"$ ir-runtime {line}\n{found.stdout}--- stderr\n{found.stderr}--- exit {found.exit_code}\n"
        )
        path = SNAPSHOTS / f"{name}.txt"
        if os.environ.get("UPDATE_SNAPSHOTS"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(said, encoding="utf-8")
        assert said == path.read_text(encoding="utf-8")
        return found

    return compare
