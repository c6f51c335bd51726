"""Work that threads share: functions of an address, compiled once, that take units until none is left.

A kernel that several drivers use would be compiled into each of them, and into the parallel loop of
each. So the work is a `Worker`, which has an address of its own, and there is one driver, `share`. It
hands each thread the address of a call: eight words that say where things lie, and counters, all 0::

    CALL_JOB     the numbers that stay the same from call to call, an i64 array
    CALL_OUT     the result; CALL_A, CALL_B, CALL_C: what is read
    COUNTER      where `take` counts the units; the words after it count what else there is

Threads that take units as they go need no equal shares: one that comes late, or is interrupted, takes
fewer. Several phases in one call each count their own units; before the next one, `join` waits for those
that others have begun, and for nothing else, so that no thread waits for one that has not come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types

from ...ir.tensor import Array
from . import _compile
from ._routines import prepare
from ._vectors import F32, I64, Emit

__all__ = [
    "CALL_A", "CALL_B", "CALL_C", "CALL_JOB", "CALL_OUT", "COUNTER", "NOTHING", "Worker", "hold", "join", "line", "number",
    "put", "put_number", "share", "take", "word",
]  # fmt: skip

CALL_JOB, CALL_OUT, CALL_A, CALL_B, CALL_C = range(5)
COUNTER = 8
_WORDS = 32

# What numba makes of them is called with an argument less.
_instruction: Callable[[Callable[..., Any]], Any] = numba.extending.intrinsic

NOTHING = np.empty(0, np.float32)
"""In place of an array that a worker does not read."""


def line(x: Array) -> Array:
    """All numbers, 1-D and one after the other; no copy if they lie so."""
    return np.ascontiguousarray(x.reshape(-1))  # the numbers of every other column are 1-D, too


class Worker:
    """A function of the address of a call, compiled on its own when it is first needed."""

    def __init__(self, function: Callable[[int], None]) -> None:
        self._function = function
        self._compiled: Any = None
        self._address = 0

    def prepare(self) -> None:
        """Compile it, if nobody did: rather when a model is compiled than in its first run."""
        if not self._address:
            prepare(self._function)
            self._compiled = _compile.called_back(self._function, [types.int64])
            self._address = int(self._compiled.address)

    @property
    def address(self) -> int:
        """Where the machine code lies."""
        self.prepare()
        return self._address


def _reading(kind: Any, numba_kind: Any, size: int) -> Any:
    def typing(context: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            emit = Emit(builder)
            return emit.load(emit.at(values[0], builder.mul(values[1], emit.number(size))), kind)

        return numba_kind(types.int64, types.int64), generate

    return _instruction(typing)


word = _reading(I64, types.int64, 8)
"""The i64 at an index from an address."""

number = _reading(F32, types.float32, 4)
"""The f32 at an index from an address."""


def _writing(numba_kind: Any, size: int) -> Any:
    def typing(context: Any, address: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            emit = Emit(builder)
            emit.store(values[2], emit.at(values[0], builder.mul(values[1], emit.number(size))))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, numba_kind), generate

    return _instruction(typing)


put = _writing(types.int64, 8)
"""Put an i64 at an index from an address."""

put_number = _writing(types.float32, 4)
"""Put an f32 at an index from an address."""


@_instruction
def take(context: Any, address: Any) -> Any:
    """Count one more at an address; gives the number from before, to one thread only."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = builder.inttoptr(values[0], ir.PointerType(I64))
        return builder.atomic_rmw("add", pointer, ir.Constant(I64, 1), "seq_cst")

    return types.int64(types.int64), generate


@_instruction
def _look(context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = builder.inttoptr(values[0], ir.PointerType(I64))
        return builder.atomic_rmw("add", pointer, ir.Constant(I64, 0), "seq_cst")

    return types.int64(types.int64), generate


@_instruction
def _call(context: Any, worker: Any, call: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [I64])
        builder.call(builder.inttoptr(values[0], ir.PointerType(kind)), [values[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@_instruction
def hold(context: Any, array: Any) -> Any:
    """Nothing; but an array lives until here. Of one that is used by address only, numba cannot tell."""
    return types.void(array), lambda context, builder, signature, values: context.get_dummy_value()


@_compile.device
def join(counter: int, units: int) -> None:
    """Wait until so many units are counted as done."""
    while _look(counter) < units:
        pass


_READ = types.Array(types.float32, 1, "C", readonly=True)
_SIGNATURE = types.void(
    types.int64,
    types.Array(types.int64, 1, "C", readonly=True),
    types.Array(types.float32, 1, "C"),
    _READ, _READ, _READ,
    types.int64,
)  # fmt: skip


@_compile.parallel_as(_SIGNATURE)
def share(worker: int, job: Any, out: Any, a: Any, b: Any, c: Any, threads: int) -> None:
    """Let so many threads do a worker's units; ``NOTHING`` stands for what it does not read."""
    call = np.zeros(_WORDS, np.int64)
    call[CALL_JOB] = job.ctypes.data
    call[CALL_OUT] = out.ctypes.data
    call[CALL_A], call[CALL_B], call[CALL_C] = a.ctypes.data, b.ctypes.data, c.ctypes.data
    address = call.ctypes.data
    if threads <= 1:
        _call(worker, address)
    else:
        for _ in numba.prange(threads):
            _call(worker, address)
    hold(call)
