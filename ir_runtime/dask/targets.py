"""Write outputs to arrays on disk, in blocks of rows, from several processes."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import stat
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from .._util.escaping import file_names
from .._util.files import check_own, create, remove, reopen, write_all
from ..errors import InputError
from ..ir.tensor import Array
from .needed import needed
from .planning import ArrayType

__all__ = [
    "Target",
    "check_targets",
    "create_targets",
    "open_targets",
    "place_targets",
    "read_identity",
    "sync",
    "target_path",
]

_PART = re.compile(r"\.c\.\d+(?:\.0)*\.[0-9a-f]{8}\.part")
"""The names of the temporary files of chunks that are being written."""


@dataclass(frozen=True)
class Target:
    """An array on disk whose rows are written in independent chunks of ``rows`` rows."""

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rows: int

    @abstractmethod
    def create(self) -> None:
        """Create the array, filled with zeros."""

    @abstractmethod
    def check(self) -> None:
        """Check that the array on disk has the type and shape that `create` gave it, and that writing affects no other files.

        Raises:
            InputError: if the array differs, or is behind a link.
            OSError: if it cannot be read.
        """

    @abstractmethod
    def write(self, start: int, array: Array) -> None:
        """Write the rows of a chunk; ``start`` is the index of the first."""

    @abstractmethod
    def file(self, start: int) -> str:
        """Return the path of the file that contains the chunk whose first row has the index ``start``."""

    def _differs(self) -> InputError:
        return InputError(
            f"{self.path} is not as the run created it",
            hint="remove it and the manifest, and run without --resume",
        )


@dataclass(frozen=True)
class _Npy(Target):
    def create(self) -> None:
        header = _npy_header(self.shape, self.dtype)
        with create(self.path) as file:
            file.write(header)
            file.truncate(len(header) + self._size())

    def _size(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def check(self) -> None:
        header = _npy_header(self.shape, self.dtype)
        with reopen(self.path) as file:
            if file.read(len(header)) != header or file.seek(0, os.SEEK_END) != len(header) + self._size():
                raise self._differs()

    def write(self, start: int, array: Array) -> None:
        row = math.prod(self.shape[1:]) * self.dtype.itemsize
        with reopen(self.path) as file:
            file.seek(len(_npy_header(self.shape, self.dtype)) + start * row)
            write_all(file, np.ascontiguousarray(array, self.dtype).reshape(-1).view(np.uint8).data)

    def file(self, start: int) -> str:
        return self.path


@lru_cache(maxsize=16)
def _npy_header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    """Return the header of an ``.npy`` file in C order."""
    header = BytesIO()
    described = np.lib.format.dtype_to_descr(dtype)
    np.lib.format.write_array_header_1_0(header, {"descr": described, "fortran_order": False, "shape": shape})
    return header.getvalue()


@dataclass(frozen=True)
class _Zarr(Target):
    """An array of a zarr store. Each chunk is a file, which is replaced as a whole.

    The files are written without zarr, which needs milliseconds for each.
    """

    key: str

    def create(self) -> None:
        self._create(needed("zarr", f"writing {self.path}").storage.LocalStore(self.path))

    def _create(self, store: Any) -> None:
        zarr = needed("zarr", f"writing {self.path}")
        if self.key:
            zarr.open_group(store, mode="a")
        zarr.create_array(
            store=store, name=self.key or None, shape=self.shape, dtype=self.dtype, chunks=self._chunk, fill_value=0,
            chunk_key_encoding={"name": "default", "separator": "."}, compressors=zarr.codecs.ZstdCodec(level=0),
        )  # fmt: skip

    def check(self) -> None:
        zarr = needed("zarr", f"writing {self.path}")
        store: dict[str, Any] = {}
        self._create(zarr.storage.MemoryStore(store))
        check_own(self.path, stat.S_ISDIR)
        check_own(self._folder, stat.S_ISDIR)
        for key, buffer in store.items():
            path = os.path.join(self.path, key)
            check_own(path, stat.S_ISREG)
            if not _same_json(path, buffer.to_bytes()):
                raise self._differs()
        with os.scandir(self._folder) as entries:
            for entry in entries:  # leftovers of a killed run
                if _PART.fullmatch(entry.name):
                    os.unlink(entry.path)

    @property
    def _folder(self) -> str:
        return os.path.join(self.path, self.key) if self.key else self.path

    @property
    def _chunk(self) -> tuple[int, ...]:
        return (self.rows, *(max(length, 1) for length in self.shape[1:]))

    def write(self, start: int, array: Array) -> None:
        whole = np.zeros(self._chunk, self.dtype.newbyteorder("<"))
        whole[tuple(map(slice, array.shape))] = array
        data = needed("numcodecs.zstd", f"writing {self.path}").Zstd(level=0).encode(whole)
        path = self.file(start)
        new = os.path.join(self._folder, f".{os.path.basename(path)}.{secrets.token_hex(4)}.part")
        try:
            with create(new) as file:
                file.write(data)
            os.replace(new, path)
        except BaseException:
            remove(new)
            raise

    def file(self, start: int) -> str:
        return os.path.join(self._folder, f"c.{start // self.rows}" + ".0" * (len(self.shape) - 1))


def _same_json(path: str, expected: bytes) -> bool:
    """Return whether a file contains JSON with the same data as ``expected``, possibly written in another way."""
    with open(path, "rb") as file:
        data = file.read(2 * len(expected) + 1)
    try:
        return len(data) <= 2 * len(expected) and bool(json.loads(data) == json.loads(expected))
    except (ValueError, RecursionError):
        return False


def sync(files: Iterable[str]) -> None:
    """Sync files and their folders to disk; syncing many at once costs little more than one."""
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
    """Return the absolute path of a result after checking it.

    Raises:
        InputError: if the file type cannot be written by rows, or the folder does not exist.
    """
    path = Path(output)
    if path.suffix.lower() not in (".zarr", ".npy"):
        raise InputError(f"{output!r} cannot be written by rows", hint="-o takes a .zarr or .npy here")
    if not path.absolute().parent.is_dir():
        raise InputError(f"the folder {str(path.parent)!r} to save {path.name!r} in does not exist")
    return path.absolute()


def open_targets(path: Path, types: Mapping[str, ArrayType], rows: int) -> tuple[Target, ...]:
    """Return the targets of outputs: a zarr array, the arrays of a zarr group, or an ``.npy``.

    Args:
        path: the file or store.
        types: the type and shape of each output, by name.
        rows: the number of rows of a chunk.

    Raises:
        InputError: if several outputs would go into an ``.npy``, or an output has a type that NumPy lacks.
    """
    if path.suffix.lower() == ".npy":
        if len(types) > 1:
            raise InputError(
                f"{str(path)!r} can hold one output, got {len(types)}",
                hint="-o OUT.zarr holds several",
            )
        return tuple(_Npy(str(path), type.shape, _plain(type.dtype), rows) for type in types.values())
    needed("zarr", f"writing {path}")
    keys = file_names(types) if len(types) > 1 else [""]
    return tuple(
        _Zarr(str(path), type.shape, _plain(type.dtype), rows, key)
        for key, type in zip(keys, types.values(), strict=True)
    )


def place_targets(targets: tuple[Target, ...], path: Path) -> tuple[Target, ...]:
    """Return the same targets at another path."""
    return tuple(replace(target, path=str(path)) for target in targets)


def create_targets(targets: tuple[Target, ...]) -> None:
    """Create the arrays on disk, in a new file or folder.

    Args:
        targets: the arrays, which all have the same path.

    Raises:
        OSError: if the path exists, or the file system refuses.
    """
    path = targets[0].path
    if isinstance(targets[0], _Zarr):
        os.mkdir(path)
    for target in targets:
        target.create()
    sync([path, *(os.path.join(folder, file) for folder, _, files in os.walk(path) for file in files)])


def check_targets(targets: tuple[Target, ...]) -> None:
    """Check that the arrays on disk have the types and shapes of their creation; remove leftovers of a killed run.

    Raises:
        InputError: if an array is missing or differs, or writing to it would affect other files.
    """
    try:
        for target in targets:
            target.check()
    except OSError as reason:
        raise InputError(
            f"{reason.filename or targets[0].path} cannot be read: {reason.strerror or reason}",
            hint="remove the result and its manifest, and run without --resume",
        ) from None


def read_identity(path: Path) -> dict[str, int]:
    """Return the identity of a result, which is unaffected by renaming, but changes if the file is modified or replaced."""
    status = os.lstat(path / "zarr.json" if path.is_dir() and not path.is_symlink() else path)
    return {"inode": status.st_ino, "size": status.st_size, "modified": status.st_mtime_ns}


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.isbuiltin == 1 and dtype.kind != "O":
        return dtype
    raise InputError(
        f"outputs of type {dtype} cannot be written by rows",
        hint="convert them to f32 in the model, or run without -o .zarr",
    )
