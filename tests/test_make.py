"""`make` checks what it installs, and its rules work in any folder."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import check_torch
from harness.snapshots import same_as_before

ROOT = Path(__file__).parents[1]
WORKS = "def nms(*arguments): return []"
FAILS = "raise RuntimeError('operator torchvision::nms does not exist')"
FAILS_LATER = "def nms(*arguments): raise RuntimeError('no compiled operators')"


def fake(folder: Path, package: str, version: str, **modules: str) -> None:
    """Write a package as installed by pip."""
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (folder / package).mkdir()
    for name, code in modules.items():
        (folder / package / f"{name}.py").write_text(code)


@pytest.mark.parametrize("ops", [WORKS, FAILS, FAILS_LATER])
def test_a_torchvision_of_another_torch_is_named(ops: str, tmp_path: Path) -> None:
    fake(tmp_path, "torch", "2.14.1+cpu", __init__="def zeros(*lengths): return lengths")
    fake(tmp_path, "torchvision", "0.29.1", __init__="from . import ops", ops=ops)
    done = subprocess.run(
        [sys.executable, check_torch.__file__],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == ""
    if ops == WORKS:
        assert (done.returncode, done.stderr) == (0, "")
        return
    assert done.returncode == 1
    said = done.stderr.replace(sys.executable, "VENV/bin/python").replace(sys.prefix, "VENV")
    if ops == FAILS:
        same_as_before("make_torch", said)
    else:
        assert "torchvision 0.29.1: RuntimeError: no compiled operators\n" in said


def test_a_package_that_is_not_there_is_named() -> None:
    assert check_torch.installed("no_such_package") == "no no_such_package"


def make(folder: Path, *arguments: str, **settings: str) -> str:
    """Return the output of make in a folder, isolated from the make that runs these tests."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--no-print-directory", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=alone | settings, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("group", ["zoo", "clients"])
def test_torch_is_checked_before_it_counts_as_installed(group: str) -> None:
    stamp = {"zoo": "no_such_venv/zoo", "clients": "no_such_clients/ready"}[group]
    planned = make(ROOT, "-n", stamp, "VENV=no_such_venv", "CLIENTS=no_such_clients")
    installed, checked, stamped = (
        planned.index(text) for text in (f"--group {group}", "check_torch.py", f"touch {stamp}")
    )
    assert installed < checked < stamped


def test_the_checkout_may_lie_in_a_folder_with_spaces(tmp_path: Path) -> None:
    checkout = tmp_path / "my models"
    checkout.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, checkout)
    words = shlex.split(make(checkout, "-n", "oracle", "clients"), comments=True)
    assert f"IR_RUNTIME_ZOO={checkout}/out/zoo" in words
    assert f"{checkout}/out/clients" in words


def test_settings_of_other_programs_do_not_reach_the_tools() -> None:
    settings = {
        "PYTHONOPTIMIZE": "1",
        "PYTHONPATH": "/elsewhere",
        "PYTHONSAFEPATH": "1",
        "PYTHONWARNINGS": "error",
    }
    shown = make(ROOT, "--eval", "environment: ; @env", "environment", **settings)
    names = {line.partition("=")[0] for line in shown.splitlines()}
    assert "PATH" in names
    assert names & set(settings) == set()
