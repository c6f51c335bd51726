"""Checks of array files: what their headers declare, before NumPy allocates memory for it."""

from __future__ import annotations

import ast
import math
import os
import zipfile
from collections.abc import Iterator
from typing import IO

import numpy as np

from ..diagnostics import Location
from ..errors import InputError, LimitError
from ..limits import Limits
from .arrays import DType

__all__ = ["MAGIC", "SAVED", "check_claims"]

MAGIC = b"\x93NUMPY"
"""The first bytes of an ``.npy``."""
SAVED = "numpy.save and numpy.savez write arrays of numbers and strings as files that can be read"

# Maximum bytes of a header. NumPy refuses longer ones, too, but reads them first.
LONGEST_HEADER = 10_000


def check_claims(file: IO[bytes], path: str, limits: Limits, mapped: bool = False) -> None:
    """Check that the arrays of an ``.npy`` or ``.npz`` fit the limits and the file.

    Args:
        file: the file, positioned at its start before and after.
        path: its path, for messages.
        limits: the limits on its arrays.
        mapped: whether the array is mapped from the file, and so may be larger than memory.

    Raises:
        InputError: if the arrays exceed the limits or the file, or have an unsupported type.
        ValueError: if the file is damaged.
    """
    total = 0
    for name, stream, size in _members(file):
        start = f"{path}, {name}" if name else path
        shape, dtype = _header(stream, path, name)
        count = math.prod(shape)
        total += count * dtype.itemsize
        try:
            _check_lengths(shape, dtype, limits, start)
            if not mapped:
                limits.check("memory", total, Location(path))
        except LimitError as problem:
            raise InputError(
                problem.message, code=problem.code, where=problem.where, hint=problem.hint
            ) from None
        _check_type(dtype, count, start)
        if count * dtype.itemsize > size:
            raise InputError(
                f"{start} declares {count * dtype.itemsize} bytes, but has only {size}",
                hint="the file is cut off, or is corrupt",
            )
    file.seek(0)


def _check_lengths(shape: tuple[int, ...], dtype: DType, limits: Limits, start: str) -> None:
    """Check the lengths of an array against the limits; in an empty one, lengths of 0 count as 1.

    Args:
        shape: the lengths.
        dtype: the data type.
        limits: the limits.
        start: the file and the array, as the location in messages.

    Raises:
        LimitError: if they exceed the limits.
    """
    limits.check("rank", len(shape), Location(start))
    span = math.prod([length or 1 for length in shape])
    limits.check("elements", span, Location(start))
    if 0 in shape:
        limits.check("memory", span * dtype.itemsize, Location(start), f"lengths of an array {list(shape)}")


def _check_type(dtype: DType, count: int, start: str) -> None:
    """Check that elements are numbers or strings, and have a size: NumPy allocates memory even for those without.

    Args:
        dtype: the type of the elements.
        count: the number of elements.
        start: the file and the array, as the start of messages.

    Raises:
        InputError: if they are not, or have none.
    """
    if dtype.hasobject:
        raise InputError(f"{start} holds Python objects, which are never read", hint=SAVED)
    if dtype.names is not None or dtype.subdtype is not None:
        raise InputError(f"{start} holds records, not numbers or strings", hint=SAVED)
    if count and not dtype.itemsize:
        raise InputError(f"{start} declares {count} elements that take no bytes", hint=SAVED)


def _members(file: IO[bytes]) -> Iterator[tuple[str, IO[bytes], int]]:
    """Yield the name, stream and uncompressed size in bytes of each array in a file; an ``.npy`` has one, with an empty name."""
    if file.read(len(MAGIC)) == MAGIC:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        yield "", file, size
        return
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            with archive.open(info) as stream:
                yield info.filename, stream, info.file_size


def _header(stream: IO[bytes], path: str, name: str) -> tuple[tuple[int, ...], DType]:
    """Read the header of an array; return its shape and data type.

    Args:
        stream: the stream, positioned at its start.
        path: the file, for messages.
        name: the name of the array in an ``.npz``, for messages.

    Raises:
        InputError: if the stream is not that of an array.
        ValueError: if the header is damaged.
    """
    if stream.read(len(MAGIC)) != MAGIC:
        raise InputError(
            f"{path} contains {name!r}, which is not an array",
            hint=SAVED,
        )
    major = stream.read(2)[:1]
    length = int.from_bytes(stream.read(2 if major == b"\x01" else 4), "little")
    if length > LONGEST_HEADER:
        raise ValueError("the header is too long")
    try:
        header = ast.literal_eval(stream.read(length).decode("utf-8" if major == b"\x03" else "latin-1"))
        shape = tuple(int(n) for n in header["shape"])
        dtype = np.lib.format.descr_to_dtype(header["descr"])
    except (SyntaxError, TypeError, KeyError, RecursionError, MemoryError, OverflowError) as reason:
        raise ValueError(f"the header cannot be read: {reason}") from None
    if min(shape, default=0) < 0:
        raise ValueError("a length is negative")
    return shape, dtype
