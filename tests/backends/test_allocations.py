"""Array memory can be counted, bounded and refused in tests."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from harness.memory import counting, failing

MIB = 1 << 20
HUGE = 1 << 40
# The system gives whole pages.
PAGES = 1 << 13


def test_peak_and_live_are_those_of_arrays() -> None:
    with counting() as memory:
        kept = np.empty(MIB, np.uint8)
        for _ in range(3):
            np.zeros(2 * MIB, np.uint8)
    assert kept.nbytes <= memory.live <= kept.nbytes + PAGES
    assert 3 * MIB <= memory.peak <= 3 * MIB + 2 * PAGES
    assert (memory.count, memory.refused, memory.largest) == (4, 0, 2 * MIB)


def test_arrays_that_grow_are_counted_once() -> None:
    with counting() as memory:
        array = np.zeros(MIB, np.uint8)
        array.resize(3 * MIB, refcheck=False)
    assert 3 * MIB <= memory.live <= 3 * MIB + PAGES


def test_arrays_of_other_threads_are_counted() -> None:
    with counting() as memory:
        thread = threading.Thread(target=lambda: np.empty(MIB, np.uint8))
        thread.start()
        thread.join()
    assert MIB <= memory.peak <= MIB + PAGES


def test_what_exceeds_the_bound_is_refused_and_not_taken() -> None:
    with counting(most=4 * MIB) as memory:
        kept = np.empty(3 * MIB, np.uint8)
        with pytest.raises(MemoryError):
            np.empty(HUGE, np.uint8)
        with pytest.raises(MemoryError):
            np.zeros(2 * MIB, np.uint8)
        with pytest.raises(MemoryError):
            kept.resize(5 * MIB, refcheck=False)
        kept.resize(MIB, refcheck=False)
        np.empty(2 * MIB, np.uint8)
    assert (memory.refused, memory.largest) == (3, HUGE)
    assert memory.peak <= 4 * MIB


@pytest.mark.parametrize("number", [1, 2, 3])
def test_one_allocation_fails(number: int) -> None:
    done = []
    with failing(number) as memory:
        for index in range(3):
            try:
                done.append((index, np.empty(index + 1)))
            except MemoryError:
                assert index + 1 == number
    assert [index for index, _ in done] == [index for index in range(3) if index + 1 != number]
    assert (memory.count, memory.refused) == (3, 1)


def test_fewer_allocations_than_the_one_that_fails() -> None:
    with failing(3) as memory:
        np.empty(1)
    assert (memory.count, memory.refused) == (1, 0)


def test_nothing_is_counted_afterwards() -> None:
    with counting(most=1) as memory:
        pass
    assert np.empty(MIB).size == MIB
    assert (memory.count, memory.refused) == (0, 0)
