"""Write outputs to arrays on disk, some rows at a time, from several processes."""

from __future__ import annotations

import math
import os
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from ..errors import InputError
from ..ir.tensor import Array
from .needed import needed
from .planning import ArrayType

__all__ = ["Target", "create_targets", "open_targets", "remove_partial", "sync", "target_path"]


_PART = ".part"
"""The end of the names of files that are being written."""


@dataclass(frozen=True)
class Target:
    """An array on disk whose rows are written independently of each other, ``rows`` at a time."""

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rows: int

    @abstractmethod
    def create(self) -> None:
        """Create the array, filled with zeros."""

    @abstractmethod
    def write(self, start: int, array: Array) -> None:
        """Write rows from ``start`` on."""

    @abstractmethod
    def file(self, start: int) -> str:
        """Return the file that has the rows from ``start`` on."""


@dataclass(frozen=True)
class _Npy(Target):
    def create(self) -> None:
        np.lib.format.open_memmap(self.path, "w+", self.dtype, self.shape).flush()

    def write(self, start: int, array: Array) -> None:
        row = math.prod(self.shape[1:]) * self.dtype.itemsize
        with open(self.path, "r+b", buffering=0) as file:
            header = os.fstat(file.fileno()).st_size - self.shape[0] * row
            file.seek(header + start * row)
            rest = np.ascontiguousarray(array, self.dtype).reshape(-1).view(np.uint8).data
            while rest:  # a full disk accepts a part
                rest = rest[file.write(rest) :]

    def file(self, start: int) -> str:
        return self.path


@dataclass(frozen=True)
class _Zarr(Target):
    """An array of a zarr store. Each chunk is a file, which is replaced as a whole.

    Files are written here, as zarr needs milliseconds for each.
    """

    key: str

    def create(self) -> None:
        zarr = needed("zarr", f"writing {self.path}")
        if self.key:
            zarr.open_group(self.path, mode="a")
        zarr.create_array(
            store=self.path, name=self.key or None, shape=self.shape, dtype=self.dtype, chunks=self._chunk, fill_value=0,
            chunk_key_encoding={"name": "default", "separator": "."}, compressors=zarr.codecs.ZstdCodec(level=0),
        )  # fmt: skip

    @property
    def _chunk(self) -> tuple[int, ...]:
        return (self.rows, *(max(length, 1) for length in self.shape[1:]))

    def write(self, start: int, array: Array) -> None:
        whole = np.zeros(self._chunk, self.dtype.newbyteorder("<"))
        whole[tuple(map(slice, array.shape))] = array
        path = self.file(start)
        new = f"{path}.{uuid4().hex}{_PART}"
        with open(new, "wb") as file:
            file.write(needed("numcodecs.zstd", f"writing {self.path}").Zstd(level=0).encode(whole))
        os.replace(new, path)

    def file(self, start: int) -> str:
        return os.path.join(self.path, self.key, f"c.{start // self.rows}" + ".0" * (len(self.shape) - 1))


def sync(files: Iterable[str]) -> None:
    """Sync files, and their entries in folders, to the disk; many at once cost little more than one."""
    files = set(files)
    for paths in (files, {os.path.dirname(file) for file in files}):
        if len(paths) == 1:  # threads cost more than they save
            _sync(*paths)
        elif paths:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(_sync, paths))


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def target_path(output: str) -> Path:
    """Check the path that outputs are written to.

    Raises:
        InputError: if rows cannot be written to such a file, or its folder does not exist.
    """
    path = Path(output)
    if path.suffix.lower() not in (".zarr", ".npy"):
        raise InputError(f"{output!r} cannot be written by rows", hint="-o takes a .zarr or .npy here")
    if not path.absolute().parent.is_dir():
        raise InputError(f"the folder {str(path.parent)!r} to save {path.name!r} in does not exist")
    return path.absolute()


def open_targets(path: Path, types: Mapping[str, ArrayType], rows: int) -> tuple[Target, ...]:
    """Return the targets of outputs: a zarr array, a zarr group of several, or an ``.npy``.

    Args:
        path: the file or store.
        types: by name, the type of each output as a whole.
        rows: the number of rows that are written at once.

    Raises:
        InputError: if several outputs are to be in one ``.npy``, or if one has a type that NumPy lacks.
    """
    if path.suffix.lower() == ".npy":
        if len(types) > 1:
            raise InputError(
                f"{str(path)!r} can hold one output, got {len(types)}",
                hint="-o OUT.zarr holds several",
            )
        return tuple(_Npy(str(path), found.shape, _plain(found.dtype), rows) for found in types.values())
    needed("zarr", f"writing {path}")
    several = len(types) > 1
    return tuple(
        _Zarr(str(path), found.shape, _plain(found.dtype), rows, _key(name) if several else "")
        for name, found in types.items()
    )


def create_targets(targets: tuple[Target, ...]) -> None:
    """Create the arrays on disk."""
    for target in targets:
        target.create()
    path = targets[0].path
    sync([path, *(os.path.join(folder, file) for folder, _, files in os.walk(path) for file in files)])


def remove_partial(targets: tuple[Target, ...]) -> None:
    """Remove files that were being written when a run was killed."""
    for folder in {os.path.dirname(target.file(0)) for target in targets}:
        for file in Path(folder).glob(f"*{_PART}"):
            file.unlink(missing_ok=True)


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
