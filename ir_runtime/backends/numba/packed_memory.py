"""Memory for packed weights: the arrays of one compilation share a few large blocks, for which the system has huge pages.

NumPy asks for huge pages for arrays of 4 MiB and more. Most layers have smaller weights, and the system takes as long to
provide memory in pages of 4 KiB as packing them takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from ...ir.tensor import Array
from ...scoped import setting

__all__ = ["aligned_empty", "one_compilation"]

_ALIGNMENT, _HUGE_PAGE = 64, 1 << 21
# Bytes of the first and of the largest block; each is four times as large as the one before. What is not used takes no memory.
FIRST_BLOCK, LARGEST_BLOCK = 1 << 22, 1 << 26
# Smaller arrays are on their own.
MIN_SHARED = 1 << 17


class _Blocks:
    """Divides blocks into arrays, each of which keeps its block alive."""

    def __init__(self) -> None:
        self._left: Array = np.empty(0, np.uint8)
        self._size = FIRST_BLOCK

    def take(self, size: int) -> Array:
        """Return ``size`` uninitialised bytes."""
        if size > len(self._left):
            if size >= max(self._size // 2, FIRST_BLOCK):  # the rest of the block is for smaller ones
                return np.empty(size, np.uint8)
            block = np.empty(self._size + _HUGE_PAGE, np.uint8)
            start = -block.ctypes.data % _HUGE_PAGE
            self._left = block[start : start + self._size]
            self._size = min(4 * self._size, LARGEST_BLOCK)
        found, self._left = self._left[:size], self._left[size:]
        return found


_BLOCKS: ContextVar[_Blocks | None] = ContextVar("blocks of packed weights", default=None)


@contextmanager
def one_compilation() -> Iterator[None]:
    """Let the weights of one compilation share blocks, including those of nested graphs."""
    if _BLOCKS.get() is not None:
        yield
        return
    with setting(_BLOCKS, _Blocks()):
        yield


def aligned_empty(size: int) -> Array:
    """Return an uninitialised f32 array that is aligned to a cache line."""
    taken, blocks = 4 * size + _ALIGNMENT, _BLOCKS.get()
    shared = blocks is not None and taken >= MIN_SHARED
    raw = blocks.take(taken) if blocks is not None and shared else np.empty(taken, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + 4 * size].view(np.float32)
