"""The cache of compiled kernels: where it lies, and which of its files are trusted.

The folder is ``IR_RUNTIME_CACHE``, else the user's cache folder by the conventions of the system. What lies in it
depends on the version of this package, on the source of the kernels, on numba and LLVM, on the processor, and on the
kind of vectors. Each routine is a file of its own that begins with the SHA-256 of its machine code.

Whoever can write such a file can run code as the user who loads it. So folders are made with mode 0700 and files with
0600, and what does not belong to the user (or to root, as in an image that root builds), or what others may write to,
is refused, as is a path that is not absolute. Then there is one warning, and kernels are compiled in memory.
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
from ....files import part
from ..codegen.language import Routine
from .target import TARGET

__all__ = ["folder", "is_kept", "keep", "make_folder", "read"]

_DIGEST = hashlib.sha256().digest_size
_NOT_FOLLOWED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

_WAY_OUT = "set IR_RUNTIME_CACHE to the absolute path of a folder that only you can write to"


class Refused(OSError):
    """What lies in the cache, or is to lie there, cannot be trusted."""


def folder() -> Path | None:
    """Where machine code of these kernels for this processor is kept; ``None`` where no place can be trusted."""
    try:
        place = _place()
        for known in (place.parent, place):
            if os.path.lexists(known):
                _check(os.lstat(known), known, stat.S_ISDIR)
    except OSError as reason:
        _warn_once(f"compiled kernels cannot be kept: {_why(reason)}; {_WAY_OUT}")
        return None
    return place


def is_kept(routine: Routine) -> bool:
    """Whether there is machine code of a routine."""
    place = folder()
    return place is not None and _file(place, routine).exists()


def read(routine: Routine) -> bytes | None:
    """The machine code of a routine, if it is there, can be trusted, and is whole."""
    place = folder()
    if place is None:
        return None
    path = _file(place, routine)
    try:
        with open(os.open(path, os.O_RDONLY | _NOT_FOLLOWED), "rb") as file:
            _check(os.fstat(file.fileno()), path, stat.S_ISREG)
            data = file.read()
    except Refused as reason:
        _warn_once(f"a compiled kernel is not used: {reason}; it is made anew")
        return None
    except OSError:
        return None
    code = data[_DIGEST:]
    return code if hashlib.sha256(code).digest() == data[:_DIGEST] else None


def keep(routine: Routine, code: bytes) -> None:
    """Keep the machine code of a routine, if that can be done."""
    place = folder()
    if place is None:
        return
    try:
        try:
            _write(place, routine, code)
        except OSError as reason:
            if reason.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            _free(place)
            _write(place, routine, code)
    except OSError as reason:
        message = f"compiled kernels cannot be kept in {place}: {_why(reason)}; each process makes its own"
        _warn_once(message)


def make_folder(place: Path) -> None:
    """Make the folder for the user alone.

    Raises:
        OSError: if that cannot be done, or something else stands there.
    """
    for path in (place.parent, place):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check(os.lstat(path), path, stat.S_ISDIR)


def _write(place: Path, routine: Routine, code: bytes) -> None:
    make_folder(place)
    target = _file(place, routine)
    with part(target, mode=0o600) as (fresh, file):
        file.write(hashlib.sha256(code).digest() + code)
        file.flush()
        file.close()
        os.replace(fresh, target)


def _free(place: Path) -> None:
    """Remove the kernels of other versions, sources and processors; they can be made again."""
    for other in place.parent.iterdir():
        if other != place:
            shutil.rmtree(other, ignore_errors=True)


def _file(place: Path, routine: Routine) -> Path:
    return place / f"{routine.name}.o"


def _place() -> Path:
    """The folder by environment and conventions.

    Raises:
        Refused: if it would depend on the working directory, or the user has no home folder.
    """
    given = os.environ.get("IR_RUNTIME_CACHE")
    if given:
        home, name = Path(given) / "ir_runtime", "IR_RUNTIME_CACHE"
    else:
        home, name = _usual(), "the user's cache folder"
    if not home.is_absolute():
        raise Refused(f"{name} must be an absolute path, got {str(home.parent)!r}")
    return home / f"{__version__}-{TARGET.name}-{_fingerprint():08x}"


def _usual() -> Path:
    from platformdirs import user_cache_path

    try:
        return user_cache_path("ir_runtime", appauthor=False)
    except RuntimeError as reason:  # as in a container whose user is in no list of users
        raise Refused(f"the user has no home folder ({reason})") from None


def _check(found: os.stat_result, path: Path, is_kind: Callable[[int], bool]) -> None:
    """Require a folder or file that nobody but the user, or root, can have written.

    Raises:
        Refused: saying what is wrong.
    """
    if not is_kind(found.st_mode):
        raise Refused(f"{path} is not a {'folder' if is_kind is stat.S_ISDIR else 'regular file'}")
    if not hasattr(os, "geteuid"):  # where the user's folders have access lists
        return
    if found.st_uid not in (os.geteuid(), 0):
        raise Refused(f"{path} belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o022:
        raise Refused(f"{path} may be written by others (mode {stat.S_IMODE(found.st_mode):04o})")


@cache
def _fingerprint() -> int:
    """A number that changes with all that machine code follows from."""
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
    """What decides how its objects lie in memory."""
    return f"{sys.platform} {sys.implementation.cache_tag} {getattr(sys, 'abiflags', '')}"


def _why(reason: OSError) -> str:
    return reason.strerror or str(reason)


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)
