"""Constants in memory-mapped files: release of their pages, and protection against truncated files.

Once a kernel has copied a constant, its mapped pages are no longer read, but still count as memory of the process. They
can be released at any time (``MADV_DONTNEED``); a later read maps them again.

Access beyond the end of a truncated file raises SIGBUS. Therefore constants that every run reads are copied from the
file, and the length of the file is checked before others are read from the mapping.
"""

from __future__ import annotations

import mmap
import os
import weakref
from typing import IO
from weakref import WeakValueDictionary

import numpy as np

from ..codes import Code
from ..diagnostics import Location
from ..errors import ParseError
from ..limits import check_array_size
from .tensor import Array

__all__ = ["MIN_BYTES", "MappedFile", "held", "is_mapped", "let_go"]

# Smaller constants are not worth a system call.
MIN_BYTES = 1 << 16
# Bytes per read.
_READ_SIZE = 1 << 28
_DONT_NEED: int | None = getattr(mmap, "MADV_DONTNEED", None)


class MappedFile(mmap.mmap):
    """A read-only mapping of a file that keeps the file open."""

    name: str
    number: int
    """A file descriptor, closed together with the mapping."""
    copies: WeakValueDictionary[tuple[int, int], Array]
    """The copies of ranges of the file that are in use, by offset and size in bytes."""

    @classmethod
    def of(cls, file: IO[bytes], name: str) -> MappedFile:
        """Map a nonempty file.

        Raises:
            OSError: if the file cannot be mapped.
        """
        mapped = cls(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapped.name, mapped.number = name, os.dup(file.fileno())
        mapped.copies = WeakValueDictionary()
        weakref.finalize(mapped, os.close, mapped.number)
        return mapped

    def check(self) -> None:
        """Check that the file is still as long as the mapping.

        Raises:
            ParseError: if the file has become shorter.
        """
        if (length := os.lseek(self.number, 0, os.SEEK_END)) < len(self):  # `fstat` would take a microsecond
            raise self._shorter(length)

    def copied(self, start: int, size: int) -> Array:
        """Read ``size`` bytes at offset ``start`` of the file into a new array.

        Raises:
            ParseError: if the file has become shorter, or cannot be read.
            LimitError: if the array would not fit into memory.
        """
        check_array_size(size)
        data, done = np.empty(size, np.uint8), 0
        try:
            while done < size:
                count = os.preadv(self.number, [data.data[done : done + _READ_SIZE]], start + done)
                if not count:
                    raise self._shorter(start + done)
                done += count
        except OSError as reason:
            why = reason.strerror or str(reason)
            raise ParseError(f"the weights cannot be read: {why}", where=Location(self.name)) from None
        return data

    def _shorter(self, length: int) -> ParseError:
        return ParseError(
            f"the weights end at {length}, but had {len(self)} bytes when the model was read",
            code=Code.WEIGHTS_RANGE,
            where=Location(self.name),
            hint="leave the .bin as it is while the model is in use; now read the model again",
        )


def is_mapped(array: Array) -> bool:
    """Return whether an array is a view of a mapped file."""
    return _file_of(array) is not None


def held(array: Array) -> Array:
    """Copy a constant out of a mapped file; return other arrays unchanged.

    The copy is read-only. Concurrent calls for the same bytes share one copy while it is in use.

    Raises:
        ParseError: if the file has become shorter, or cannot be read.
    """
    file = _file_of(array)
    if file is None or not hasattr(
        os, "preadv"
    ):  # platforms without `preadv` do not let mapped files be truncated
        return array
    if array.flags.c_contiguous:
        start = _address(array) - _address(_root(array))
        raw = file.copies.get((start, array.nbytes))
        if raw is None:
            raw = file.copies[start, array.nbytes] = file.copied(start, array.nbytes)
        copy = raw.view(array.dtype).reshape(array.shape)
    else:  # constant folding may give strided views of a constant
        copy = array.copy()
    copy.flags.writeable = False
    return copy


def let_go(array: Array) -> None:
    """Release the pages that lie entirely within a memory-mapped constant; do nothing for other arrays."""
    if array.nbytes < MIN_BYTES or _DONT_NEED is None or not array.flags.c_contiguous:
        return
    mapped = _file_of(array)
    if mapped is None:
        return
    begin = _address(array) - _address(_root(array))
    first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (begin + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if end > first:
        mapped.madvise(_DONT_NEED, first, end - first)


def _file_of(array: Array) -> MappedFile | None:
    base = _root(array).base
    owner = getattr(base, "obj", base)
    return owner if isinstance(owner, MappedFile) else None


def _root(array: Array) -> Array:
    """Return the array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
