"""What the numba backend needs around it: the package, a folder for compiled kernels, a kind of vectors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness.snapshots import same_as_before

import ir_runtime as ir
from ir_runtime import backends
from ir_runtime.backends.numba import _compile, _target


def test_without_numba_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_missing", lambda name: "numba" if name == "numba" else None)
    assert "numba" not in backends.available()
    with pytest.raises(ir.InputError) as caught:
        backends.load("numba")
    same_as_before("messages/numba_missing", str(caught.value))


def test_an_unknown_kind_of_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_RUNTIME_VECTORS", "mmx")
    with pytest.raises(ir.InputError) as caught:
        _target._chosen()
    same_as_before("messages/numba_vectors", str(caught.value))


def test_a_folder_that_cannot_be_written_is_only_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("IR_RUNTIME_CACHE", str(blocked))
    with pytest.warns(RuntimeWarning) as caught:
        assert _compile.folder() is None
    said = str(caught[0].message).replace(str(tmp_path), "…")
    same_as_before("messages/numba_folder", re.sub(r"ir_runtime/\S+:", "ir_runtime/VERSIONS:", said))


def test_the_folder_depends_on_versions_sources_and_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IR_RUNTIME_CACHE", str(tmp_path))
    found = _compile.folder()
    assert found is not None
    assert found.is_relative_to(tmp_path)
    assert re.fullmatch(rf"{ir.__version__}-numba[\d.]+-{_target.TARGET.name}-[0-9a-f]{{8}}", found.name)
    monkeypatch.setattr(_compile, "_source", lambda: 1)
    assert _compile.folder() != found
