"""Memory for packed weights: the arrays of one compilation share a few large blocks, backed by huge pages.

NumPy requests huge pages only for arrays of at least 4 MiB. The weights of most layers are smaller, and mapping their memory
in 4 KiB pages takes as long as packing them.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

import numpy as np

from ..._util.scoped import setting
from ...ir.tensor import Array

__all__ = ["aligned_empty", "one_compilation"]

_ALIGNMENT, _HUGE_PAGE = 64, 1 << 21
# Advice about the use of memory, ``None`` where the system does not support it.
_WANT_HUGE, _DONT_NEED = (getattr(mmap, name, None) for name in ("MADV_HUGEPAGE", "MADV_DONTNEED"))
# The sizes of the first and of the largest block, in bytes; each block is four times as large as the previous one. Untouched
# pages take no memory.
FIRST_BLOCK, LARGEST_BLOCK = 1 << 22, 1 << 26
# Smaller arrays get memory of their own.
MIN_SHARED = 1 << 17
# Blocks are not shared with child processes, where the system can be asked for that.
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


class _Blocks:
    """Allocates arrays from large blocks; an array keeps its block alive."""

    def __init__(self) -> None:
        self._left: Array = np.empty(0, np.uint8)
        self._block: mmap.mmap | None = None
        self._size = FIRST_BLOCK

    def take(self, size: int) -> Array:
        """Return ``size`` uninitialised bytes."""
        if size > len(self._left):
            if size >= max(self._size // 2, FIRST_BLOCK):  # leave the rest of the block to smaller arrays
                return np.empty(size, np.uint8)
            self.release()
            self._left, self._block = _new_block(self._size)
            self._size = min(4 * self._size, LARGEST_BLOCK)
        taken, self._left = self._left[:size], self._left[size:]
        return taken

    def release(self) -> None:
        """Return the unused pages at the end of the block to the system."""
        if self._block is not None:
            length = len(self._left) // mmap.PAGESIZE * mmap.PAGESIZE
            end = self._left.ctypes.data + len(self._left) - np.frombuffer(self._block, np.uint8).ctypes.data
            if length:
                _advise(self._block, _DONT_NEED, end - length, length)
        self._left, self._block = np.empty(0, np.uint8), None


def _advise(mapped: mmap.mmap, advice: int | None, start: int, length: int) -> None:
    """Call `madvise` for part of a mapping, unless the system does not support the advice."""
    if advice is not None:
        with suppress(OSError):
            mapped.madvise(advice, start, length)


def _trim_heap() -> None:
    """Return free heap memory to the system: constant folding leaves some, and blocks do not come from the heap."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)  # glibc only


def _new_block(size: int) -> tuple[Array, mmap.mmap]:
    """Return a block of ``size`` bytes, aligned to a huge page, and the mapping that contains it.

    Raises:
        MemoryError: if the memory is not available.
    """
    if size > FIRST_BLOCK:  # for a small model, trimming frees little and takes too long
        _trim_heap()
    try:
        mapped = mmap.mmap(-1, size + _HUGE_PAGE, **_PRIVATE)
    except OSError as reason:
        raise MemoryError(str(reason)) from None
    _advise(mapped, _WANT_HUGE, 0, len(mapped))
    block = np.frombuffer(mapped, np.uint8)
    start = -block.ctypes.data % _HUGE_PAGE
    return block[start : start + size], mapped


_BLOCKS: ContextVar[_Blocks | None] = ContextVar("blocks of packed weights", default=None)


@contextmanager
def one_compilation() -> Iterator[None]:
    """Allocate the weights of the compilation in the block, including nested graphs, from shared blocks."""
    if _BLOCKS.get() is not None:
        yield
        return
    blocks = _Blocks()
    with setting(_BLOCKS, blocks):
        yield
    blocks.release()


def aligned_empty(size: int) -> Array:
    """Return an uninitialised 1-D f32 array of ``size`` elements, aligned to a cache line."""
    taken, blocks = 4 * size + _ALIGNMENT, _BLOCKS.get()
    shared = blocks is not None and taken >= MIN_SHARED
    raw = blocks.take(taken) if blocks is not None and shared else np.empty(taken, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + 4 * size].view(np.float32)
