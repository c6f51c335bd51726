"""Cache the memory of freed arrays for the next run, as the system unmaps and clears returned pages.

The allocator caches memory of small arrays. Large blocks are cached here, never more than were in use at
once.
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
"""The most bytes of a block that glibc's allocator can be made to keep."""

# Arrays of so few elements are not large, whatever their type.
_FEW = MAX_KEPT // 16


def keep_freed_memory() -> None:
    """Let the allocator keep freed memory for the next result instead of returning it to the system.

    After one large block was freed, glibc raises its mmap threshold to that size (`M_MMAP_THRESHOLD` is dynamic, see
    mallopt(3)) and keeps up to twice as much. Otherwise pages are mapped and cleared again in every run: a fifth of
    MobileNet's time. The block is never touched, so it costs nothing; other allocators are not affected.
    """
    np.empty(MAX_KEPT, np.uint8)


def empty(shape: int | Sequence[int], dtype: DTypeLike) -> Array:
    """Return an uninitialised array like `numpy.empty`, reusing a freed block for large ones."""
    count = shape if isinstance(shape, int) else math.prod(shape)
    if count <= _FEW or (size := count * np.dtype(dtype).itemsize) <= MAX_KEPT:
        return np.empty(shape, dtype)
    if (memory := _memory()) is None:
        return np.empty(shape, dtype)
    return memory.lend(size, dtype).reshape(shape)


def allocator(layouts: Iterable[tuple[int | Sequence[int], DTypeLike]]) -> Callable[..., Array]:
    """Return the allocator for arrays of these shapes and types: `empty` if one is large, else `numpy.empty`."""
    sizes = (np.prod(shape, dtype=int) * np.dtype(dtype).itemsize for shape, dtype in layouts)
    return empty if any(size > MAX_KEPT for size in sizes) else np.empty


def is_kept(base: object) -> bool:
    """Return whether the base of an array is a cached block."""
    memory = _memory()
    return memory is not None and isinstance(base, memoryview) and memory.has(base.obj)


def kept_memory() -> KeptMemory:
    """Return the block cache, which lives as long as this object is referenced, as by compiled models."""
    if (found := _memory()) is None:
        found = KeptMemory()
        _shared[:] = [weakref.ref(found)]
    return found


def release_memory() -> None:
    """Return the memory of freed arrays to the system."""
    if (memory := _memory()) is not None:
        memory.release()


def _memory() -> KeptMemory | None:
    return _shared[0]() if _shared else None


class _Block:
    """A block of memory, and the buffer by which an array uses it."""

    def __init__(self, size: int) -> None:
        self.array = np.empty(size, np.uint8)
        self.user: Callable[[], object] = _nothing
        """Returns the buffer as long as an array uses it, else ``None``."""

    @property
    def nbytes(self) -> int:
        """The size of the block."""
        return self.array.nbytes

    def lend(self, size: int, dtype: DTypeLike) -> Array:
        """Return an array in the block. Its views, and theirs, keep its buffer alive: a memoryview that NumPy makes."""
        array = np.frombuffer(self.array.data[:size], dtype)
        self.user = weakref.ref(array.base)
        return array


def _nothing() -> None:
    """A block that no array uses."""


class KeptMemory:
    """Blocks of memory that arrays use: one is free when the buffer of its array is gone."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._most = 0
        """The most bytes that were in use at once."""

    def lend(self, size: int, dtype: DTypeLike = np.uint8) -> Array:
        """Return an array of that many bytes in an unused block, the smallest that fits, or in a new one."""
        with _lock[0]:
            fitting = [block for block in self._unused() if block.nbytes >= size]
            block = min(fitting, key=_size) if fitting else self._new(size)
            return block.lend(size, dtype)

    def has(self, owner: object) -> bool:
        """Return whether an object is the memory of a block."""
        return any(owner is block.array for block in self._blocks)

    def release(self) -> None:
        """Drop all blocks; arrays in use keep theirs alive."""
        with _lock[0]:
            self._blocks, self._most = [], 0

    def _unused(self) -> list[_Block]:
        """Return the blocks that no array uses."""
        return [block for block in self._blocks if block.user() is None]

    def _new(self, size: int) -> _Block:
        """Add a block, and drop unused ones: there is never more memory than was in use at once."""
        unused = sorted(self._unused(), key=_size)
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
    """Renew the lock, which another thread may have held."""
    _lock[0] = threading.Lock()
