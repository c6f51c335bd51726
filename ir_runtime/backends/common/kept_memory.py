"""Cache the memory of large freed arrays for the next run.

Memory that is returned to the system is unmapped, and cleared when it is mapped again. The allocator caches small arrays
itself; large blocks are cached here, never more bytes than were in use at once.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import DTypeLike

from ..._util.forks import in_child
from ...ir.tensor import Array

__all__ = [
    "MAX_KEPT",
    "KeptMemory",
    "allocator",
    "empty",
    "is_kept",
    "keep_freed_memory",
    "kept_memory",
    "release_memory",
]

MAX_KEPT = 31 << 20
"""The largest block, in bytes, that glibc's allocator can be made to keep."""

# An array of at most this many elements is not large, whatever its type.
_FEW = MAX_KEPT // 16


def keep_freed_memory() -> None:
    """Make glibc's allocator keep freed blocks of up to `MAX_KEPT` bytes instead of returning them to the system.

    Freeing a large block raises glibc's mmap threshold to its size (`M_MMAP_THRESHOLD` is dynamic, see mallopt(3)), and its
    trim threshold to twice that. Otherwise pages are mapped and cleared in every run, a fifth of MobileNet's time. The block
    is never touched, so it costs nothing; other allocators are not affected.
    """
    np.empty(MAX_KEPT, np.uint8)


def empty(shape: int | Sequence[int], dtype: DTypeLike) -> Array:
    """Return an uninitialised array like `numpy.empty`, in a block of the cache if it has more than `MAX_KEPT` bytes.

    If the process has no cache, all arrays are those of `numpy.empty`.
    """
    count = shape if isinstance(shape, int) else math.prod(shape)
    if count <= _FEW or (size := count * np.dtype(dtype).itemsize) <= MAX_KEPT:
        return np.empty(shape, dtype)
    if (memory := _memory()) is None:
        return np.empty(shape, dtype)
    return memory.lend(size, dtype).reshape(shape)


def allocator(layouts: Iterable[tuple[int | Sequence[int], DTypeLike]]) -> Callable[..., Array]:
    """Return the function that allocates arrays of given shapes and dtypes: `empty` if any exceeds `MAX_KEPT`, else `numpy.empty`."""
    sizes = (np.prod(shape, dtype=int) * np.dtype(dtype).itemsize for shape, dtype in layouts)
    return empty if any(size > MAX_KEPT for size in sizes) else np.empty


def is_kept(base: object) -> bool:
    """Return whether ``base``, the attribute ``base`` of an array, is the buffer of a block in the cache."""
    memory = _memory()
    return memory is not None and isinstance(base, memoryview) and memory.has(base.obj)


def kept_memory() -> KeptMemory:
    """Return the block cache of the process, created if there is none; it lives as long as a caller references it."""
    if (memory := _memory()) is None:
        memory = KeptMemory()
        _shared[:] = [weakref.ref(memory)]
    return memory


def release_memory() -> None:
    """Return cached memory to the system."""
    if (memory := _memory()) is not None:
        memory.release()


def _memory() -> KeptMemory | None:
    return _shared[0]() if _shared else None


class _Block:
    """A block of memory, and the buffer of the array that currently uses it."""

    def __init__(self, size: int) -> None:
        self.array = np.empty(size, np.uint8)
        self.user: Callable[[], object] = _no_array
        """Returns the buffer while an array uses it, afterwards ``None``."""

    @property
    def nbytes(self) -> int:
        """The size of the block in bytes."""
        return self.array.nbytes

    def lend(self, size: int, dtype: DTypeLike) -> Array:
        """Return a 1-D array of ``size`` bytes in the block; its views keep the same buffer, a memoryview, alive."""
        array = np.frombuffer(self.array.data[:size], dtype)
        self.user = weakref.ref(array.base)
        return array


def _no_array() -> None:
    """Return ``None``: no array uses the block."""


class KeptMemory:
    """A cache of memory blocks; a block is free once the buffer of its array is garbage-collected."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._most = 0
        """The peak number of bytes in use."""

    def lend(self, size: int, dtype: DTypeLike = np.uint8) -> Array:
        """Return a 1-D array of ``size`` bytes in the smallest unused block that fits, or in a new block."""
        with _lock[0]:
            fitting = [block for block in self._find_unused() if block.nbytes >= size]
            block = min(fitting, key=_size) if fitting else self._new(size)
            return block.lend(size, dtype)

    def has(self, owner: object) -> bool:
        """Return whether ``owner`` is the array of a block of this cache."""
        return any(owner is block.array for block in self._blocks)

    def release(self) -> None:
        """Drop all blocks; arrays keep the blocks that they use alive."""
        with _lock[0]:
            self._blocks, self._most = [], 0

    def _find_unused(self) -> list[_Block]:
        """Return the blocks that no array uses."""
        return [block for block in self._blocks if block.user() is None]

    def _new(self, size: int) -> _Block:
        """Add a block, and drop unused ones, so that the total never exceeds the peak use."""
        unused = sorted(self._find_unused(), key=_size)
        total = size + sum(map(_size, self._blocks))
        self._most = max(self._most, total - sum(map(_size, unused)))
        while total > self._most:
            smallest = unused.pop(0)
            self._blocks = [block for block in self._blocks if block is not smallest]
            total -= smallest.nbytes
        self._blocks.append(block := _Block(size))
        return block


def _size(block: _Block) -> int:
    return block.nbytes


_lock = [threading.Lock()]
_shared: list[weakref.ref[KeptMemory]] = []


@in_child
def _renew_lock() -> None:
    """Replace the lock after a fork: a thread of the parent may have held it."""
    _lock[0] = threading.Lock()
