"""Constants that are views of a mapped file: their memory, and what to do about a file that is cut off.

Once a kernel has its own copy of one, nobody reads the file's, but its pages still count as this process's memory.
They can be let go at any time: should somebody read them after all, the system brings them back.

Whoever touches what is mapped behind the end of a file dies by a signal. So what is read in every run is read from the
file, not mapped; and of what may be, the file's length is looked at before.
"""

from __future__ import annotations

import mmap
import os
import weakref
from typing import IO, Any

import numpy as np

from ..codes import Code
from ..diagnostics import Location
from ..errors import ParseError
from ..limits import check_array_size
from .tensor import Array

__all__ = ["WORTH", "MappedFile", "held", "is_mapped", "let_go"]

# Constants that are smaller are not worth a call to the system.
WORTH = 1 << 16
# Bytes that are read at once.
_AT_ONCE = 1 << 28
_DONT_NEED: int | None = getattr(mmap, "MADV_DONTNEED", None)


class MappedFile(mmap.mmap):
    """A file that is mapped, and still open."""

    name: str
    number: int
    """Its descriptor, which is closed with it."""

    @classmethod
    def of(cls, file: IO[bytes], name: str) -> MappedFile:
        """Map a file that is not empty.

        Raises:
            OSError: if it cannot be mapped.
        """
        mapped = cls(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapped.name, mapped.number = name, os.dup(file.fileno())
        weakref.finalize(mapped, os.close, mapped.number)
        return mapped

    def check(self) -> None:
        """Look at the length of the file.

        Raises:
            ParseError: if it has become shorter.
        """
        if (length := os.fstat(self.number).st_size) < len(self):
            raise self._shorter(length)

    def copied(self, start: int, size: int) -> Array:
        """Bytes of the file, read from it.

        Raises:
            ParseError: if it has become shorter, or cannot be read.
            LimitError: if they are more than fits into memory.
        """
        check_array_size(size)
        found, done = np.empty(size, np.uint8), 0
        try:
            while done < size:
                count = os.preadv(self.number, [found.data[done : done + _AT_ONCE]], start + done)
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
    """Whether an array lies in a file that is mapped."""
    return _file_of(array) is not None


def held(array: Array) -> Array:
    """A constant in memory of its own, read-only; itself, if it lies in no file, or none that can be cut off.

    Raises:
        ParseError: if the file has become shorter, or cannot be read.
    """
    file = _file_of(array)
    if file is None or not hasattr(os, "preadv"):  # where it is missing, what is mapped cannot be cut off
        return array
    if array.flags.c_contiguous:
        raw = file.copied(_address(array) - _address(_root(array)), array.nbytes)
        found = raw.view(array.dtype).reshape(array.shape)
    else:  # what was folded may be a view of a constant, whose elements lie apart
        found = array.copy()
    found.flags.writeable = False
    return found


def let_go(array: Array) -> None:
    """Let the pages go that lie wholly within a constant, if it lies in a mapped file."""
    if array.nbytes < WORTH or _DONT_NEED is None or not array.flags.c_contiguous:
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
    """The array that all of these are views of, and that is none itself."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _address(array: Array) -> int:
    interface: dict[str, Any] = array.__array_interface__
    return int(interface["data"][0])
