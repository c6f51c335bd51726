"""Giving back the memory of constants that kernels have packed.

Constants are views of a file that is mapped. Once a kernel has its own copy of one, nobody reads the file's,
but its pages still count as this process's memory. They can be let go at any time: should somebody read
them after all, the system brings them back.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from .tensor import Array

__all__ = ["let_go"]

# Constants that are smaller are not worth a call to the system.
WORTH = 1 << 16
_DONT_NEED: int | None = getattr(mmap, "MADV_DONTNEED", None)


def let_go(array: Array) -> None:
    """Let the pages go that lie wholly within a constant, if it lies in a mapped file."""
    if array.nbytes < WORTH or _DONT_NEED is None or not array.flags.c_contiguous:
        return
    root = _root(array)
    mapped = getattr(root.base, "obj", root.base)
    if not isinstance(mapped, mmap.mmap):
        return
    begin = _address(array) - _address(root)
    first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (begin + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if end > first:
        mapped.madvise(_DONT_NEED, first, end - first)


def _root(array: Array) -> Array:
    """The array that all of these are views of, and that is none itself."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _address(array: Array) -> int:
    interface: dict[str, Any] = array.__array_interface__
    return int(interface["data"][0])
