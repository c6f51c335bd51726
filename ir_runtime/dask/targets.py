"""Write outputs where they belong, rows at a time, from several processes."""

from __future__ import annotations

import math
import os
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..ir.tensor import Array
from .needed import kept_open, needed
from .planning import ArrayType

__all__ = ["Target", "create_targets", "open_targets", "target_path"]


@dataclass(frozen=True)
class Target:
    """An array on disk whose rows are written independently of each other."""

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @abstractmethod
    def create(self, rows: int) -> None:
        """Make the array, with all numbers 0; ``rows`` is how many are written at once."""

    @abstractmethod
    def write(self, start: int, array: Array) -> None:
        """Write rows from ``start`` on."""


@dataclass(frozen=True)
class _Npy(Target):
    def create(self, rows: int) -> None:
        np.lib.format.open_memmap(self.path, "w+", self.dtype, self.shape).flush()

    def write(self, start: int, array: Array) -> None:
        row = math.prod(self.shape[1:]) * self.dtype.itemsize
        with open(self.path, "r+b") as file:
            file.seek(np.load(self.path, mmap_mode="r").offset + start * row)
            file.write(np.ascontiguousarray(array, self.dtype).data)


@dataclass(frozen=True)
class _Zarr(Target):
    key: str

    def create(self, rows: int) -> None:
        zarr = needed("zarr", f"writing {self.path}")
        if self.key:
            zarr.open_group(self.path, mode="a")
        zarr.create_array(
            store=self.path, name=self.key or None, shape=self.shape, dtype=self.dtype,
            chunks=(rows, *(max(length, 1) for length in self.shape[1:])), fill_value=0,
        )  # fmt: skip

    def write(self, start: int, array: Array) -> None:
        _zarr(self.path, self.key)[start : start + len(array)] = array


@kept_open
def _zarr(path: str, key: str) -> Any:
    store = needed("zarr", f"writing {path}").open(path, mode="r+")
    return store[key] if key else store


def target_path(output: str) -> Path:
    """Check the path that outputs are written to.

    Raises:
        InputError: if it is none of a kind that rows can be written to, or its folder does not exist.
    """
    path = Path(output)
    if path.suffix.lower() not in (".zarr", ".npy"):
        raise InputError(f"{output!r} cannot be written by rows", hint="-o takes a .zarr or .npy here")
    if not path.absolute().parent.is_dir():
        raise InputError(f"the folder {str(path.parent)!r} to save {path.name!r} in does not exist")
    return path.absolute()


def open_targets(path: Path, types: Mapping[str, ArrayType]) -> tuple[Target, ...]:
    """Return the targets of outputs: a zarr array, a zarr group of several, or an ``.npy``.

    Raises:
        InputError: if an ``.npy`` should have several outputs, or has a type that NumPy lacks.
    """
    if path.suffix.lower() == ".npy":
        if len(types) > 1:
            raise InputError(
                f"{str(path)!r} has room for one output, and there are {len(types)}",
                hint="-o takes a .zarr for several",
            )
        return tuple(_Npy(str(path), found.shape, _plain(found.dtype)) for found in types.values())
    needed("zarr", f"writing {path}")
    several = len(types) > 1
    return tuple(
        _Zarr(str(path), found.shape, _plain(found.dtype), _key(name) if several else "")
        for name, found in types.items()
    )


def create_targets(targets: tuple[Target, ...], rows: int) -> None:
    """Make the arrays on disk."""
    for target in targets:
        target.create(rows)
    path = targets[0].path
    if os.path.isfile(path):
        with open(path, "rb") as file:
            os.fsync(file.fileno())


def _key(name: str) -> str:
    """Return a name that is valid on every file system, and stays inside the store."""
    return re.sub(r"[^A-Za-z0-9_.+=-]", "_", name).strip(".") or "_"


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.isbuiltin == 1 and dtype.kind != "O":
        return dtype
    raise InputError(
        f"outputs of type {dtype} cannot be written by rows",
        hint="convert them to f32 in the model, or run without -o .zarr",
    )
