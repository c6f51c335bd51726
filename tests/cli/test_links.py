"""No command writes through a symbolic link: such targets are refused, and the linked file is unchanged."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from harness.nets import write_chain

Invoke = Callable[[str], Result]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links need no privileges on POSIX systems only")

COMMANDS = {
    "run an npy": ("run chain.xml -i x.npy -o out.npy", "out.npy"),
    "run an npz": ("run chain.xml -i x.npy -o out.npz", "out.npz"),
    "run a folder": ("run chain.xml -i x.npy -o out/", "out"),
    "run a file of a folder": ("run chain.xml -i x.npy -o here/", "here/y.npy"),
    "run by rows": ("run chain.xml -i x.npy -o out.npy --batch 2 --scheduler threads", "out.npy"),
    "run by rows to zarr": ("run chain.xml -i x.npy -o out.zarr --batch 2 --scheduler threads", "out.zarr"),
    "resume": ("run chain.xml -i x.npy -o out.npy --batch 2 --scheduler threads --resume", "out.npy.manifest.jsonl"),
    "oracle": ("oracle chain.xml -i x.npy -o out.npy", "out.npy"),
    "report": ("report chain.xml", "report.html"),
    "graph": ("graph chain.xml -o chain.dot", "chain.dot"),
    "profile": ("profile chain.xml --runs 1 --chrome trace.json", "trace.json"),
    "bench": ("bench chain.xml -i x.npy -niter 1 -report_type no_counters", "benchmark_report.csv"),
    "reduce": ("reduce chain.xml --against numpy -i x.npy -o found", "found"),
}  # fmt: skip
"""What writes a file, and to which name."""


@pytest.fixture
def model(folder: Path) -> Path:
    np.save("x.npy", np.ones((2, 3), np.float32))
    os.mkdir("here")
    return write_chain(folder)


def contents(folder: Path) -> dict[str, bytes | str]:
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("to", ["victim", "missing"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_target_that_is_a_link_is_refused(
    model: Path, folder: Path, invoke: Invoke, command: str, to: str
) -> None:
    line, target = COMMANDS[command]
    victim = folder / "elsewhere" / to
    if Path(target).suffix in ("", ".zarr"):
        victim.mkdir(parents=True)
    else:
        victim.parent.mkdir()
    if to == "victim" and not victim.is_dir():
        victim.write_bytes(b"mine")
    (folder / target).symlink_to(victim)
    before = contents(folder)
    found = invoke(line)
    assert found.exit_code == 2
    assert any(
        text in found.stderr for text in ("is a symbolic link, and nothing", "exists", "is there already")
    )
    assert found.stderr.count("error") == 1
    assert contents(folder) == before


@pytest.mark.parametrize("link", ["mine.part", "out.npy.part", "out.npy"])
def test_resume_touches_only_what_its_manifest_names(
    model: Path, folder: Path, invoke: Invoke, link: str
) -> None:
    """Formerly it deleted each ``*.part`` in the folder, and wrote to any file or link with the result's name."""
    line = "run chain.xml -i x.npy -o out.npy --batch 2 --scheduler threads"
    assert invoke(line).exit_code == 0
    result = (folder / "out.npy").read_bytes()
    manifest = folder / "out.npy.manifest.jsonl"
    manifest.write_text(manifest.read_text().splitlines()[0] + "\n")
    (folder / "out.npy").rename(folder / "victim.npy")
    (folder / "victim.npy").write_bytes(b"\1" * len(result))
    (folder / "notes.part").write_bytes(b"mine")
    (folder / link).symlink_to("victim.npy")
    before = contents(folder)
    found = invoke(f"{line} --resume")
    assert found.exit_code == 2, found.output
    assert "is missing: the rows that" in found.stderr or "is not what the run of" in found.stderr
    assert contents(folder) == before
