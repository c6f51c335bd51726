"""The sources of kernels: a fingerprint of all files in this package that machine code depends on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache

__all__ = ["fingerprint", "is_source_tree"]

_PACKAGE = os.path.dirname(os.path.dirname(__file__))


@cache
def is_source_tree() -> bool:
    """Return whether kernels can be built here: wheels lack the compiler and contain libraries built from their sources."""
    return os.path.isdir(os.path.join(_PACKAGE, "build"))


@cache
def fingerprint() -> bytes:
    """Return a cryptographic hash of the names and contents of all Python files of this package."""
    return _hash(_PACKAGE)


def _hash(folder: str) -> bytes:
    digest = hashlib.sha256()
    for name, path in _files(folder):
        with open(path, "rb", buffering=0) as file:
            code = file.readall()
        digest.update(f"{name} {len(code)}\n".encode() + code)
    return digest.digest()


def _files(folder: str, inside: str = "") -> Iterator[tuple[str, str]]:
    """Yield the Python files in and below a folder, sorted by name: their relative paths, and their locations."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = f"{inside}/{entry.name}"
            if entry.name.endswith(".py"):
                yield name, entry.path
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path, name)
