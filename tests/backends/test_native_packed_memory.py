"""Memory of packed weights: aligned, never shared by two arrays, and freed with the last array of a block."""

from __future__ import annotations

import ctypes
import mmap
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from ir_runtime.backends.native import backend, packed_memory
from ir_runtime.backends.native.packed_memory import FIRST_BLOCK, MIN_SHARED, aligned_empty
from ir_runtime.ir.tensor import Array

SIZES = [1, 100, MIN_SHARED // 4, MIN_SHARED // 4 + 3, FIRST_BLOCK // 16, FIRST_BLOCK // 4, FIRST_BLOCK]


def block_of(array: Array) -> Array:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


@pytest.mark.parametrize("order", [1, -1])
def test_arrays_do_not_overlap(order: int) -> None:
    with backend.compiling():
        arrays = [aligned_empty(size) for size in SIZES[::order] * 4]
    for number, array in enumerate(arrays):
        array[...] = number
    for number, array in enumerate(arrays):
        assert array.ctypes.data % 64 == 0
        assert (array == number).all()
    assert [array.size for array in arrays] == SIZES[::order] * 4


def test_weights_of_one_compilation_share_blocks() -> None:
    size = MIN_SHARED // 4
    with backend.compiling():
        first = aligned_empty(size)
        with backend.compiling():  # of a body
            inner = aligned_empty(size)
        small = aligned_empty(16)
    with backend.compiling():
        other = aligned_empty(size)
    assert block_of(inner) is block_of(first)
    assert len({id(block_of(array)) for array in (first, small, other, aligned_empty(size))}) == 4


def test_arrays_are_in_whole_huge_pages() -> None:
    """This includes arrays below 4 MiB, for which NumPy does not request huge pages."""
    with backend.compiling():
        arrays = [aligned_empty(size // 4) for size in (MIN_SHARED, FIRST_BLOCK - 64, FIRST_BLOCK * 3 // 5)]
    for array in arrays:
        block = block_of(array)
        begin, size = array.ctypes.data - block.ctypes.data, 1 << 21
        first = -block.ctypes.data % size  # where its first whole page begins
        assert first <= begin <= first + (block.nbytes - first) // size * size - array.nbytes


def test_a_block_is_given_back_with_its_last_array() -> None:
    with backend.compiling():
        first, second = (aligned_empty(MIN_SHARED) for _ in range(2))
    block = weakref.ref(block_of(first))
    del first
    assert block() is not None
    second[...] = 1
    del second
    assert block() is None


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"),
    reason="only glibc can give it back",
)
def test_free_memory_of_the_heap_is_given_back_before_a_large_block_is_taken() -> None:
    """The last chunk keeps the heap from shrinking by itself."""
    library, size, count = (
        ctypes.CDLL(None),
        1 << 16,
        400,
    )  # pieces smaller than what the C library maps by itself
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.restype, library.free.argtypes = None, [ctypes.c_void_p]
    *pieces, last = sorted(library.malloc(size) for _ in range(count))
    for piece in (*pieces, last):
        ctypes.memset(piece, 1, size)
    for piece in pieces:
        library.free(piece)
    before = resident()
    with backend.compiling():
        blocks = [aligned_empty(FIRST_BLOCK // 8) for _ in range(3)]  # two blocks, of which nothing is used
    library.free(last)
    assert len({id(block_of(block)) for block in blocks}) == 2
    assert last - pieces[0] > 20 << 20
    assert before - resident() > 15 << 20


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def is_resident(begin: int, end: int) -> bool:
    """Return whether any page between two addresses is resident."""
    page = mmap.PAGESIZE
    begin = -(-begin // page) * page
    pages = (ctypes.c_ubyte * ((end - begin) // page))()
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), pages) == 0
    return any(pages)


@pytest.mark.skipif(sys.platform != "linux", reason="it asks Linux which pages are in memory")
def test_what_is_left_of_a_block_takes_no_memory() -> None:
    """The unused rest of a block is not resident, although huge pages have 2 MiB."""
    with backend.compiling():
        arrays = []
        for size in (FIRST_BLOCK // 16, FIRST_BLOCK // 4):  # of f32: the second needs another block
            arrays.append(aligned_empty(size + 1000))
            arrays[-1][...] = 1
    for array in arrays:
        begin, huge = array.ctypes.data, 1 << 21
        end = begin + array.nbytes
        assert is_resident(begin, end // huge * huge + huge)
        assert not is_resident(end, end // huge * huge + huge)
        assert (array == 1).all()


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_memory, "FIRST_BLOCK", 1 << 60)
    with backend.compiling(), pytest.raises(MemoryError, match="annot allocate"):
        aligned_empty(MIN_SHARED)
