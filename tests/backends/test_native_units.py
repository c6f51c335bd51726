"""The units of a call: each is computed exactly once, and a thread starts with its own range."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from ir_runtime.backends import available

if "native" not in available():
    pytest.skip("native is not installed", allow_module_level=True)

from harness.routines import load

from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native.codegen.memory import fetch_add, load_i64, store_i64
from ir_runtime.backends.native.threading.parallel import new_call, parallel_for, running
from ir_runtime.backends.native.threading.task import (
    UNUSED,
    Task,
    each_chunk,
    each_counted,
    each_unit,
    next_unit,
    shared_counters,
    store_ranges,
    store_worker,
)


@Task
def _take(_call: int, job: int, out: int) -> None:
    """Take units of another call as one of its threads, and store their order; the job is units, threads, thread."""
    other, own = new_call(), new_call()
    units = load_i64(job, 0)
    store_ranges(other, load_i64(job, 1))
    store_worker(own, other, load_i64(job, 2))
    count, unit = 0, next_unit(own, units)
    while unit < units:
        store_i64(out, count, unit)
        count, unit = count + 1, next_unit(own, units)
    store_i64(out, count, -1)


def taken(units: int, threads: int, thread: int) -> list[int]:
    out = np.full(units + 2, -2)
    parallel_for(_take.address, np.array([units, threads, thread]), out, UNUSED, UNUSED, UNUSED, 1)
    assert out[units:].tolist() == [-1, -2]
    return out[:units].tolist()


def test_a_thread_begins_with_its_own_range_and_takes_what_is_left_in_others() -> None:
    assert taken(6, 1, 0) == [0, 1, 2, 3, 4, 5]
    assert taken(6, 2, 0) == [0, 1, 2, 3, 4, 5]
    assert taken(6, 2, 1) == [3, 4, 5, 0, 1, 2]
    assert taken(7, 3, 1) == [2, 3, 4, 5, 6, 0, 1]
    assert taken(3, 5, 4) == [2, 0, 1]
    assert taken(0, 2, 1) == []


@pytest.mark.parametrize("threads", [7, 8, 9, 64])
def test_many_threads_share_ranges(threads: int) -> None:
    firsts = {taken(64, threads, thread)[0] for thread in range(threads)}
    assert len(firsts) == min(threads, 8)
    assert all(sorted(taken(11, threads, thread)) == list(range(11)) for thread in range(threads))


@Task
def _count(call: int, job: int, out: int) -> None:
    units = load_i64(job, 0)
    for unit in each_unit(call, units):
        if unit % 2 == 0:
            fetch_add(out + 8 * unit)
            continue  # takes the next unit
        fetch_add(out + 8 * unit)


@Task
def _count_elements(call: int, job: int, out: int) -> None:
    """Count elements in chunks of a given size, and then units of a phase; the job is elements, size, units."""
    counter = shared_counters(call)
    elements, size, units = load_i64(job, 0), load_i64(job, 1), load_i64(job, 2)
    for start, end in each_chunk(call, elements, size):
        for element in range(start, end):
            fetch_add(out + 8 * element)
    for unit in each_counted(counter, units):
        fetch_add(out + 8 * (elements + unit))


load(_take, _count, _count_elements)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [1, 3, 8, 1000])
def test_chunks_are_of_a_size_but_the_last(size: int, threads: int) -> None:
    with at_most(threads), running():
        for elements in (0, 1, 7, 8, 9, 100):
            out = np.zeros(elements + 6, np.int64)
            job = np.array([elements, size, 5])
            parallel_for(_count_elements.address, job, out, UNUSED, UNUSED, UNUSED, threads)
            assert out.tolist() == [1] * (elements + 5) + [0]


@pytest.mark.parametrize("threads", [1, 2, 3, 12])
def test_threads_compute_each_unit_once(threads: int) -> None:
    with at_most(threads), running():
        for units in (0, 1, 2, 3, 5, 1000):
            for _ in range(20):
                out = np.zeros(units + 1, np.int64)
                parallel_for(_count.address, np.array([units]), out, UNUSED, UNUSED, UNUSED, threads)
                assert out.tolist() == [1] * units + [0]


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("inside", [False, True])
def test_a_task_is_divided_among_no_more_threads_than_the_run_has(most: int, inside: bool) -> None:
    out = np.zeros(9, np.int64)
    with at_most(most), running() if inside else nullcontext():
        parallel_for(_count.address, np.array([8]), out, UNUSED, UNUSED, UNUSED, 4)
    assert out.tolist() == [1] * 8 + [0]
