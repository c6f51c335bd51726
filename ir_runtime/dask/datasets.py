"""Data sets larger than memory, read row by row on demand."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._util.array_files import check_claims
from .._util.escaping import member_name
from .._util.nearest import did_you_mean
from ..errors import InputError, IRError
from ..ir.tensor import Array
from ..limits import current
from .lengths import row_range
from .needed import cache_open, needed

__all__ = ["Dataset", "open_dataset"]

_PLAIN = "save an array of numbers"
# The filters of HDF5 that are part of h5py.
_FILTERS = ("DEFLATE", "SHUFFLE", "FLETCHER32", "SZIP", "NBIT", "SCALEOFFSET", "LZF")


@dataclass(frozen=True)
class Dataset:
    """An array in a file or folder, whose rows are read on demand; a pickle contains only the path."""

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @abstractmethod
    def read(self, start: int, stop: int) -> Array:
        """Return rows ``[start, stop)`` as an array in memory."""


@dataclass(frozen=True)
class _Npy(Dataset):
    """An ``.npy``. Rows are read instead of mapped, since mapped pages would count as memory of the process."""

    offset: int

    def read(self, start: int, stop: int) -> Array:
        row = math.prod(self.shape[1:])
        with open(self.path, "rb") as file:
            file.seek(self.offset + start * row * self.dtype.itemsize)
            values = np.fromfile(file, self.dtype, (stop - start) * row)
        if values.size != (stop - start) * row:
            raise InputError(f"{self.path} is cut off: {row_range(start, stop)} cannot be read")
        return values.reshape(stop - start, *self.shape[1:])


@dataclass(frozen=True)
class _Keyed(Dataset):
    """An array, selected by its key, of an ``.npz``, a zarr store or an HDF5 file."""

    key: str
    open: Callable[[str, str], Any]

    def read(self, start: int, stop: int) -> Array:
        with _translate_errors(f"{self.path}: {row_range(start, stop)} cannot be read", of_disk=True):
            return np.asarray(self.open(self.path, self.key)[start:stop])


@dataclass(frozen=True)
class _Folder(Dataset):
    """A folder of ``.npy`` files, one per row, in the order of their names."""

    files: tuple[str, ...]

    def read(self, start: int, stop: int) -> Array:
        rows = [_load(os.path.join(self.path, name)) for name in self.files[start:stop]]
        for name, row in zip(self.files[start:stop], rows, strict=True):
            if row.shape != self.shape[1:] or row.dtype != self.dtype:
                raise InputError(
                    f"{os.path.join(self.path, name)} has {row.dtype} {list(row.shape)}, expected {self.dtype} "
                    f"{list(self.shape[1:])} as {self.files[0]}"
                )
        return np.stack(rows)


@contextmanager
def _translate_errors(problem: str, of_disk: bool = False) -> Iterator[None]:
    """Re-raise exceptions of the block as `InputError`, except those of this package and `MemoryError`.

    Args:
        problem: the start of the message, with the name of the file.
        of_disk: whether errors of the file system are raised as they are.
    """
    try:
        yield
    except (IRError, MemoryError):
        raise
    except Exception as reason:
        if of_disk and isinstance(reason, OSError) and reason.errno:
            raise
        raise InputError(f"{problem}: {reason or type(reason).__name__}") from None


def open_dataset(path: str, name: str) -> Dataset:
    """Open a data set: an ``.npy``, ``.npz``, ``.zarr``, ``.h5``, or a folder of ``.npy`` files.

    Args:
        path: the file or folder.
        name: the name of the input, which selects one of several arrays.

    Raises:
        InputError: if it cannot be read, or has no rows.
    """
    if not os.path.exists(path):
        raise InputError(f"{path} cannot be read: No such file or directory")
    dataset = _opener(path)(path, name)
    if not dataset.shape:
        raise InputError(f"{path} has a scalar, which has no rows")
    return replace(dataset, path=os.path.abspath(path))


def _opener(path: str) -> Callable[[str, str], Dataset]:
    if _is_zarr(path):
        return _open_zarr
    if os.path.isdir(path):
        return _open_folder
    suffix = Path(path).suffix.lower()
    readers = {".npy": _open_npy, ".npz": _open_npz, ".h5": _open_hdf5, ".hdf5": _open_hdf5}
    if suffix not in readers:
        raise InputError(
            f"{path} is not a data set", hint="use .npy, .npz, .zarr, .h5, or a folder of .npy files"
        )
    return readers[suffix]


def _is_zarr(path: str) -> bool:
    return any(os.path.exists(os.path.join(path, name)) for name in ("zarr.json", ".zarray", ".zgroup"))


def _load(path: str) -> Array:
    with _translate_errors(f"{path} cannot be read"), open(path, "rb") as file:
        check_claims(file, path, current())
        array: Array = np.load(file, allow_pickle=False)
    return array


def _open_npy(path: str, name: str) -> Dataset:
    with _translate_errors(f"{path} is damaged or cut off"):
        with open(path, "rb") as file:
            check_claims(file, path, current(), mapped=True)
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not array.flags.c_contiguous:
        raise InputError(f"{path} is stored in Fortran order", hint="save numpy.ascontiguousarray(array)")
    return _Npy(path, array.shape, array.dtype, array.offset)


def _open_npz(path: str, name: str) -> Dataset:
    with (
        _translate_errors(f"{path} cannot be read"),
        open(path, "rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        key = _choose_key(path, archive.files, member_name(name))
    with _translate_errors(f"{path} cannot be read"):
        array = _npz(path, key)
    return _Keyed(path, array.shape, array.dtype, key, _npz)


@cache_open
def _npz(path: str, key: str) -> Array:
    with open(path, "rb") as file:
        check_claims(file, path, current())
        with np.load(file, allow_pickle=False) as archive:
            array: Array = archive[key]
    return array


def _open_zarr(path: str, name: str) -> Dataset:
    zarr = needed("zarr", f"reading {path}")
    with _translate_errors(f"{path} cannot be read"):
        store = _open_store(path)
        key = "" if isinstance(store, zarr.Array) else _choose_key(path, _arrays_in(store), name)
        array = _zarr(path, key)
        return _Keyed(path, tuple(array.shape), np.dtype(array.dtype), key, _zarr)


def _arrays_in(group: Any, place: str = "") -> list[str]:
    """Return the paths of the arrays in a zarr group and its subgroups."""
    paths = sorted(f"{place}{key}" for key in group.array_keys())
    for key, inner in group.groups():
        paths += _arrays_in(inner, f"{place}{key}/")
    return paths


@cache_open
def _zarr(path: str, key: str) -> Any:
    store = _open_store(path)
    array = store[key] if key else store
    _check_codecs(path, array.metadata)
    return array


def _open_store(path: str) -> Any:
    """Open a local store, even if its path looks like a URL."""
    zarr = needed("zarr", f"reading {path}")
    return zarr.open(zarr.storage.LocalStore(path, read_only=True), mode="r")


def _check_codecs(path: str, metadata: Any) -> None:
    """Check that the chunks of a zarr array are not pickled, as unpickling can run any code.

    Raises:
        InputError: if they are pickled.
    """
    # Version 3 of the format has no such codec.
    codecs = [getattr(metadata, "compressor", None), *(getattr(metadata, "filters", None) or ())]
    if any(getattr(codec, "codec_id", "") == "pickle" for codec in codecs):
        raise InputError(f"{path} holds Python objects, which are never read", hint=_PLAIN)


def _open_hdf5(path: str, name: str) -> Dataset:
    h5py = needed("h5py", f"reading {path}", "pip install h5py")
    keys: list[str] = []
    with _translate_errors(f"{path} cannot be read"):
        with h5py.File(path, "r") as file:
            file.visititems(lambda key, array: keys.append(key) if isinstance(array, h5py.Dataset) else None)
        key = _choose_key(path, keys, name)
        array = _hdf5(path, key)
    return _Keyed(path, tuple(array.shape), np.dtype(array.dtype), key, _hdf5)


@cache_open
def _hdf5(path: str, key: str) -> Any:
    h5py = needed("h5py", f"reading {path}")
    file = h5py.File(path, "r")
    try:
        _check_hdf5(path, file[key], h5py)
        return file[key]
    except BaseException:
        file.close()
        raise


def _check_hdf5(path: str, array: Any, h5py: Any) -> None:
    """Check that the data of an HDF5 array are in its own file, and readable without plugins (third-party code) or pickle.

    Raises:
        InputError: if they are not.
    """
    created = array.id.get_create_plist()
    elsewhere = [created.get_external(index)[0].decode() for index in range(created.get_external_count())]
    if array.is_virtual:
        elsewhere += [source.file_name for source in array.virtual_sources() if source.file_name != "."]
    if elsewhere:
        raise InputError(
            f"{path}: {array.name!r} has its data in another file, {elsewhere[0]!r}, which is not read",
            hint="copy the data into one file, or name that file",
        )
    own = [getattr(h5py.h5z, f"FILTER_{name}") for name in _FILTERS]
    for index in range(created.get_nfilters()):
        if (number := created.get_filter(index)[0]) not in own:
            raise InputError(
                f"{path}: {array.name!r} needs the filter {number}, a plugin that would have to be loaded",
                hint="h5repack -f GZIP=4 writes a file that needs none",
            )
    if array.dtype.hasobject and h5py.check_string_dtype(array.dtype) is None:
        raise InputError(f"{path}: {array.name!r} holds objects, not numbers", hint=_PLAIN)


def _open_folder(path: str, name: str) -> Dataset:
    files = tuple(sorted(file for file in os.listdir(path) if file.endswith(".npy")))
    if not files:
        raise InputError(f"the folder {path} has no .npy files and no images")
    first = _load(os.path.join(path, files[0]))
    return _Folder(path, (len(files), *first.shape), first.dtype, files)


def _choose_key(path: str, keys: list[str], name: str) -> str:
    """Return the key of the array for an input: the one with its name, in any group, or the only one.

    Raises:
        InputError: if there is no such array, or the choice is ambiguous.
    """
    if not keys:
        raise InputError(f"{path} has no arrays")
    matching = [key for key in keys if name in (key, key.rpartition("/")[2])]
    if name in keys or len(matching) == 1 or len(keys) == 1:
        return name if name in keys else (matching or keys)[0]
    hint = did_you_mean(name, keys) or f"available are {', '.join(keys[:10])}"
    raise InputError(f"{path} has {len(keys)} arrays, none named {name!r}", hint=hint)
