"""What a killed process leaves on its way to a file is removed by the next one; what others are writing is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ir_runtime.cli.saving import save
from ir_runtime.files import replacing, temporary_file

posix = pytest.mark.skipif(os.name != "posix", reason="it needs signals that cannot be caught")

WRITING = """
import signal, sys, time
from pathlib import Path
from ir_runtime.files import replacing
with replacing(*map(Path, sys.argv[1:])) as files:
    for file in files:
        file.write(b"half")
        file.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


def writing(*targets: Path) -> subprocess.Popen[str]:
    """A process that is in the middle of writing files."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITING, *map(str, targets)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(*targets: Path) -> None:
    with replacing(*targets) as files:
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
