"""``ir-runtime cache``: what is kept is shown, removed and moved; other files are left alone."""

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

CURRENT, OLD = "0.1.0-avx2-00000001", "0.0.9-avx512-abcdef01"


@pytest.fixture
def kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder with kernels, old ones, results of debugging, and files of others."""
    monkeypatch.setenv("IR_RUNTIME_CACHE", str(folder / "here"))
    place = folder / "here" / "ir_runtime"
    for name in (CURRENT, OLD, "debug/net", "mine"):
        (place / name).mkdir(parents=True)
        (place / name / "file").write_bytes(b"1234")
    monkeypatch.setattr("ir_runtime.cli.cache._current_kernels", lambda: place / CURRENT, raising=True)
    return place


def record(found: Result) -> Any:
    assert found.exit_code == 0, found.stderr
    return json.loads(found.stdout)


def test_what_is_kept_is_shown(kept: Path, invoke: Invoke) -> None:
    found = record(invoke("cache --json"))
    assert found["folder"] == str(kept)
    assert [(each["what"], Path(each["folder"]).name) for each in found["kept"]] == [
        ("old kernels", OLD),
        ("kernels", CURRENT),
        ("debugging", "debug"),
    ]
    assert {(each["files"], each["bytes"]) for each in found["kept"]} == {(1, 4)}
    assert [line.split() for line in invoke("cache").stdout.splitlines()[2:]] == [
        ["kernels", CURRENT, "1", "4"],
        ["debugging", "debug", "1", "4"],
        ["old", "kernels", "1", "folder", "1", "4"],
        ["total", "3", "12"],
    ]


@pytest.mark.parametrize(
    ("what", "left"),
    [
        ("old", {CURRENT, "debug", "mine"}),
        ("kernels", {"debug", "mine"}),
        ("debug", {CURRENT, OLD, "mine"}),
        ("all", {"mine"}),
    ],
)
def test_what_is_asked_for_is_removed(kept: Path, invoke: Invoke, what: str, left: set[str]) -> None:
    found = invoke(f"cache --clean {what}")
    assert {path.name for path in kept.iterdir()} == left
    assert (
        found.stderr
        == f"removed {4 - len(left)} folder{'s' if len(left) < 3 else ''}, {4 * (4 - len(left))} bytes\n"
    )


def test_all_is_moved(kept: Path, folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    found = invoke("cache --move there")
    assert found.stderr.endswith(f"IR_RUNTIME_CACHE={folder / 'there'}\n")
    assert {path.name for path in kept.iterdir()} == {"mine"}
    monkeypatch.setenv("IR_RUNTIME_CACHE", str(folder / "there"))
    assert len(record(invoke("cache --json"))["kept"]) == 3
    assert user_cache() == folder / "there" / "ir_runtime"
    assert cache_folder(None) == folder / "there" / "ir_runtime" / "debug"


def test_nothing_kept_is_said(folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_RUNTIME_CACHE", str(folder))
    monkeypatch.setattr("ir_runtime.cli.cache._current_kernels", lambda: None)
    assert invoke("cache").stdout == f"nothing is kept in {folder / 'ir_runtime'}\n"
