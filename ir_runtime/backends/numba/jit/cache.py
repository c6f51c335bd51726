"""The cache of compiled kernels: its directory, and which of its files are trusted.

It is ``IR_RUNTIME_CACHE``, else the user's cache folder by the conventions of the system. The subfolder depends on the
version of this package, the source of the kernels, numba and LLVM, the processor, and the vector target. Each routine is
a file that begins with the SHA-256 of its machine code.

Anyone who can write such a file can run code as the user who loads it. So folders are created with mode 0700 and files with
0600; a path that is not absolute, or that belongs to another user (root excepted, as in an image that root builds), or
that others can write to is refused, with one warning, and kernels are compiled in memory.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import sys
import warnings
import zlib
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from ...._version import __version__
from ....files import temporary_file
from ....user_cache import chosen_cache, user_cache
from ..codegen.target import TARGET

__all__ = ["HINT", "folder", "is_cached", "load", "make_folder", "store"]

_DIGEST = hashlib.sha256().digest_size
_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

HINT = "set IR_RUNTIME_CACHE to the absolute path of a folder that only you can write to"


class UntrustedCacheError(OSError):
    """A path of the cache that is not trusted."""


def folder() -> Path | None:
    """Return the folder for these kernels on this processor; ``None`` if it cannot be trusted."""
    try:
        place = _path()
        for known in (place.parent, place):
            if os.path.lexists(known):
                _check(os.lstat(known), known, stat.S_ISDIR)
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
            _check(os.fstat(file.fileno()), path, stat.S_ISREG)
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
    for path in (place.parent, place):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check(os.lstat(path), path, stat.S_ISDIR)


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
    return home / f"{__version__}-{TARGET.name}-{_fingerprint():08x}"


def _check(found: os.stat_result, path: Path, is_kind: Callable[[int], bool]) -> None:
    """Check that only the user, or root, can have written a folder or file.

    Raises:
        UntrustedCacheError: with the reason.
    """
    if not is_kind(found.st_mode):
        raise UntrustedCacheError(
            f"{path} is not a {'folder' if is_kind is stat.S_ISDIR else 'regular file'}"
        )
    if not hasattr(os, "geteuid"):  # Windows: access lists protect the user's folders
        return
    if found.st_uid not in (os.geteuid(), 0):
        raise UntrustedCacheError(f"{path} belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o022:
        raise UntrustedCacheError(f"{path} may be written by others (mode {stat.S_IMODE(found.st_mode):04o})")


@cache
def _fingerprint() -> int:
    """Return a checksum of everything that machine code depends on."""
    compiler = find_spec("numba")
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    if compiler is not None and compiler.origin is not None:
        files.append(Path(compiler.origin))
    stamps = [f"{file.name} {(found := file.stat()).st_size} {found.st_mtime_ns}" for file in files]
    features = llvm.get_host_cpu_features().flatten()
    return zlib.crc32(
        " ".join([*stamps, llvmlite.__version__, llvm.get_host_cpu_name(), features, _interpreter()]).encode()
    )


def _interpreter() -> str:
    """Return what the layout of the interpreter's objects depends on."""
    return f"{sys.platform} {sys.implementation.cache_tag} {getattr(sys, 'abiflags', '')}"


def _reason(reason: OSError) -> str:
    return reason.strerror or str(reason)


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)
