"""The cache of compiled kernels: its directory, and which of its files are trusted.

It is ``IR_RUNTIME_CACHE``, else the user's cache folder by the conventions of the system. The subfolder depends on the
version of this package, the contents of the files of the kernels, LLVM, the processor, and the vector target; not on
times or places of files, so that a copy of an installation finds what was compiled for the original. Each routine is
a file that begins with the SHA-256 of its machine code.

Anyone who can write such a file, or put another folder in the place of one that it is in, can run code as the user who loads
it. So folders are created with mode 0700 and files with 0600; a path that is not absolute, or that belongs to another user
(root excepted, as in an image that root builds), or that others can write to is refused, as `check_parents` says of all
folders above it, with one warning, and kernels are compiled in memory.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import llvmlite

from ...._util.files import temporary_file
from ...._util.user_cache import (
    UntrustedCacheError,
    check_own,
    check_parents,
    chosen_cache,
    make_own_folder,
    user_cache,
)
from ...._version import __version__
from ..codegen.target import TARGET

__all__ = ["HINT", "folder", "is_cached", "load", "make_folder", "store"]

_DIGEST = hashlib.sha256().digest_size
_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

HINT = "set IR_RUNTIME_CACHE to the absolute path of a folder that only you can write to"


def folder() -> Path | None:
    """Return the folder for these kernels on this processor; ``None`` if it cannot be trusted."""
    try:
        place = _path()
        if os.path.lexists(place):
            _check_once(place)
        else:
            check_parents(place)
    except OSError as reason:
        _warn_once(f"compiled kernels cannot be cached: {_reason(reason)}; {HINT}")
        return None
    return place


def is_cached(name: str) -> bool:
    """Return whether the cache has machine code under a name."""
    place = folder()
    return place is not None and _file(place, name).exists()


def load(name: str) -> bytes | None:
    """Return the machine code of that name, if it is there, trusted and undamaged."""
    place = folder()
    if place is None:
        return None
    path = _file(place, name)
    try:
        with open(os.open(path, os.O_RDONLY | _OPEN_FLAGS), "rb") as file:
            check_own(os.fstat(file.fileno()), path, stat.S_ISREG)
            data = file.read()
    except UntrustedCacheError as reason:
        _warn_once(f"a compiled kernel is not used: {reason}; it is compiled again")
        return None
    except OSError:
        return None
    code = data[_DIGEST:]
    return code if hashlib.sha256(code).digest() == data[:_DIGEST] else None


def store(name: str, code: bytes) -> None:
    """Store machine code under a name, if possible."""
    place = folder()
    if place is None:
        return
    try:
        try:
            _write(place, name, code)
        except OSError as reason:
            if reason.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            _remove_others(place)
            _write(place, name, code)
    except OSError as reason:
        message = (
            f"compiled kernels cannot be cached in {place}: {_reason(reason)}; each process compiles its own"
        )
        _warn_once(message)


def make_folder(place: Path) -> None:
    """Create the folder, accessible to the user only.

    Raises:
        OSError: if it cannot be created, or is not trusted.
    """
    make_own_folder(place)
    for path in (place.parent, place):
        check_own(os.lstat(path), path, stat.S_ISDIR)
    check_parents(place)


def _write(place: Path, name: str, code: bytes) -> None:
    make_folder(place)
    target = _file(place, name)
    with temporary_file(target, mode=0o600) as (fresh, file):
        file.write(hashlib.sha256(code).digest() + code)
        file.flush()
        file.close()
        os.replace(fresh, target)


def _remove_others(place: Path) -> None:
    """Remove the kernels of other versions, sources and processors; they can be compiled again."""
    for other in place.parent.iterdir():
        if other != place:
            shutil.rmtree(other, ignore_errors=True)


def _file(place: Path, name: str) -> Path:
    return place / f"{name}.o"


def _path() -> Path:
    """Return the folder by environment variable or conventions.

    Raises:
        UntrustedCacheError: if it would depend on the working directory, or the user has no home folder.
    """
    home = user_cache()
    if home is None:
        raise UntrustedCacheError("the user has no home folder")
    if not home.is_absolute():
        name = "the user's cache folder" if chosen_cache() is None else "IR_RUNTIME_CACHE"
        raise UntrustedCacheError(f"{name} must be an absolute path, got {str(home.parent)!r}")
    return home / f"{__version__}-{TARGET.name}-{_fingerprint()}"


@cache
def _check_once(place: Path) -> None:
    """Check an existing folder, and all above it.

    Once is enough: only the user, and root, can change what others may do with folders that have passed.

    Raises:
        UntrustedCacheError: with the reason.
        OSError: if a folder cannot be looked at.
    """
    for path in (place.parent, place):
        check_own(os.lstat(path), path, stat.S_ISDIR)
    check_parents(place)


@cache
def _fingerprint() -> str:
    """Return a cryptographic hash of everything that machine code depends on."""
    digest = hashlib.sha256()
    for name, path in _sources(os.path.dirname(os.path.dirname(__file__))):
        with open(path, "rb", buffering=0) as file:
            code = file.readall()
        digest.update(f"{name} {len(code)}\n".encode() + code)
    processor = TARGET.processor
    rest = [llvmlite.__version__, processor.name, ",".join(processor.features), _interpreter()]
    digest.update("\n".join(rest).encode())
    return digest.hexdigest()[:32]


def _sources(folder: str, inside: str = "") -> Iterator[tuple[str, str]]:
    """Yield the Python files in and below a folder, in the order of their names: their paths in it, and where they are."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = f"{inside}/{entry.name}"
            if entry.name.endswith(".py"):
                yield name, entry.path
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _sources(entry.path, name)


def _interpreter() -> str:
    """Return what the layout of the interpreter's objects depends on."""
    return f"{sys.platform} {sys.implementation.cache_tag} {getattr(sys, 'abiflags', '')}"


def _reason(reason: OSError) -> str:
    return reason.strerror or str(reason)


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)
