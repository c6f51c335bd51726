"""Install releases of OpenVINO from PyPI, each with a suitable Python, and ask them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ir_runtime.releases.release import WHEELS

__all__ = ["FOLDER", "ask", "install", "is_installed"]

CHILD = Path(__file__).with_name("child.py")

FOLDER = Path(os.environ.get("IR_RUNTIME_TEST_RELEASES", "out/releases"))
"""Where ``make releases`` installs releases."""


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def is_installed(folder: Path) -> bool:
    """Return whether a folder holds a usable release."""
    return (folder / "installed").exists()


def install(release: str, folder: Path) -> None:
    """Install a release into a folder, for the newest Python with a wheel of it.

    Raises:
        SystemExit: if there is none.
    """
    if is_installed(folder):
        return
    for python in pythons():
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        command = [_python(folder), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", f"openvino=={WHEELS[release]}"]  # fmt: skip
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            (folder / "installed").touch()
            return
    sys.exit(
        f"no Python here has a wheel of openvino {WHEELS[release]}; 3.8 has those up to 2024.4, 3.12 the rest"
    )


@cache
def pythons() -> Sequence[Path]:
    """Return the Pythons of this machine, newest first: those of pyenv, and those on the path."""
    folders = [*Path.home().glob(".pyenv/versions/*/bin"), *map(Path, os.get_exec_path())]
    found: dict[tuple[int, ...], Path] = {}
    for folder in folders:
        for path in folder.glob("python3.*"):
            if version := re.fullmatch(r"python3\.(\d+)", path.name):
                found.setdefault((int(version[1]),), path)
    return [found[version] for version in sorted(found, reverse=True)]


def ask(folder: Path, questions: Sequence[str]) -> Sequence[Mapping[str, Any]]:
    """Return a release's answers to probes, from a cache if possible; a crash counts as an error.

    Raises:
        SystemExit: if the release cannot be asked.
    """
    memory = folder / "answers.json"
    known: dict[str, Mapping[str, Any]] = json.loads(memory.read_text()) if memory.exists() else {}
    digests = list(map(_digest, questions))
    new = {digest: line for digest, line in zip(digests, questions, strict=True) if digest not in known}
    if new:
        known |= dict(zip(new, _asked(folder, list(new.values())), strict=True))
        memory.write_text(json.dumps(known))
    return [known[digest] for digest in digests]


def _digest(question: str) -> str:
    """Return a key of a probe's model, independent of its features."""
    probe = json.loads(question) | {"features": []}
    return hashlib.sha256(json.dumps(probe, sort_keys=True).encode()).hexdigest()[:32]


def _asked(folder: Path, questions: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    probes, answers = folder / "questions", folder / "answers"
    probes.write_text("".join(f"{line}\n" for line in questions), encoding="utf-8")
    answers.unlink(missing_ok=True)
    start = 0
    while start < len(questions):
        command = [_python(folder), CHILD, probes, answers, str(start)]
        subprocess.run(command, capture_output=True, check=False)
        lines = answers.read_text(encoding="utf-8").splitlines() if answers.exists() else []
        if len(lines) <= start:
            sys.exit(f"{folder} cannot be asked: {' '.join(map(str, command))} says why")
        if lines[-1].partition(" ")[2] == "":
            lines[-1] = f'{lines[-1].strip()} {{"error": "crash"}}'
            answers.write_text("".join(f"{line}\n" for line in lines))
        start = len(lines)
    for line in answers.read_text(encoding="utf-8").splitlines():
        yield json.loads(line.partition(" ")[2])
