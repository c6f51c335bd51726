"""Replay in machine code: one call from Python makes all task calls of several steps."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np

from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, routine, types
from ..codegen.memory import load_i64, store_i64
from ..machine_code.library import library
from .denormals import float_mode, set_float_mode
from .pool import array_data, new_call, run_call
from .task import store_args

__all__ = ["FIXED", "SCRATCH", "SCRATCH_MARGIN", "TapeCall", "TapeHeader", "replay", "tuple_word"]

FIXED, SCRATCH = 0, 1
"""The base of an address: 0, the first array, or, otherwise, the array at a word of the tuple."""


class TapeHeader(Descriptor):
    """The header of a tape: the numbers of calls and refusal counters, the address of the counters' addresses, and mode bits.

    ``mode`` are the bits of the floating-point mode that are set during its calls.
    """

    calls: i64
    refusals: i64
    counters: i64
    mode: i64


class TapeCall(Descriptor):
    """A task call; each array is an index of an array and an offset in it."""

    task: i64
    threads: i64
    job: i64
    out: i64
    out_offset: i64
    a: i64
    a_offset: i64
    b: i64
    b_offset: i64
    c: i64
    c_offset: i64
    d: i64
    d_offset: i64


@device
def _located(arrays: int, scratch: int, record: int, index: int) -> int:
    place, offset = load_i64(record, index), load_i64(record, index + 1)
    found: int = offset
    if place == 1:
        found = offset + scratch
    elif place != 0:
        found = offset + array_data(load_i64(arrays, place))
    return found


@device
def _refusals(tape: TapeHeader) -> int:
    """Return the sum of all refusal counters."""
    counters, sum = tape.counters, 0
    for index in range(tape.refusals):
        sum += load_i64(load_i64(counters, index), 0)
    return sum


@routine(*[types.int64] * 4, returns=types.int64)
def replay_tape(tape: TapeHeader, pool: int, arrays: int, first: int) -> int:
    """Make the calls of a tape until one fails; return 0 if none does.

    Args:
        tape: a `TapeHeader` followed by each `TapeCall`.
        pool: the pool whose threads share calls; not read if no call is shared.
        arrays: the tuple of arrays. The first is scratch memory, which begins with this replay's number of
            refusals, if counted.
        first: the index of the tuple's word with the first array.
    """
    begin = array_data(load_i64(arrays, first))
    scratch, before = (begin + 127) // 64 * 64, _refusals(tape)
    mode = float_mode()
    set_float_mode(mode | tape.mode)
    failed = 0
    for index in range(tape.calls):
        record = TapeCall.at(tape + 8 * (TapeHeader.words + TapeCall.words * index))
        call = new_call()
        store_args(
            call, record.job, _located(arrays, scratch, record, TapeCall.out),
            _located(arrays, scratch, record, TapeCall.a), _located(arrays, scratch, record, TapeCall.b),
            _located(arrays, scratch, record, TapeCall.c), _located(arrays, scratch, record, TapeCall.d),
        )  # fmt: skip
        failed = run_call(pool, record.task, call, record.threads)
        if failed != 0:
            break
    set_float_mode(mode)
    store_i64(begin, 0, _refusals(tape) - before)
    return failed


SCRATCH_MARGIN = 128
"""The bytes of scratch memory before those that tasks use."""


@cache
def tuple_word() -> int:
    """Return the index of the word of a tuple object that holds its first item."""
    probe = (object(),)
    words = np.frombuffer(ctypes.string_at(id(probe), 64), np.int64).tolist()
    return int(words.index(id(probe[0])))


@cache
def replay() -> Callable[..., int]:
    """Return `replay_tape` for Python: it takes the tuple itself and releases the GIL."""
    kinds: list[type] = [ctypes.c_int64, ctypes.c_int64, ctypes.py_object, ctypes.c_int64]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(library().address(replay_tape.name))
