"""Files are replaced atomically and together, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime._util import files
from ir_runtime.io import writer

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def adding(number: float, count: int = 3) -> ir.Model:
    """Return a model that computes x + number, with weights that differ for each number."""
    net = Net(name=f"plus {number}")
    x = net.parameter("x", str(count), out=f"FP32 {count}")
    weights = net.constant(np.full(count, number), "f32")
    net.result(net.op("Add", x, weights, out=f"FP32 {count}", name="y"))
    return ir.read_model(net.xml(), net.weights)


def added(path: Path) -> float:
    """Return the number that the model at a path adds."""
    model = ir.read_model(path)
    number = ir.compile_model(model)(np.zeros(3, np.float32))[0].tolist()[0]
    assert model.name == f"plus {int(number)}", "the .xml has its own weights"
    return number


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ir.save_model(adding(1), tmp_path / "m.xml")
    return tmp_path / "m.xml"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_model_is_saved_over_the_files_it_lives_in(path: Path) -> None:
    model = ir.read_model(path)
    model.add_outputs("y")
    model.friendly_name = "another"
    constants = ir.read_model(path).constant("const")
    for _ in range(3):
        ir.save_model(model, path)
    ir.save_model(adding(2), path)
    assert constants.tolist() == [1, 1, 1], "who has mapped the former weights keeps them"
    ir.save_model(model, path)
    assert ir.read_model(path).constant("const").tolist() == [1, 1, 1]
    assert names(path.parent) == ["m.bin", "m.xml"]


@posix
def test_weights_that_stay_the_same_stay_where_they_are(path: Path) -> None:
    before = path.with_suffix(".bin").stat().st_ino, path.stat().st_ino
    model = ir.read_model(path)
    model.friendly_name = "renamed"
    ir.save_model(model, path)
    after = path.with_suffix(".bin").stat().st_ino, path.stat().st_ino
    assert after[0] == before[0]
    assert after[1] != before[1]


class Interrupting:
    """Raises an interrupt at the n-th call of a function, before or after it."""

    def __init__(self, function: Callable[..., Any], call: int, after: bool, error: BaseException) -> None:
        self.function, self.left, self.after, self.error = function, call, after, error

    def __call__(self, *args: Any) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise self.error
        found = self.function(*args)
        if self.left == 0:
            raise self.error
        return found


ERRORS = {"full": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "stopped": KeyboardInterrupt()}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", [1, 2, 3, 4])
@pytest.mark.parametrize("former", [("m.bin", "m.xml"), ("m.bin",), ("m.xml",), ()], ids=len)
def test_stopped_while_files_change_places(
    path: Path, former: tuple[str, ...], call: int, after: bool, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in {"m.bin", "m.xml"} - set(former):
        (path.parent / name).unlink()
    before = {name: (path.parent / name).read_bytes() for name in names(path.parent)}
    stop = Interrupting(os.replace, call, after, ERRORS[error])
    monkeypatch.setattr(files.os, "replace", stop)
    if call > 2 + len(former):
        ir.save_model(adding(2), path)
        assert added(path) == 2
    else:
        with pytest.raises(KeyboardInterrupt if error == "stopped" else ir.InputError):
            ir.save_model(adding(2), path)
        assert {name: (path.parent / name).read_bytes() for name in names(path.parent)} == before


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("where", ["place", "element"])
def test_stopped_while_writing(path: Path, where: str, error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    part = {"place": writer.WeightsWriter, "element": writer.Printer}[where]
    stop = Interrupting(getattr(part, where), 1, True, ERRORS[error])
    monkeypatch.setattr(part, where, lambda *args: stop(*args))
    with pytest.raises(KeyboardInterrupt if error == "stopped" else ir.InputError) as caught:
        ir.save_model(adding(2), path)
    if error == "full":
        assert str(caught.value) == (
            f"error[IR404]: '{path}' cannot be saved: No space left on device\n  hint: nothing was changed"
        )
    assert names(path.parent) == ["m.bin", "m.xml"]
    assert added(path) == 1


def test_nobody_sees_files_that_do_not_belong_together(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every step, a reader sees the old model, the new one, or none."""
    seen: list[float | None] = []
    replace = os.replace

    def watched(*args: Any) -> None:
        replace(*args)
        seen.append(added(path) if path.exists() else None)

    monkeypatch.setattr(files.os, "replace", watched)
    ir.save_model(adding(2), path)
    ir.save_model(adding(3), path.with_name("m.xml"))
    path.unlink()
    path.with_suffix(".bin").unlink()
    ir.save_model(adding(4), path)
    assert seen == [None, None, None, 2, None, None, None, 3, None, 4]


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_folder_that_must_not_be_written_to(path: Path) -> None:
    path.parent.chmod(0o500)
    try:
        with pytest.raises(ir.InputError, match="Permission denied"):
            ir.save_model(adding(2), path)
    finally:
        path.parent.chmod(0o700)
    assert added(path) == 1


def test_a_file_system_that_refuses(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **how: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files, "open", refuse, raising=False)
    with pytest.raises(ir.InputError, match=r"m\.xml' cannot be saved: Permission denied"):
        ir.save_model(adding(2), path)
    assert added(path) == 1


@posix
def test_modes_are_those_of_ordinary_files(path: Path) -> None:
    (path.parent / "plain").touch()
    assert path.stat().st_mode == (path.parent / "plain").stat().st_mode
    path.chmod(0o640)
    ir.save_model(adding(2), path)
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.with_suffix(".bin").stat().st_mode == (path.parent / "plain").stat().st_mode


@posix
@pytest.mark.parametrize("suffix", [".xml", ".bin"])
def test_links_are_refused(path: Path, tmp_path: Path, suffix: str) -> None:
    link, real = path.with_suffix(suffix), tmp_path / "elsewhere" / f"real{suffix}"
    real.parent.mkdir()
    shutil.move(link, real)
    link.symlink_to(real)
    before = real.read_bytes()
    with pytest.raises(ir.InputError, match="symbolic link") as caught:
        ir.save_model(adding(2), path)
    assert str(real) in caught.value.hint
    assert link.readlink() == real
    assert real.read_bytes() == before
    assert added(path) == 1
    assert names(tmp_path) == ["elsewhere", "m.bin", "m.xml"]


@posix
def test_what_is_no_ordinary_file_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.bin")
    with pytest.raises(ir.InputError, match="is not a regular file"):
        ir.save_model(adding(2), tmp_path / "m.xml")
    assert names(tmp_path) == ["m.bin"]


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / f"{'長' * 80}.xml"
    ir.save_model(adding(2), path)
    ir.save_model(adding(3), path)
    assert added(path) == 3


def test_files_in_different_folders(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    xml, weights = tmp_path / "m.xml", tmp_path / "weights" / "m.raw"
    ir.serialize(adding(2), xml, weights)
    assert names(tmp_path) == ["m.xml", "weights"]
    assert ir.read_model(xml, weights).constant("const").tolist() == [2, 2, 2]
