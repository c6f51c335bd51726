"""Save arrays atomically, or write them to stdout."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from .._util.escaping import file_names, member_name
from .._util.files import create, folder_target, replacing, replacing_in, resolve_target, write_npy
from ..errors import InputError
from ..ir.tensor import Array

__all__ = ["STDOUT", "check_count", "check_target", "save"]

STDOUT = Path("-")
"""The target that stands for stdout."""

_FORMS = "-o takes a path that ends in .npy, .npz or / (a folder of .npy), or - for stdout"


def check_target(path: str) -> Path:
    """Check that a path can be saved to, before anything is computed.

    Raises:
        InputError: if it says no form, its folder does not exist, or something else is in the way.
    """
    target = Path(path)
    if target == STDOUT:
        if sys.stdout.isatty():
            raise InputError(
                "stdout is a terminal, and arrays are not text", hint="-o - > out.npy writes a file"
            )
        return target
    is_folder = path.endswith(("/", os.sep)) or (target.is_dir() and not _is_file_name(target))
    if not is_folder and not _is_file_name(target):
        what = (
            f"{path!r} is a file"
            if target.exists()
            else f"{path!r} must end in .npy, .npz or /, or be a folder"
        )
        raise InputError(what, hint=_FORMS)
    if is_folder and target.exists() and not target.is_dir():
        raise InputError(f"{path!r} is a file", hint=_FORMS)
    resolved = folder_target(target) if is_folder else resolve_target(target)
    place = resolved if resolved.is_dir() else resolved.parent
    if not os.access(place, os.W_OK):
        raise InputError(f"{path!r} cannot be written: the folder {str(place)!r} is not writable")
    return target


def check_count(target: Path, names: Sequence[str]) -> None:
    """Check that a target can hold this many arrays.

    Raises:
        InputError: if it is an ``.npy``, and there are several.
    """
    if target.suffix.lower() == ".npy" and len(names) != 1:
        first = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        raise InputError(
            f"{str(target)!r} holds one tensor, got {len(names)}: {first}",
            hint="-o out.npz saves them in one file, -o out/ as .npy in a folder",
        )


def _is_file_name(target: Path) -> bool:
    return target.suffix.lower() in (".npy", ".npz")


def save(target: Path, arrays: Mapping[str, Array]) -> dict[str, Path]:
    """Save to an ``.npy``, an ``.npz``, a folder or stdout, as `check_target` allows; return the file of each array."""
    plain = {name: _plain(array) for name, array in arrays.items()}
    if target == STDOUT:
        _write(sys.stdout.buffer, plain, len(plain) == 1)
    elif _is_file_name(target):
        check_count(target, list(plain))
        with replacing(target) as (file,):
            _write(file, plain, target.suffix.lower() == ".npy")
    else:
        return _folder(target, plain)
    return dict.fromkeys(plain, target)


def _write(file: IO[bytes], arrays: Mapping[str, Array], is_single: bool) -> None:
    if is_single:
        write_npy(file, next(iter(arrays.values())))
    else:
        _archive(file, arrays)


def _plain(array: Array) -> Array:
    """Return an array that can be saved without pickling and read back."""
    if array.dtype.isbuiltin == 2:  # of a package, under whatever name it has there
        return array.view(f"V{array.dtype.itemsize}")
    if array.dtype != object:
        return array
    kind = np.bytes_ if any(isinstance(item, bytes) for item in array.flat) else np.str_
    return array.astype(kind)


def _archive(file: IO[bytes], arrays: Mapping[str, Array]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():  # a fixed date, so that equal results are equal files
            with archive.open(zipfile.ZipInfo(f"{member_name(name)}.npy"), "w", force_zip64=True) as member:
                write_npy(member, array)


def _folder(target: Path, arrays: Mapping[str, Array]) -> dict[str, Path]:
    """Save each array to a file of a folder."""
    names = file_names(arrays)
    with replacing_in(target) as stage:
        for name, array in zip(names, arrays.values(), strict=True):
            with create(stage / f"{name}.npy") as file:
                write_npy(file, array)
    return {key: target / f"{name}.npy" for key, name in zip(arrays, names, strict=True)}
