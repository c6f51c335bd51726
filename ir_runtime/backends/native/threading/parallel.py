"""Parallel execution of tasks: the number of threads for a layer, the thread pool of a run, and records of calls.

The thread pool does all parallel work of a run; the numpy backend limits BLAS to one thread.

Between layers, workers wait in machine code, without the GIL, so that a task reaches them within a microsecond; they yield
the core to other threads. After a run they spin briefly, since another run often follows, and then sleep. The shared words
of a pool are on separate cache lines.

While a run is recorded, the arguments of `parallel_for` are appended to a `Record`.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from _thread import LockType, allocate_lock
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import cache
from threading import get_ident
from typing import NamedTuple

import numpy as np

from ...._util.cores import parallelism
from ...._util.forks import in_child, register
from ...._util.scoped import Scope, inside
from ....ir.tensor import Array
from ...common.kept_memory import empty
from ...core.replay import HOST_CALLS, HostCalls
from ...core.threads import most
from ..codegen.language import device, instruction, routine, types
from ..codegen.memory import (
    SPIN_LIMIT,
    fetch_add,
    fetch_sub,
    host_word,
    load_atomic,
    load_i64,
    spin,
    store_atomic,
    store_i64,
)
from ..codegen.vectors import I64, Emit, Value
from ..machine_code import library
from .denormals import float_mode, mode_bits, set_float_mode
from .task import (
    CALL_WORDS,
    NO_SCRATCH,
    UNUSED,
    WORKER_WORDS,
    failure_word,
    store_args,
    store_ranges,
    store_worker,
)

__all__ = [
    "acquire",
    "array_data",
    "at_most_cores",
    "Call",
    "dispatcher",
    "is_recording",
    "new_call",
    "parallel_for",
    "pays_to_share",
    "pool_address",
    "Record",
    "RECORD",
    "record_calls",
    "release",
    "run_call",
    "running",
    "ThreadPool",
    "threads",
    "threads_for",
    "uses_constant",
    "was_refused",
    "workspace",
]


class Call(NamedTuple):
    """A task call: the address of the task's machine code, its parameters (the job), its result and inputs, and the threads."""

    task: int
    job: Array
    arrays: tuple[Array, Array, Array, Array, Array]
    threads: int


@dataclass(slots=True, eq=False)
class Record:
    """The task calls of a step, and what a replay must know about them.

    Args:
        calls: the calls, in order.
        workspaces: arrays that calls write before they read them.
        refusals: the addresses of the counters that tasks increment when they meet data that they do not support.
        constants: arrays owned by the kernel.
        is_cheap: whether NumPy is as fast, so that the step alone is not worth a replay.
        host: the Python functions that a replay calls before and after the task calls.
    """

    calls: list[Call] = field(default_factory=list)
    workspaces: list[Array] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)
    constants: list[Array] = field(default_factory=list)
    is_cheap: bool = False
    host: HostCalls = field(default_factory=HostCalls)


RECORD: ContextVar[Record | None] = ContextVar("record", default=None)
"""The record of the current step; ``None`` while nothing is recorded."""


def record_calls(run: Callable[[], None]) -> Record:
    """Call a function, and return the record of its task calls."""
    record = Record()
    RECORD.set(record)
    HOST_CALLS.set(record.host)
    try:
        run()
    finally:
        RECORD.set(None)
        HOST_CALLS.set(None)
    return record


def workspace(size: int) -> Array:
    """Return an uninitialised array of ``size`` f32 elements for a task, which must write it before reading."""
    memory = empty(size, np.float32)
    if (record := RECORD.get()) is not None:
        record.workspaces.append(memory)
    return memory


def is_recording() -> bool:
    """Return whether a run is being recorded, and mark the step as cheap.

    Kernels of small tensors use it to leave runs that are not recorded to NumPy.
    """
    if (record := RECORD.get()) is None:
        return False
    record.is_cheap = True
    return True


def was_refused(job: Array, index: int) -> bool:
    """Return whether a task met data that it does not support, which it counts in the i64 at ``index`` of its job.

    In a recorded run, register this counter, which replays check, too.
    """
    words = job.view(np.int64)
    if (record := RECORD.get()) is not None:
        record.refusals.append(words.ctypes.data + 8 * index)
    return bool(words[index])


def uses_constant(array: Array) -> None:
    """Register a constant array, owned by the kernel, that tasks read by its address."""
    if (record := RECORD.get()) is not None:
        record.constants.append(array)


# The words of a pool: the number of the current call, its address (0 for none), the task and the floating-point mode; how many
# more workers may join the call, and how many have joined; whether a run is active; whether the pool is shut down. Then, on a
# cache line for each worker, whether it is awake.
_LINE = 8
_CALL_NUMBER, _CALL, _TASK, _MODE = 0, 8, 9, 10
_SLOTS, _JOINED, _RUN_ACTIVE, _SHUT_DOWN, _AWAKE = 16, 24, 32, 33, 40

# How often a thread yields, after spinning, before it goes to sleep if no run is active.
_YIELD_LIMIT = 2000


@instruction(types.int64, types.int64)
def _run(emit: Emit, task: Value, call: Value) -> None:
    emit.call_address(task, call)


@instruction(types.int64, returns=types.int64)
def array_data(emit: Emit, array: Value) -> Value:
    """Load the data pointer of a NumPy array, given the address of the object."""
    return emit.load(emit.at(array, host_word(emit, "array_data")), I64)


@instruction(returns=types.int64)
def new_call(emit: Emit) -> Value:
    """Allocate the zeroed words of a call on the stack; return their address."""
    return emit.stack_words(CALL_WORDS)


@instruction(returns=types.int64)
def _worker_words(emit: Emit) -> Value:
    """Allocate a worker's own words of a call on the stack; return their address."""
    return emit.stack_words(WORKER_WORDS)


@device
def _join_call(pool: int, worker: int) -> bool:
    """Work on the current call unless enough workers do; return whether there is a current call."""
    fetch_add(pool + 8 * _JOINED)
    call = load_atomic(pool + 8 * _CALL)
    found: bool = call != 0
    if found and fetch_sub(pool + 8 * _SLOTS) > 0:
        own = _worker_words()
        store_worker(own, call, worker + 1)
        set_float_mode(load_i64(pool, _MODE))
        _run(load_i64(pool, _TASK), own)
    fetch_sub(pool + 8 * _JOINED)
    return found


@routine(types.int64, types.int64)
def worker_loop(pool: int, worker: int) -> None:
    """Join every call of the pool; return once no run has been active for a while."""
    awake = pool + 8 * (_AWAKE + _LINE * worker)
    store_atomic(awake, 1)
    last, polls = -1, 0
    while True:
        number = load_atomic(pool + 8 * _CALL_NUMBER)
        if number != last and load_atomic(pool + 8 * _CALL) != 0 and _join_call(pool, worker):
            last, polls = number, 0
            continue
        polls = spin(polls)
        if polls > SPIN_LIMIT + _YIELD_LIMIT and load_atomic(pool + 8 * _RUN_ACTIVE) == 0:
            store_atomic(awake, 0)
            if load_atomic(pool + 8 * _RUN_ACTIVE) == 0:
                return
            store_atomic(awake, 1)


@device
def run_call(pool: int, task: int, call: int, threads: int) -> int:
    """Run a task on ``threads`` threads and wait for them; return 0 on success.

    ``call`` is the address of its call, which holds the arguments; ``task`` is the address of its machine code.
    """
    store_ranges(call, threads)
    if threads <= 1:
        _run(task, call)
        alone: int = load_i64(failure_word(call), 0)
        return alone
    store_i64(pool, _TASK, task)
    store_i64(pool, _MODE, float_mode())
    store_atomic(pool + 8 * _SLOTS, threads - 1)
    store_atomic(pool + 8 * _CALL, call)
    fetch_add(pool + 8 * _CALL_NUMBER)
    _run(task, call)
    store_atomic(pool + 8 * _CALL, 0)
    polls = 0
    while load_atomic(pool + 8 * _JOINED) != 0:
        polls = spin(polls)
    failed: int = load_atomic(failure_word(call))
    return failed


@routine(*[types.int64] * 10, returns=types.int64)
def dispatch(  # noqa: PLR0913 (values in registers)
    pool: int, task: int, job: int, out: int, a: int, b: int, c: int, d: int, threads: int, bits: int
) -> int:  # fmt: skip
    """Run a task on ``threads`` threads and wait for them; return 0 on success.

    Arrays are passed as addresses of NumPy objects. During the call, ``bits`` are set in the floating-point mode.
    """
    mode = float_mode()
    set_float_mode(mode | bits)
    call = new_call()
    store_args(
        call, array_data(job), array_data(out), array_data(a), array_data(b), array_data(c), array_data(d)
    )  # fmt: skip
    failed = run_call(pool, task, call, threads)
    set_float_mode(mode)
    return failed


@cache
def dispatcher() -> Callable[..., int]:
    """Return `dispatch` as a Python function, which takes arrays and releases the GIL."""
    kinds: list[type] = [
        ctypes.c_int64,
        ctypes.c_int64,
        *[ctypes.py_object] * 6,
        ctypes.c_int64,
        ctypes.c_int64,
    ]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(library().address(dispatch.name))


@cache
def _worker_loop() -> Callable[[int, int], None]:
    return ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(library().address(worker_loop.name))


class ThreadPool:
    """Worker threads for one run at a time; they end when the pool is garbage-collected."""

    def __init__(self, workers: int) -> None:
        words = np.zeros((_AWAKE // _LINE + workers + 1) * _LINE, np.int64)
        self._words: Array = words[-words.ctypes.data % 64 // 8 :]
        self.address = int(self._words.ctypes.data)
        self._sleep_locks = [allocate_lock() for _ in range(workers)]
        self._forked = False
        for lock in self._sleep_locks:
            lock.acquire()
        weakref.finalize(self, _shut_down, self._words, self._sleep_locks).atexit = False
        register(self)
        for worker, lock in enumerate(self._sleep_locks):
            name, args = f"ir_runtime kernels {worker}", (self._words, worker, lock)
            threading.Thread(target=_work, args=args, name=name, daemon=True).start()

    def __len__(self) -> int:
        """Return the number of workers; 0 in a forked process."""
        return 0 if self._forked else len(self._sleep_locks)

    def begin_run(self) -> None:
        """Mark a run as active, and wake sleeping workers."""
        words = self._words
        words[_RUN_ACTIVE] = 1
        for worker, lock in enumerate(self._sleep_locks):
            if not words[_AWAKE + _LINE * worker] and lock.locked():
                lock.release()

    def end_run(self) -> None:
        """Mark the run as ended, so that workers go to sleep."""
        self._words[_RUN_ACTIVE] = 0

    def after_fork(self) -> None:
        """Drop the workers, which a forked process does not have; an active run continues with one thread."""
        self._words[:] = 0
        self._forked = True


def _work(words: Array, worker: int, lock: LockType) -> None:
    """The function of a worker thread; it holds no reference to its pool."""
    loop, address = _worker_loop(), int(words.ctypes.data)
    while True:
        lock.acquire()
        if words[_SHUT_DOWN]:
            return
        loop(address, worker)


def _shut_down(words: Array, locks: Sequence[LockType]) -> None:
    words[_SHUT_DOWN], words[_RUN_ACTIVE] = 1, 0
    for lock in locks:
        if lock.locked():
            lock.release()


_IDLE: list[ThreadPool] = []


def acquire(workers: int) -> ThreadPool:
    """Return an idle pool of at least ``workers`` workers, or a new one."""
    try:
        pool = _IDLE.pop()
    except IndexError:
        return ThreadPool(workers)
    return pool if len(pool) >= workers else ThreadPool(workers)


def release(pool: ThreadPool) -> None:
    """Make a pool available to other runs."""
    _IDLE.append(pool)


in_child(_IDLE.clear)


MIN_PARALLEL_WORK = 1 << 12
"""The time in nanoseconds above which several threads are faster; sharing a layer costs one to two thousand."""
# The work of a thread in a nanosecond: bytes moved within the caches, and vectorized f32 operations.
_MOVED, _COMPUTED = 64, 32


@dataclass(slots=True, eq=False)
class _Run:
    """The current run. Other threads may inherit the context variable, but never use its pool."""

    thread: int = 0
    """The id of the thread of the run; 0 after the run has ended."""
    work: object = None
    """The key of its scope."""
    outer: _Run | None = None
    """The enclosing run."""
    pool: ThreadPool | None = None
    """The pool of the run, acquired when a kernel first needs threads."""
    threads: int = 0
    """The number of threads for a layer, computed on first use; 0 before."""


_NO_RUN = _Run()
_RUN: ContextVar[_Run] = ContextVar("run", default=_NO_RUN)


def _pool(run: _Run) -> ThreadPool:
    """Return the thread pool of a run, or of a run around it in the same thread.

    It is acquired on first use, so that small models wake no threads.
    """
    outer: _Run | None = run
    while outer is not None and outer.thread == run.thread:
        if outer.pool is not None:
            return outer.pool
        outer = outer.outer
    pool = run.pool = acquire(threads() - 1)
    pool.begin_run()
    return pool


def at_most_cores(threads: int) -> int:
    """Limit a number of threads to the usable cores."""
    return min(threads, parallelism())


def threads() -> int:
    """Return the number of threads for a layer of the current run."""
    run = _RUN.get()
    if run.threads:
        return run.threads
    count = most(parallelism())
    if run is not _NO_RUN:
        run.threads = count
    return count


def pays_to_share(*, moved: int = 0, computed: int = 0, steps: int = 0) -> bool:
    """Return whether sharing a layer among threads pays for its cost.

    Args:
        moved: the bytes read and written.
        computed: the number of vectorized f32 operations.
        steps: the number of scalar or address operations, of a nanosecond each.
    """
    return moved / _MOVED + computed / _COMPUTED + steps >= MIN_PARALLEL_WORK


def threads_for(*, moved: int = 0, computed: int = 0, steps: int = 0) -> int:
    """Return the number of threads for a layer of the current run: 1 unless it `pays_to_share`."""
    return threads() if moved / _MOVED + computed / _COMPUTED + steps >= MIN_PARALLEL_WORK else 1


def _begin(work: object) -> None:
    if (outer := _RUN.get()) is _NO_RUN and most(parallelism()) == 1:
        return  # no kernel will need a pool
    _RUN.set(_Run(get_ident(), work, outer))


def _end(work: object, interrupted: bool) -> None:
    run = _RUN.get()
    if run.work is not work or run.outer is None:
        return
    if (pool := run.pool) is not None:
        pool.end_run()
        run.pool = None
        if not interrupted:
            release(pool)
    run.thread = 0
    _RUN.set(run.outer)


running = Scope(_begin, _end)
"""Provides a thread pool for a run.

An interrupted run does not release its pool for reuse, since the traceback of the interrupt may still refer to the pool: it
ends with its last reference.
"""


def parallel_for(
    task: int, job: Array, out: Array, a: Array, b: Array, c: Array, threads: int, d: Array = UNUSED
) -> None:  # fmt: skip
    """Run the units of a task on up to ``threads`` threads, and wait for them.

    Arrays must be contiguous, since kernels only get addresses. Pass `UNUSED` for arrays that the task does not read.

    Raises:
        MemoryError: if the task runs out of scratch memory.
    """
    if (record := RECORD.get()) is not None:
        record.calls.append(Call(task, job, (out, a, b, c, d), threads))
    if threads <= 1:
        failed = dispatcher()(0, task, job, out, a, b, c, d, 1, mode_bits())
    elif address := pool_address():
        failed = dispatcher()(address, task, job, out, a, b, c, d, threads, mode_bits())
    else:  # outside runs, as when weights are packed
        failed = copy_context().run(inside, (running,), _parallel_for, task, job, out, a, b, c, threads, d)
    if failed:
        raise MemoryError(NO_SCRATCH)


def _parallel_for(
    task: int, job: Array, out: Array, a: Array, b: Array, c: Array, threads: int, d: Array
) -> int:  # fmt: skip
    address = pool_address()  # 0 if only one thread is allowed
    return dispatcher()(address, task, job, out, a, b, c, d, threads if address else 1, mode_bits())


def pool_address() -> int:
    """Return the address of the thread pool of the current run, or 0 outside runs."""
    return _pool(run).address if (run := _RUN.get()).thread == get_ident() else 0
