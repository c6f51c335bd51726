"""``-o``: saved outputs, their names, and atomic writing."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from harness.nets import chain, net, parameter, passing, result, write, write_chain

from ir_runtime._util.escaping import name_of_member
from ir_runtime.cli import main, outputs

Invoke = Callable[[str], Result]
Check = Callable[..., Result]

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
Y = (X + np.array([1, 2, 3])) * 10


@pytest.fixture
def model(folder: Path) -> Path:
    np.save("x.npy", X)
    return write_chain(folder)


def names_in(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_saves_an_npz(model: Path, check: Check) -> None:
    check("save_npz", "run chain.xml -i x.npy -o out.npz --layers shift")
    with np.load("out.npz") as found:
        assert list(found) == ["y", "shift"]
        assert found["y"].tolist() == Y.tolist()
        assert found["shift"].tolist() == (Y / 10).tolist()
        assert found["y"].dtype == np.float32


def test_saves_a_folder(model: Path, folder: Path, invoke: Invoke) -> None:
    found = invoke("run chain.xml -i x.npy -o out/ --layers shift --json")
    assert found.stderr == "saved 2 tensors to out\n"
    assert names_in(folder / "out") == ["shift.npy", "y.npy"]
    assert np.load("out/y.npy").tolist() == Y.tolist()
    record = json.loads(found.stdout)
    assert record["outputs"][0]["file"] == str(Path("out", "y.npy"))
    assert record["layers"][0]["file"] == str(Path("out", "shift.npy"))


def test_overwrites_what_it_saved_and_leaves_the_rest(model: Path, folder: Path, invoke: Invoke) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "y.npy").write_text("old")
    (folder / "out" / "mine.txt").write_text("keep")
    assert invoke("run chain.xml -i x.npy -o out/").exit_code == 0
    assert np.load("out/y.npy").tolist() == Y.tolist()
    assert names_in(folder / "out") == ["mine.txt", "y.npy"]
    assert [p.name for p in folder.iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize("path", [".", "./", "../here", "new/"])
def test_folders_may_be_named_in_any_way(
    model: Path, folder: Path, invoke: Invoke, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    assert invoke(f"run ../chain.xml -i ../x.npy -o {path}").exit_code == 0
    assert np.load(Path(path) / "y.npy").tolist() == Y.tolist()
    assert [f for f in names_in(folder) if not f.endswith("/y.npy")] == ["chain.bin", "chain.xml", "x.npy"]


def test_equal_results_are_equal_files(model: Path, folder: Path, invoke: Invoke) -> None:
    for name in ("one.npz", "two.npz"):
        assert invoke(f"run chain.xml -i x.npy -o {name}").exit_code == 0
    assert (folder / "one.npz").read_bytes() == (folder / "two.npz").read_bytes()
    with zipfile.ZipFile("one.npz") as archive:
        assert {member.date_time[0] for member in archive.infolist()} == {1980}, "no time of day in it"


@posix
@pytest.mark.parametrize(("path", "file"), [("out.npz", "out.npz"), (".", "y.npy")])
def test_a_file_is_replaced_not_written_over(
    model: Path, folder: Path, invoke: Invoke, path: str, file: str
) -> None:
    (folder / file).write_text("old")
    os.link(folder / file, folder / "reader")
    assert invoke(f"run chain.xml -i x.npy -o {path}").exit_code == 0
    assert (folder / "reader").read_text() == "old", "who has the old file open keeps it whole"


@posix
def test_files_have_the_usual_permissions(model: Path, folder: Path, invoke: Invoke) -> None:
    invoke("run chain.xml -i x.npy -o out.npz")
    (folder / "plain").touch()
    assert (folder / "out.npz").stat().st_mode == (folder / "plain").stat().st_mode


def test_names_of_tensors_stay_inside_the_folder(folder: Path, invoke: Invoke) -> None:
    awkward = ["../up", "a/b", "a:b", "A_B", "..", "file", "長い", "n" * 400]
    count = len(awkward)
    layers = [parameter(i, name, "1") for i, name in enumerate(awkward)]
    layers += [result(count + i, "1") for i in range(count)]
    write(folder, net(layers, [(i, 0, count + i, 0) for i in range(count)]))
    found = invoke("run net.xml --random -o out/ --json")
    assert found.exit_code == 0, found.stderr
    files = [record["file"] for record in json.loads(found.stdout)["outputs"]]
    assert len({file.casefold() for file in files}) == count
    assert {Path(file).parent for file in files} == {Path("out")}
    assert all(Path(file).is_file() for file in files)
    assert [Path(f).name for f in files[:7]] == [
        "_up.npy",
        "a_b.npy",
        "a_b_2.npy",
        "A_B_3.npy",
        "_.npy",
        "file.npy",
        "__.npy",
    ]
    assert names_in(folder) == sorted(["net.xml", *files])
    assert invoke("run net.xml --random -o out.npz").exit_code == 0
    with np.load("out.npz") as archive:
        assert set(map(name_of_member, archive)) == set(awkward)
        assert not any(".." in name.split("/") for name in archive.files)
    assert invoke("run net.xml -i out.npz").exit_code == 0, "names are read as they were"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("no_folder", "none/out.npz"),
        ("a_folder", "taken.npz"),
        ("a_file", "chain.xml"),
        ("file_as_folder", "chain.xml/"),
        ("no_form", "out"),
        ("several", "out.npy --layers shift -i x.npy"),
    ],
)
def test_a_path_that_cannot_be_is_refused_first(
    model: Path, folder: Path, check: Check, name: str, path: str
) -> None:
    (folder / "taken.npz").mkdir()
    found = check(f"save_{name}", f"run chain.xml -o {path}")
    assert (found.exit_code, found.stdout) == (2, "")


@pytest.mark.parametrize("path", ["out.npz", "out/", "out.npy"])
def test_nothing_is_left_behind_when_saving_fails(
    model: Path, folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    write(folder, chain())
    before = names_in(folder)

    def full(file: object, array: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(outputs, "write_npy", full)
    found = invoke(f"run chain.xml -i x.npy -o {path}")
    assert found.exit_code == 5
    assert found.stderr == "error: No space left on device\n"
    assert found.stdout == ""
    assert names_in(folder) == before
    assert not (folder / path).exists()


def test_a_failed_run_does_not_touch_what_is_there(model: Path, folder: Path, invoke: Invoke) -> None:
    (folder / "out.npz").write_text("old")
    assert invoke("run chain.xml -i none.npy -o out.npz").exit_code == 2
    assert (folder / "out.npz").read_text() == "old"


def test_a_model_may_give_back_its_own_input(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("f32", "2,3"))
    np.savez("x.npz", x=X)
    assert invoke("run net.xml -i x.npz -o x.npz").exit_code == 0
    with np.load("x.npz") as found:
        assert found["x"].tolist() == X.tolist()


def test_one_output_is_one_npy(model: Path, invoke: Invoke) -> None:
    assert invoke("run chain.xml -i x.npy -o out.npy").stderr == "saved 1 tensor to out.npy\n"
    assert np.load("out.npy").tolist() == Y.tolist()


@pytest.mark.parametrize("layers", ["", "--layers shift"])
def test_results_are_streamed(model: Path, invoke: Invoke, layers: str) -> None:
    """One output as .npy, several as .npz; the table then goes to stderr."""
    found = invoke(f"run chain.xml -i x.npy -o - {layers}")
    array = np.load(io.BytesIO(found.stdout_bytes))
    assert (array["y"] if layers else array).tolist() == Y.tolist()
    assert found.stderr.startswith("saved")
    assert "Outputs, numpy backend" in found.stderr
    assert invoke("run chain.xml -i x.npy -o - --json").exit_code == 2


def test_inputs_are_streamed(model: Path, invoke: Invoke) -> None:
    given = (Path.cwd() / "x.npy").read_bytes()
    found = CliRunner().invoke(main, ["run", "chain.xml", "-i", "-", "-o", "out.npy"], input=given)
    assert found.exit_code == 0, found.stderr
    assert np.load("out.npy").tolist() == Y.tolist()


@posix
def test_arrays_are_not_for_terminals(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.terminals import on_terminal

    assert "stdout is a terminal" in on_terminal(monkeypatch, "run chain.xml -i x.npy -o -")


@pytest.mark.parametrize("path", ["out.npz", "out.npy", "out/"])
def test_a_target_that_cannot_be_written_has_its_own_name(
    model: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    found = invoke(f"run chain.xml -o {path}")
    assert (found.exit_code, found.stdout) == (2, "")
    assert f"'{path}' cannot be written: the folder" in found.stderr
    monkeypatch.undo()
    monkeypatch.chdir(model.parent)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", ".out.1234.part")

    monkeypatch.setattr("ir_runtime._util.files.open", refuse, raising=False)
    monkeypatch.setattr(Path, "mkdir", refuse)
    found = invoke(f"run chain.xml -i x.npy -o {path}")
    assert (found.exit_code, found.stderr) == (5, f"error: {path.rstrip('/')}: Permission denied\n")


def test_oracle_saves_alike(model: Path, invoke: Invoke) -> None:
    assert invoke("oracle chain.xml -i x.npy -o out").exit_code == 2
    assert invoke("oracle chain.xml -i x.npy -o out.npy").exit_code == 0
    assert np.load("out.npy").tolist() == Y.tolist()
    streamed = invoke("oracle chain.xml -i x.npy -o -")
    assert np.load(io.BytesIO(streamed.stdout_bytes)).tolist() == Y.tolist()
