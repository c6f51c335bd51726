"""Save arrays atomically."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np

from ..errors import InputError
from ..files import lock, remove_stale, replacing, resolve_target, temporary_name
from ..ir.tensor import Array
from .names import unique

__all__ = ["check_target", "save"]


def check_target(path: str) -> Path:
    """Check that a path can be saved to, before anything is computed.

    Raises:
        InputError: if its folder does not exist, or something else is in the way.
    """
    target = Path(path)
    if target.suffix.lower() != ".npz" and target.exists() and not target.is_dir():
        raise InputError(f"{path!r} is a file", hint="-o takes a path that ends in .npz, or a folder")
    if not target.is_dir() or target.suffix.lower() == ".npz":
        resolve_target(target)
    return target


def save(target: Path, arrays: Mapping[str, Array]) -> dict[str, Path]:
    """Save to an ``.npz``, or as ``.npy`` files in a folder; return the file of each array."""
    plain = {name: _plain(array) for name, array in arrays.items()}
    if target.suffix.lower() == ".npz":
        with replacing(target) as (file,):
            _archive(file, plain)
        return dict.fromkeys(plain, target)
    return _folder(target, plain)


def _plain(array: Array) -> Array:
    """Return an array that can be saved without pickling, and read again."""
    if array.dtype.isbuiltin == 2:  # of a package, under whatever name it has there
        return array.view(f"V{array.dtype.itemsize}")
    if array.dtype != object:
        return array
    kind = np.bytes_ if any(isinstance(item, bytes) for item in array.flat) else np.str_
    return array.astype(kind)


def _archive(file: IO[bytes], arrays: Mapping[str, Array]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():  # a fixed date, so that equal results are equal files
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _folder(target: Path, arrays: Mapping[str, Array]) -> dict[str, Path]:
    """Write all files into a temporary folder, then move them into place."""
    names = unique(map(_file_name, arrays))
    beside = target / "all" if target.exists() else target
    remove_stale(beside)
    stage = temporary_name(beside, "part")
    stage.mkdir()
    held = os.open(stage, os.O_RDONLY) if os.name == "posix" else None
    if held is not None:
        lock(held)
    try:
        for name, array in zip(names, arrays.values(), strict=True):
            with open(stage / f"{name}.npy", "xb") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
        if not target.exists():
            stage.rename(target)
        for name in names:
            with suppress(FileNotFoundError):  # already there, with the folder
                os.replace(stage / f"{name}.npy", target / f"{name}.npy")
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        if held is not None:
            os.close(held)
    return {key: target / f"{name}.npy" for key, name in zip(arrays, names, strict=True)}


def _file_name(name: str) -> str:
    """Return a file name that is valid on every file system, and stays inside its folder."""
    return re.sub(r"[^A-Za-z0-9_.+=-]", "_", name).strip(".")[:150] or "_"
