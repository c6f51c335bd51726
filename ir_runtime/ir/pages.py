"""Constants in memory-mapped files: releasing their pages, and files that are truncated while mapped.

Once a kernel has a copy of a constant, the mapped pages are no longer read but still count as memory of the process.
They can be released at any time (``MADV_DONTNEED``); a later read maps them again.

Access beyond the end of a truncated file raises SIGBUS. So constants that are read in every run are copied from the
file, and the length of the file is checked before mapped ones are read.
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
    """A memory-mapped file that stays open."""

    name: str
    number: int
    """Its file descriptor, which is closed with it."""
    copies: WeakValueDictionary[tuple[int, int], Array]
    """The copies that are in use, by where they begin and how long they are."""

    @classmethod
    def of(cls, file: IO[bytes], name: str) -> MappedFile:
        """Map a file that is not empty.

        Raises:
            OSError: if it cannot be mapped.
        """
        mapped = cls(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapped.name, mapped.number = name, os.dup(file.fileno())
        mapped.copies = WeakValueDictionary()
        weakref.finalize(mapped, os.close, mapped.number)
        return mapped

    def check(self) -> None:
        """Check the length of the file.

        Raises:
            ParseError: if it has become shorter.
        """
        if (length := os.lseek(self.number, 0, os.SEEK_END)) < len(self):  # `fstat` would take a microsecond
            raise self._shorter(length)

    def copied(self, start: int, size: int) -> Array:
        """Read bytes of the file into a new array.

        Raises:
            ParseError: if it has become shorter, or cannot be read.
            LimitError: if they are more than fits into memory.
        """
        check_array_size(size)
        found, done = np.empty(size, np.uint8), 0
        try:
            while done < size:
                count = os.preadv(self.number, [found.data[done : done + _READ_SIZE]], start + done)
                if not count:
                    raise self._shorter(start + done)
                done += count
        except OSError as reason:
            why = reason.strerror or str(reason)
            raise ParseError(f"the weights cannot be read: {why}", where=Location(self.name)) from None
        return found

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
    """Copy a constant from a mapped file to a read-only array, which plans share; return other arrays unchanged.

    Raises:
        ParseError: if the file has become shorter, or cannot be read.
    """
    file = _file_of(array)
    if file is None or not hasattr(os, "preadv"):  # where it is missing, what is mapped cannot be cut off
        return array
    if array.flags.c_contiguous:
        start = _address(array) - _address(_root(array))
        raw = file.copies.get((start, array.nbytes))
        if raw is None:
            raw = file.copies[start, array.nbytes] = file.copied(start, array.nbytes)
        found = raw.view(array.dtype).reshape(array.shape)
    else:  # what was folded may be a view of a constant, whose elements are not contiguous
        found = array.copy()
    found.flags.writeable = False
    return found


def let_go(array: Array) -> None:
    """Release the pages that are entirely within a constant, if it is a view of a mapped file."""
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
    found = getattr(base, "obj", base)
    return found if isinstance(found, MappedFile) else None


def _root(array: Array) -> Array:
    """Return the array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
