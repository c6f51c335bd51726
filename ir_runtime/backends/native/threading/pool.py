"""The thread pool: workers that share the layers of a run, synchronised by machine code.

Between layers, workers wait in machine code, without the GIL, and yield to other threads that want the core,
so a task reaches them within a microsecond. After a run they spin briefly, since another run often follows,
and then sleep until the next. The shared words of a pool are on separate cache lines.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from _thread import LockType, allocate_lock
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from ...._util.forks import in_child, register
from ....ir.tensor import Array
from ..codegen.host import host_word
from ..codegen.language import device, instruction, routine, types
from ..codegen.memory import (
    SPIN_LIMIT,
    fetch_add,
    fetch_sub,
    load_atomic,
    load_i64,
    spin,
    store_atomic,
    store_i64,
)
from ..codegen.vectors import I64, Emit, Value
from ..machine_code.library import library
from .denormals import float_mode, set_float_mode
from .task import CALL_WORDS, WORKER_WORDS, failure_word, store_args, store_ranges, store_worker

__all__ = ["ThreadPool", "acquire", "array_data", "dispatcher", "new_call", "release", "run_call"]

# Words of a pool: the number of the current call, its address (0 for none), the task and the floating-point mode; how many
# workers may still join it, and how many are in it; whether a run is active; whether the pool is shut down. Then, on a cache line for each
# worker, whether it is awake.
_LINE = 8
_CALL_NUMBER, _CALL, _TASK, _MODE = 0, 8, 9, 10
_SLOTS, _JOINED, _RUN_ACTIVE, _SHUT_DOWN, _AWAKE = 16, 24, 32, 33, 40

# How often a thread polls, and then yields, before it goes to sleep if no run is active.
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
    """Return the address of a zeroed call on the stack."""
    return emit.stack_words(CALL_WORDS)


@instruction(returns=types.int64)
def _worker_words(emit: Emit) -> Value:
    """Return the address of a worker's own words of a call, on the stack."""
    return emit.stack_words(WORKER_WORDS)


@device
def _join_call(pool: int, worker: int) -> bool:
    """Work on the current call, if any."""
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
    """Work on every call until no run has been active for a while."""
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
    """Run a task on ``threads`` threads and wait for them; return 0 on success."""
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

    Arrays are addresses of NumPy objects.

    During the call, ``bits`` are added to the floating-point mode.
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
    """Return `dispatch` for Python: it takes arrays and releases the GIL."""
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
    """A number of workers for one run at a time; they end when the pool is garbage-collected."""

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
        """Return the number of workers."""
        return 0 if self._forked else len(self._sleep_locks)

    def begin_run(self) -> None:
        """Wake sleeping workers."""
        words = self._words
        words[_RUN_ACTIVE] = 1
        for worker, lock in enumerate(self._sleep_locks):
            if not words[_AWAKE + _LINE * worker] and lock.locked():
                lock.release()

    def end_run(self) -> None:
        """Let the workers go to sleep."""
        self._words[_RUN_ACTIVE] = 0

    def after_fork(self) -> None:
        """Forget the workers, which do not exist in a child process; an active run continues with one thread."""
        self._words[:] = 0
        self._forked = True


def _work(words: Array, worker: int, lock: LockType) -> None:
    """Run a worker thread; it holds no reference to its pool."""
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
    """Return a pool of at least ``workers`` workers that is not in use."""
    try:
        pool = _IDLE.pop()
    except IndexError:
        return ThreadPool(workers)
    return pool if len(pool) >= workers else ThreadPool(workers)


def release(pool: ThreadPool) -> None:
    """Return a pool for use by other runs."""
    _IDLE.append(pool)


in_child(_IDLE.clear)
