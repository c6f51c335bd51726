"""Compiling kernels: once for a machine, kept in the user's cache folder.

The folder is ``IR_RUNTIME_CACHE``, else that of the system's convention. What lies in it depends on the
versions of this package and of numba, on the source of the kernels, and on the kind of vectors; numba
itself tells processors apart.
"""

from __future__ import annotations

import os
import sys
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import types

from ... import __version__
from ._target import TARGET

__all__ = ["called_back", "device", "folder", "kernel", "parallel", "parallel_as"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# What LLVM may do to arithmetic: not change its order, on which roundings and polynomials rely.
_LENIENT = {"nsz", "contract"}

# Of what numba makes parallel, loops over `numba.prange` alone; it would also fuse loops that depend on
# each other through addresses.
_LOOPS = dict.fromkeys(
    ("comprehension", "reduction", "inplace_binop", "setitem", "numpy", "stencil", "fusion"), False
) | {"prange": True}


def folder() -> Path | None:
    """Where compiled kernels are kept; ``None`` if nothing can be written there."""
    versions = f"{__version__}-numba{numba.__version__}-{TARGET.name}-{_source():08x}"
    path = _base() / "ir_runtime" / versions
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as reason:
        message = f"compiled kernels cannot be kept in {path}: {reason.strerror or reason}; each process makes its own"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return None
    return path


def _source() -> int:
    """A number that changes with the modules here: numba looks only at the one a kernel stands in."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return zlib.crc32("".join(f"{f.name} {f.stat().st_size} {f.stat().st_mtime_ns}" for f in files).encode())


def _base() -> Path:
    if given := os.environ.get("IR_RUNTIME_CACHE"):
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))


_FOLDER = folder()
if _FOLDER is not None:
    numba.config.CACHE_DIR = str(_FOLDER)  # type: ignore[attr-defined]


def kernel(function: _Function) -> _Function:
    """A function that runs on one thread, without the interpreter's lock."""
    return _jitted(function, False)


def parallel(function: _Function) -> _Function:
    """A function with a loop over ``numba.prange`` that its threads share."""
    return _jitted(function, _LOOPS)


def parallel_as(signature: Any) -> Callable[[_Function], _Function]:
    """As `parallel`, for arguments of these types alone: compiled, or found in the cache, at once.

    Arrays that may be read only take both kinds without a second variant.
    """

    def decorate(function: _Function) -> _Function:
        return _jitted(function, _LOOPS, signature)

    return decorate


def called_back(function: Callable[..., None], kinds: Sequence[Any]) -> Any:
    """A function of numbers of these types, compiled at once, that has an address of its own."""
    kind = types.void(*kinds)
    options: Any = {"fastmath": _LENIENT, "error_model": "numpy", "cache": _FOLDER is not None}
    return numba.cfunc(kind, **options)(function)


def device(function: _Function) -> _Function:
    """A function that kernels call; it is compiled into them."""
    made = numba.njit(fastmath=_LENIENT, nogil=True, inline="never", cache=_FOLDER is not None)
    return cast(_Function, made(function))


def _jitted(function: _Function, parallel: bool | dict[str, bool], signature: Any = None) -> _Function:
    options: Any = {"parallel": parallel, "fastmath": _LENIENT, "nogil": True, "cache": _FOLDER is not None}
    return cast(_Function, numba.njit(signature, **options)(function))
