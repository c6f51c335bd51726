"""Work that threads share: functions of an address that take units until none is left.

A kernel is a `Worker`: a routine that is given the address of a call, words that say where things lie, and
counters, all 0. It asks `given` for

    job            the numbers that stay the same from call to call, an i64 array
    out, a, b, c   the result, and what is read
    counter        where `take` counts the units; the words after it count what else there is

Threads that take units as they go need no equal shares: one that comes late, or is interrupted, takes
fewer. Several phases in one call each count their own units; before the next one, `join` waits for those
that others have begun, and for nothing else, so that no thread waits for one that has not come.

Kernels know addresses only; `room` is memory of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.tensor import Array
from ..jit.loader import machine
from .language import Routine, device, instruction, types
from .vectors import F32, I64, Emit

__all__ = [
    "CALL_WORDS", "NOTHING", "Worker", "done_with", "give", "given", "join", "leave", "line", "look", "number", "put",
    "put_number", "room", "take", "word",
]  # fmt: skip

Value = Any

# Where the counters begin, and how many words there are: each part is some lines of the cache.
_COUNTER, CALL_WORDS = 8, 32

NOTHING = np.empty(0, np.float32)
"""In place of an array that a worker does not read."""


def line(x: Array) -> Array:
    """The numbers one after the other; no copy if they lie so."""
    return x if x.flags.c_contiguous else np.ascontiguousarray(x)


class Worker(Routine):
    """A routine of the address of a call."""

    def __init__(self, function: Callable[[int], None]) -> None:
        super().__init__(function, (types.int64,))
        self._address = 0

    def prepare(self) -> None:
        """Load its machine code, or make it: rather when a model is compiled than in its first run."""
        self._address = self._address or machine().address(self)

    @property
    def address(self) -> int:
        """Where the machine code lies."""
        self.prepare()
        return self._address


@instruction(types.int64, types.int64, gives=types.int64)
def word(emit: Emit, address: Value, index: Value) -> Value:
    """The i64 at an index from an address."""
    return emit.load(emit.at(address, emit.builder.mul(index, emit.number(8))), I64)


@instruction(types.int64, types.int64, gives=types.float32)
def number(emit: Emit, address: Value, index: Value) -> Value:
    """The f32 at an index from an address."""
    return emit.load(emit.at(address, emit.builder.mul(index, emit.number(4))), F32)


@instruction(types.int64, types.int64, types.int64)
def put(emit: Emit, address: Value, index: Value, value: Value) -> None:
    """Put an i64 at an index from an address."""
    emit.store(value, emit.at(address, emit.builder.mul(index, emit.number(8))))


@device
def give(call: int, job: int, out: int, a: int, b: int, c: int) -> None:
    """Say in a call where things lie."""
    put(call, 0, job)
    put(call, 1, out)
    put(call, 2, a)
    put(call, 3, b)
    put(call, 4, c)


@device
def given(call: int) -> Any:
    """What a worker is given: addresses of the job, the result, what is read, and the counters."""
    return word(call, 0), word(call, 1), word(call, 2), word(call, 3), word(call, 4), call + 8 * _COUNTER


@instruction(types.int64, types.int64, types.float32)
def put_number(emit: Emit, address: Value, index: Value, value: Value) -> None:
    """Put an f32 at an index from an address."""
    emit.store(value, emit.at(address, emit.builder.mul(index, emit.number(4))))


@instruction(types.int64, gives=types.int64)
def take(emit: Emit, address: Value) -> Value:
    """Count one more at an address; gives the number from before, to one thread only."""
    return emit.add_atomically(address, 1)


@instruction(types.int64, gives=types.int64)
def leave(emit: Emit, address: Value) -> Value:
    """Count one less at an address; gives the number from before."""
    return emit.add_atomically(address, -1)


@instruction(types.int64, gives=types.int64)
def look(emit: Emit, address: Value) -> Value:
    """The i64 at an address that other threads may change."""
    return emit.load_atomically(address)


@instruction(types.int64, gives=types.int64)
def room(emit: Emit, size: Value) -> Value:
    """The address of so many new bytes, whose first one begins a line of the cache; `done_with` gives them back."""
    allocate = emit.function("ir_runtime_allocate", I64, I64)
    raw = emit.builder.call(allocate, [emit.builder.add(size, emit.number(128))])
    start = emit.builder.and_(emit.at(raw, 127), emit.number(-64))
    emit.store(raw, emit.at(start, -8))
    return start


@instruction(types.int64)
def done_with(emit: Emit, address: Value) -> None:
    """Give back what `room` gave."""
    free = emit.function("ir_runtime_free", None, I64)
    emit.builder.call(free, [emit.load(emit.at(address, -8), I64)])


@device
def join(counter: int, units: int) -> None:
    """Wait until so many units are counted as done."""
    while look(counter) < units:
        pass
