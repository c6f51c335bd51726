"""``ir-runtime cache`` shows, removes and moves cached results, and leaves other files alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from ir_runtime._util.user_cache import user_cache
from ir_runtime.cli.long import cache_folder

Invoke = Callable[[str], Result]


@pytest.fixture
def kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder with debugging results and unrelated files."""
    monkeypatch.setenv("IR_RUNTIME_CACHE", str(folder / "here"))
    place = folder / "here" / "ir_runtime"
    for name in ("debug/net", "mine"):
        (place / name).mkdir(parents=True)
        (place / name / "file").write_bytes(b"1234")
    return place


def record(found: Result) -> Any:
    assert found.exit_code == 0, found.stderr
    return json.loads(found.stdout)


def test_what_is_kept_is_shown(kept: Path, invoke: Invoke) -> None:
    found = record(invoke("cache --json"))
    assert found["folder"] == str(kept)
    assert [(each["what"], Path(each["folder"]).name) for each in found["kept"]] == [
        ("debugging", "debug"),
    ]
    assert {(each["files"], each["bytes"]) for each in found["kept"]} == {(1, 4)}
    assert [line.split() for line in invoke("cache").stdout.splitlines()[2:]] == [
        ["debugging", "debug", "1", "4"],
        ["total", "1", "4"],
    ]


def test_what_is_kept_is_removed(kept: Path, invoke: Invoke) -> None:
    found = invoke("cache --clean")
    assert {path.name for path in kept.iterdir()} == {"mine"}
    assert found.stderr == "removed 1 folder, 4 bytes\n"


def test_all_is_moved(kept: Path, folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    found = invoke("cache --move there")
    assert found.stderr.endswith(f"IR_RUNTIME_CACHE={folder / 'there'}\n")
    assert {path.name for path in kept.iterdir()} == {"mine"}
    monkeypatch.setenv("IR_RUNTIME_CACHE", str(folder / "there"))
    assert len(record(invoke("cache --json"))["kept"]) == 1
    assert user_cache() == folder / "there" / "ir_runtime"
    assert cache_folder(None) == folder / "there" / "ir_runtime" / "debug"


def test_nothing_kept_is_said(folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_RUNTIME_CACHE", str(folder))
    assert invoke("cache").stdout == f"nothing is kept in {folder / 'ir_runtime'}\n"
