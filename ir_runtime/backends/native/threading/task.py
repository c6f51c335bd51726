"""Tasks: kernels whose units of work are shared by threads.

A task is called with the address of a call, a block of words: the addresses of its job, its result and up to four inputs, and
zeroed counters. It declares the call as its first parameter, followed by as many of these addresses as it reads:

    @Task
    def _scale(call: int, job: ScaleJob, out: int, a: int) -> None: ...

Units are divided into one range per thread, unless there are too many threads: `each_unit` takes the units of
the thread's own range in order, then those left in other ranges; `each_chunk` does the same with chunks of
elements. So units are taken over from a thread that is late or interrupted, yet a thread usually computes the
same part of a map in consecutive layers and finds it in its own cache: reading a line written by another core
takes ten times as long. Later phases of a call count their units with `each_counted` in one of the
`shared_counters`; between phases, `barrier` waits only for units that other threads have begun, so no thread
waits for one that has not arrived.

A thread that cannot allocate scratch memory returns, and other threads take over its units; the call has then failed
(`failure_word`), even if they complete it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..codegen.language import Chunks, Routine, Units, device, routine, types
from ..codegen.memory import fetch_add, load_atomic, load_i64, store_atomic, store_i64
from ..machine_code import library

__all__ = [
    "CALL_WORDS",
    "COUNTERS",
    "FIRST_RANGE",
    "NO_SCRATCH",
    "RANGES",
    "UNUSED",
    "WORKER_WORDS",
    "Task",
    "each_chunk",
    "each_counted",
    "each_unit",
    "failure_word",
    "next_unit",
    "shared_counters",
    "store_args",
    "store_ranges",
    "store_worker",
    "thread_index",
]

# Words of a call after its arguments: the address of the shared counters, the index of the thread, and the number of ranges.
# Each worker has its own copy of these words. The counters follow on separate cache lines: three for use by the task, one
# that is nonzero if the call has failed, and one for each range.
COUNTERS, _THREAD, RANGES, WORKER_WORDS = 6, 7, 8, 16
_LINE, _MAX_RANGES = 8, 8
_FAILURE = 3 * _LINE
FIRST_RANGE = _FAILURE + _LINE
CALL_WORDS = WORKER_WORDS + FIRST_RANGE + _MAX_RANGES * _LINE

NO_SCRATCH = "none is left for the scratch memory of its kernel"
"""The message of the `MemoryError` of a failed call."""
UNUSED = np.empty(0, np.float32)
"""A placeholder for an array that a task does not read."""


@device
def failure_word(call: int) -> int:
    """Return the address of the i64 of a call that becomes nonzero when a thread cannot allocate scratch memory."""
    found: int = load_i64(call, COUNTERS) + 8 * _FAILURE
    return found


@device
def _fail(call: int) -> None:
    store_atomic(failure_word(call), 1)


class Task(Routine):
    """A routine that takes the address of a call, and whose units threads share.

    Args:
        function: a function of the address of a call, and the addresses of its job, result and inputs.
        name: the name of its symbol, for functions that would otherwise share one.
    """

    failure = _fail
    reads_words = True

    def __init__(self, function: Callable[..., None], name: str = "") -> None:
        function.__qualname__ = name or function.__qualname__
        super().__init__(function, (types.int64,))
        self._address = 0

    def prepare(self) -> None:
        """Look up the address of the machine code, so that the first run of a model need not."""
        self._address = self._address or library().address(self.name)

    @property
    def address(self) -> int:
        """The address of the machine code."""
        if not self._address:
            self.prepare()
        return self._address


@device
def store_args(call: int, job: int, out: int, a: int, b: int, c: int, d: int) -> None:
    """Store the addresses of job, result and inputs in a call."""
    store_i64(call, 0, job)
    store_i64(call, 1, out)
    store_i64(call, 2, a)
    store_i64(call, 3, b)
    store_i64(call, 4, c)
    store_i64(call, 5, d)


@device
def store_ranges(call: int, threads: int) -> None:
    """Set the number of ranges of a call to that of its threads, and its thread index to 0, the caller."""
    store_i64(call, COUNTERS, call + 8 * WORKER_WORDS)
    store_i64(call, _THREAD, 0)
    store_i64(call, RANGES, min(threads, _MAX_RANGES))


@device
def store_worker(own: int, call: int, thread: int) -> None:
    """Fill ``own``, the words with which the worker of index ``thread`` joins a call."""
    for index in range(_THREAD):
        store_i64(own, index, load_i64(call, index))
    store_i64(own, _THREAD, thread)
    store_i64(own, RANGES, load_i64(call, RANGES))


@device
def shared_counters(call: int) -> int:
    """Return the address of the counters of a call that its task may use."""
    counters: int = load_i64(call, COUNTERS)
    return counters


@device
def thread_index(call: int) -> int:
    """Return the index of this thread, 0 for the caller; a worker has the same index in all calls of a run."""
    found: int = load_i64(call, _THREAD)
    return found


@routine(types.int64, types.int64, returns=types.int64)
def next_unit(call: int, units: int) -> int:
    """Take a unit, or return ``units`` if none is left; a routine, not a device, since nearly all kernels call it."""
    ranges = load_i64(call, RANGES)
    place = thread_index(call) % ranges
    counters, found = load_i64(call, COUNTERS) + 8 * FIRST_RANGE, units
    for _turn in range(ranges):
        begin, end = place * units // ranges, (place + 1) * units // ranges
        counter = counters + 8 * _LINE * place
        if load_atomic(counter) < end - begin:
            unit = begin + fetch_add(counter)
            if unit < end:
                found = unit
                break
        place = place + 1 if place + 1 < ranges else 0
    return found


@device
def _count_unit(counter: int, _units: int) -> int:
    """Take a unit of a phase, by incrementing the counter of the phase."""
    unit: int = fetch_add(counter)
    return unit


each_unit, each_counted = Units(next_unit), Units(_count_unit)
"""Loops over the units of a call, and over the units of a phase, which are counted by one of the `shared_counters`."""
each_chunk = Chunks(each_unit)
"""A loop over chunks of a call's elements, which yields the start and end of each."""
