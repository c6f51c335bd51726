"""Files are written by one module: atomically, never through links; leftovers of killed processes are removed."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from harness.sources import PACKAGE, trees

from ir_runtime import InputError
from ir_runtime._util.files import (
    create,
    remove,
    rename,
    reopen,
    replace_files,
    replace_in_folder,
    temporary_file,
    write_npy,
    write_raw,
)
from ir_runtime.cli.outputs import save

posix = pytest.mark.skipif(os.name != "posix", reason="it needs signals that cannot be caught")

WRITING = """
import signal, sys, time
from pathlib import Path
from ir_runtime._util.files import replace_files
with replace_files(*map(Path, sys.argv[1:])) as files:
    for file in files:
        file.write(b"half")
        file.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


def writing(*targets: Path) -> subprocess.Popen[str]:
    """A process in the middle of writing files."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITING, *map(str, targets)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(*targets: Path) -> None:
    with replace_files(*targets) as files:
        for file in files:
            file.write(b"whole")


@posix
def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    targets = tmp_path / "m.bin", tmp_path / "m.xml"
    with writing(*targets) as process:
        process.send_signal(signal.SIGKILL)
    assert len(names(tmp_path)) == 2
    write(*targets)
    assert names(tmp_path) == ["m.bin", "m.xml"]


@posix
def test_what_another_process_is_writing_stays(tmp_path: Path) -> None:
    target = tmp_path / "m.xml"
    with writing(target) as process:
        before = set(names(tmp_path))
        write(target)
        assert set(names(tmp_path)) == {*before, "m.xml"}
        process.kill()
    write(target)
    assert names(tmp_path) == ["m.xml"]


def test_files_of_other_targets_stay(tmp_path: Path) -> None:
    others = [
        ".m.xml.part",
        ".m.xml.12345678.old",
        ".n.xml.12345678.part",
        ".m.xml.notes123.part",
        "m.xml.12345678.part",
    ]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / ".m.xml.12345678.part").touch()
    write(tmp_path / "m.xml")
    assert names(tmp_path) == sorted([*others, "m.xml"])


def test_folders_that_were_left_are_removed(tmp_path: Path) -> None:
    left = tmp_path / ".tensors.0123abcd.part"
    left.mkdir()
    (left / "x.npy").touch()
    save(tmp_path / "tensors", {"x": np.zeros(3)})
    assert names(tmp_path) == ["tensors"]
    left = tmp_path / "tensors" / ".all.0123abcd.part"
    left.mkdir()
    save(tmp_path / "tensors", {"x": np.zeros(3)})
    assert names(tmp_path / "tensors") == ["x.npy"]


def test_a_part_is_gone_unless_it_was_moved(tmp_path: Path) -> None:
    with temporary_file(tmp_path / "x", mode=0o600) as (path, file):
        file.write(b"1")
        if os.name == "posix":
            assert path.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == []


@posix
def test_a_pipe_with_the_name_of_a_part_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".m.xml.12345678.part")
    write(tmp_path / "m.xml")
    assert "m.xml" in names(tmp_path)


@posix
@pytest.mark.parametrize("to", ["victim", "nothing", "folder", "/dev/null", "pipe"])
def test_nothing_is_written_through_links(tmp_path: Path, to: str) -> None:
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    link = tmp_path / "link"
    link.symlink_to(to)
    before = names(tmp_path)
    with pytest.raises(InputError, match="symbolic link"), replace_files(link):
        pass
    with pytest.raises(InputError, match="symbolic link"), replace_in_folder(link):
        pass
    with pytest.raises(InputError, match="symbolic link"):
        reopen(link)
    with pytest.raises(FileExistsError):
        create(link)
    with pytest.raises(InputError, match="exists"):
        rename(tmp_path / "victim", link)
    assert names(tmp_path) == before
    assert link.readlink() == Path(to)
    assert (tmp_path / "victim").read_bytes() == b"mine"
    remove(link)
    assert names(tmp_path) == sorted({*before} - {"link"})


@posix
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_link_that_appears_while_a_file_is_written_is_replaced(tmp_path: Path, when: str) -> None:
    (tmp_path / "victim").write_bytes(b"mine")
    target = tmp_path / "m.xml"
    if when == "after":
        target.write_bytes(b"former")
    with replace_files(target) as (file,):
        file.write(b"whole")
        target.unlink(missing_ok=True)
        target.symlink_to("victim")
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert not target.is_symlink()
    assert target.read_bytes() == b"whole"


@posix
def test_a_link_that_appears_after_the_check_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("victim", "regular", "link"):
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("victim")
    found = os.lstat(tmp_path / "regular")
    monkeypatch.setattr(os, "lstat", lambda path: found)
    with pytest.raises(OSError, match="symbolic links"):
        reopen(tmp_path / "link")


@posix
@pytest.mark.parametrize("kind", ["pipe", "folder", "hard link"])
def test_what_is_not_the_only_name_of_a_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        (tmp_path / "victim").touch()
        os.link(tmp_path / "victim", path)
    with pytest.raises(InputError, match="hard link" if kind == "hard link" else "not a regular file"):
        reopen(path)


def test_folders_are_not_left_half_written(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_bytes(b"former")
    for target in (tmp_path / "out", tmp_path / "new"):
        with pytest.raises(OSError, match="full"), replace_in_folder(target) as stage:  # noqa: PT012
            for name in "ab":
                with create(stage / name) as file:
                    file.write(b"whole")
            raise OSError("full")
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["a"]
    assert (tmp_path / "out" / "a").read_bytes() == b"former"


def test_files_of_a_folder_change_together(tmp_path: Path) -> None:
    (tmp_path / "out" / "b").mkdir(parents=True)
    (tmp_path / "out" / "a").write_bytes(b"former")
    with pytest.raises(InputError, match="is a folder"), replace_in_folder(tmp_path / "out") as stage:  # noqa: PT012
        for name in "ab":
            with create(stage / name) as file:
                file.write(b"whole")
    assert (tmp_path / "out" / "a").read_bytes() == b"former"
    assert names(tmp_path / "out") == ["a", "b"]


@pytest.mark.parametrize("dtype", ["f4", "?", "<U3", "S2", "V2", "i8", ">f8"])
@pytest.mark.parametrize("shape", [(), (0, 3), (4,), (3, 5), (2, 3, 4)])
@pytest.mark.parametrize("change", ["as it is", "transposed", "every other", "read-only"])
def test_arrays_are_written_as_numpy_writes_them(dtype: str, shape: tuple[int, ...], change: str) -> None:
    array = np.frombuffer(bytes(range(120)) * 8, np.uint8)[: 16 * 24].view(np.dtype(dtype).str)
    array = np.resize(array, shape)
    if change == "transposed":
        array = array.T
    elif change == "every other" and shape:
        array = array[::2]
    array.flags.writeable = change != "read-only"
    ours, theirs, raw = BytesIO(), BytesIO(), BytesIO()
    write_npy(ours, array)
    np.save(theirs, array)
    write_raw(raw, array)
    assert ours.getvalue() == theirs.getvalue()
    assert raw.getvalue() == array.tobytes()


# What opens a file for writing, and the position of its mode, or of what stands for the file.
_WRITERS = {"write_text", "write_bytes", "touch", "open_memmap", "copyfile", "copy", "copy2", "copytree"}
_NUMPYS = {"tofile", "save", "write_array"}  # which lose bytes on a full disk
_OF_FILES = {"savez", "savez_compressed", "ZipFile"}
_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"}


def _writes(call: ast.Call) -> bool:
    """Return whether a call may open a file for writing."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = getattr(call.func.value, "id", "") if isinstance(call.func, ast.Attribute) else ""
    first = call.args[0] if call.args else None
    if ast.unparse(call.func).startswith("super()."):
        return False
    if name in _WRITERS:
        return name not in ("copy", "copy2") or owner == "shutil"
    if name in _NUMPYS:
        return name != "save" or owner == "np"
    if name == "ZipFile" and len(call.args) + len(call.keywords) == 1:
        return False  # it is read
    if name in _OF_FILES:
        is_opened = isinstance(first, ast.Name) and first.id == "file"
        return not is_opened
    if name == "open" and owner == "os":
        flags = {node.attr for node in ast.walk(call) if isinstance(node, ast.Attribute)}
        return bool(flags & _FLAGS) and "devnull" not in flags
    if name in ("open", "fdopen", "memmap"):
        position = {"open": 0 if owner else 1, "fdopen": 1, "memmap": 2}[name]
        modes = [*call.args[position : position + 1], *(k.value for k in call.keywords if k.arg == "mode")]
        return any(isinstance(mode, ast.Constant) and {*str(mode.value)} & {*"wax+"} for mode in modes)
    return False


def test_files_are_opened_for_writing_in_one_module_only() -> None:
    """That module refuses links and cleans up after errors."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _writes(node) and path.name != "files.py"
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('open(path, "wb")', True),
        ("open(path)", False),
        ('path.open("a")', True),
        ('path.open("rb")', False),
        ('archive.open(member, "w")', False),
        ('open(path, mode="r+b")', True),
        ("os.open(path, os.O_RDONLY)", False),
        ("os.open(path, os.O_WRONLY | os.O_CREAT)", True),
        ("os.open(os.devnull, os.O_WRONLY)", False),
        ("array.tofile(path)", True),
        ("array.tofile(file)", True),
        ("np.savez(file, array)", False),
        ("zipfile.ZipFile(path)", False),
        ('zipfile.ZipFile(path, "w")', True),
        ("np.save(path, array)", True),
        ("page.save(path)", False),
        ('np.memmap(path, of, "r")', False),
        ('np.memmap(path, of, "r+")', True),
        ("path.touch()", True),
    ],
)
def test_calls_that_write_are_told_from_others(code: str, expected: bool) -> None:
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    assert _writes(call) is expected
