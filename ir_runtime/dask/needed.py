"""Import optional packages, and keep files open between tasks."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache, wraps
from importlib import import_module
from typing import Any

from ..codes import Code
from ..errors import InputError

__all__ = ["cache_open", "needed"]


def needed(module: str, what: str, extra: str = "pip install 'ir_runtime[dask]'") -> Any:
    """Import a module of an optional package, and return it.

    Args:
        module: the full name of the module.
        what: the feature that needs it, as the subject of the message.
        extra: the command that installs it.

    Raises:
        InputError: if the package is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as reason:
        package = (reason.name or module).partition(".")[0]
        raise InputError(
            f"{what} needs {package}, which is not installed", code=Code.BAD_REQUEST, hint=extra
        ) from None


# The metadata files of a zarr store.
_METADATA = ("zarr.json", ".zarray", ".zgroup")


def cache_open(open: Callable[[str, str], Any]) -> Callable[[str, str], Any]:
    """Decorate a function that opens an array of a file: cache its results until the file is replaced."""

    @lru_cache(maxsize=16)
    def open_cached(path: str, key: str, stamp: tuple[int, ...]) -> Any:
        return open(path, key)

    @wraps(open)  # pickled by its name
    def current(path: str, key: str) -> Any:
        return open_cached(path, key, _stamp(path))

    return current


def _stamp(path: str) -> tuple[int, ...]:
    """Return a key that changes when a file or a zarr store is replaced."""
    names = [path, *(os.path.join(path, name) for name in _METADATA)]
    status = os.stat(next(name for name in reversed(names) if os.path.exists(name)))
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
