"""The steps of recurrent cells along sequences, in one call: threads share the columns of the hidden state.

A unit is some columns of the hidden state, with all their gates, for some entries of the batch. Each thread
begins with units of its own, the same in every step, whose weights so stay in its cache, and then takes
what is left of the others; a step begins when all units of the one before are done.

What a step reads of the hidden state are rows of the result. What the inputs give to the gates is there
before; the gates of a cell with a state of its own come in the order f, i, o, c.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np

from ..codegen.language import device, instruction, types
from ..codegen.memory import alloc, barrier, fetch_add, free, load_atomic, load_f32, load_i64, store_i64
from ..codegen.vectors import LANES, Emit, Load, Store
from ..threading.task import Task, load_args
from ._activation_code import apply
from ._gemm_tile import multiply
from ._panels import WORDS

__all__ = ["STEPS", "Kind"]

Value = Any
_INFINITY = np.float32(np.inf)


class Kind(IntEnum):
    """What cell it is: a GRU may reset its state before or after the product with its weights."""

    RNN = 0
    GRU = 1
    GRU_AFTER = 2
    LSTM = 3


def _of_rows(count: int, how: Callable[..., Value]) -> Any:
    """An instruction that makes numbers of ``count`` rows: the result, the rows, how many numbers, two more."""

    def write(emit: Emit, out: Value, *given: Value) -> None:
        rows, (length, low, high) = given[:count], given[count:]
        bounds = emit.splat(low), emit.splat(high)

        def body(offset: Value, load: Load, store: Store) -> None:
            found = how(emit, *(load(emit.at(row, offset)) for row in rows), *bounds)
            store(found, emit.at(out, offset))

        emit.vector_loop(length, body)

    write.__name__ = how.__name__
    return instruction(*[types.int64] * (count + 2), types.float32, types.float32)(write)


def _kept(emit: Emit, x: Value, low: Value, high: Value) -> Value:
    return emit.minimum(emit.maximum(x, low), high)


def _sum(emit: Emit, a: Value, b: Value, low: Value, high: Value) -> Value:
    """``a + b``, kept within bounds."""
    return _kept(emit, emit.add(a, b), low, high)


def _sum_of_part(emit: Emit, a: Value, b: Value, c: Value, low: Value, high: Value) -> Value:
    """``a + b * c``, kept within bounds."""
    return _kept(emit, emit.add(a, emit.multiply(b, c)), low, high)


def _product(emit: Emit, a: Value, b: Value, low: Value, high: Value) -> Value:
    return emit.multiply(a, b)


def _mixture(emit: Emit, part: Value, new: Value, old: Value, low: Value, high: Value) -> Value:
    """As much of the old one as ``part`` says."""
    one = emit.constant(1)
    return emit.add(emit.multiply(emit.subtract(one, part), new), emit.multiply(part, old))


def _remembered(
    emit: Emit, forget: Value, old: Value, take: Value, new: Value, low: Value, high: Value
) -> Value:
    return emit.add(emit.multiply(forget, old), emit.multiply(take, new))


def _same(emit: Emit, x: Value, low: Value, high: Value) -> Value:
    return x


_sums, _sums_of_parts, _products = _of_rows(2, _sum), _of_rows(3, _sum_of_part), _of_rows(2, _product)
_mixtures, _memories, _copies = _of_rows(3, _mixture), _of_rows(4, _remembered), _of_rows(1, _same)


@device
def _bent(address: int, count: int, curve: int) -> None:
    """The curves that take bounds are those of a cell that knows no negative numbers."""
    apply(address, count, curve, np.float32(0), _INFINITY)


@device
def _rnn(job: int, gates: int, span: int, given: int, size: int, count: int, y: int) -> None:
    _sums(y, gates, given, count, load_f32(job, 46), load_f32(job, 47))
    _bent(y, count, load_i64(job, 20))


@device
def _lstm(job: int, gates: int, span: int, given: int, size: int, count: int, y: int, cell: int) -> None:
    low, high = load_f32(job, 46), load_f32(job, 47)
    for gate in range(4):
        _sums(gates + gate * span, gates + gate * span, given + gate * size, count, low, high)
    for gate in range(3):
        _bent(gates + gate * span, count, load_i64(job, 20))
    forget, take_in, show, new = gates, gates + span, gates + 2 * span, gates + 3 * span
    _bent(new, count, load_i64(job, 21))
    _memories(cell, forget, cell, take_in, new, count, low, high)
    _copies(new, cell, count, low, high)
    _bent(new, count, load_i64(job, 22))
    _products(y, show, new, count, low, high)


@device
def _gru_gates(job: int, gates: int, span: int, given: int, size: int, count: int) -> None:
    """What is to stay, and what is reset; they take the place of what the inputs gave."""
    for gate in range(2):
        target = given + gate * size
        _sums(target, gates + gate * span, target, count, load_f32(job, 46), load_f32(job, 47))
        _bent(target, count, load_i64(job, 20))


@device
def _gru_state(job: int, new: int, given: int, size: int, count: int, y: int, old: int) -> None:
    _bent(new, count, load_i64(job, 21))
    _mixtures(y, given, new, old, count, _INFINITY, _INFINITY)


@device
def _place_states(
    job: int, y: int, step: int, phase: int, direction: int, first: int, rows: int, table: int
) -> None:
    """Where the states lie that are multiplied: of the step before, at the beginning given, or reset."""
    directions, hidden, time = load_i64(job, 3), load_i64(job, 4), load_i64(job, 5)
    size, backwards = 4 * hidden, load_i64(load_i64(job, 14), direction)
    for r in range(rows):
        entry = first + r
        length = load_i64(load_i64(job, 13), entry)
        before = length - step if backwards != 0 else step - 1
        at = y + ((entry * directions + direction) * time + before) * size
        if phase == 1:
            at = load_i64(job, 17) + (entry * directions + direction) * size
        elif step == 0 or step >= length:
            at = load_i64(job, 15) + (entry * directions + direction) * size
        store_i64(table, r, at)


@device
def _multiply_states(job: int, phase: int, known: int, rows: int, table: int, gates: int) -> None:
    """Some columns of the gates that a phase needs; ``known`` says of the first gate where its panel lies."""
    total, parts, vectors, last = load_i64(job, 7), load_i64(job, 6), load_i64(known, 1), load_i64(known, 2)
    span = 4 * LANES * vectors
    stride = total * span
    at_once = 4 if rows == 8 else rows  # rather than 6 and 2
    lowest = 2 * phase
    highest = 2 if load_i64(job, 0) == 1 and phase == 0 else total
    for gate in range(lowest, highest):
        entry = known + 8 * WORDS * gate * parts
        panel, bias, out = (
            load_i64(job, 11) + load_i64(entry, 0),
            load_i64(job, 12) + load_i64(entry, 4),
            gates + gate * span,
        )
        for begin in range(0, rows, at_once):
            multiply(
                vectors, min(at_once, rows - begin), table + 8 * begin, 0, load_i64(job, 18), 1, load_i64(job, 4), panel,
                out + begin * stride, stride, bias, 0, last, -_INFINITY, _INFINITY,
            )  # fmt: skip


@device
def _finish_row(
    job: int, y: int, x: int, step: int, phase: int, direction: int, entry: int, gates: int, span: int, count: int,
    column: int, old: int,
) -> None:  # fmt: skip
    """The state of one entry after a step, from the products for its gates and the state ``old``."""
    kind, directions, hidden = load_i64(job, 0), load_i64(job, 3), load_i64(job, 4)
    time, total, length = load_i64(job, 5), load_i64(job, 7), load_i64(load_i64(job, 13), entry)
    backwards, size = load_i64(load_i64(job, 14), direction), 4 * hidden
    low, high = load_f32(job, 46), load_f32(job, 47)
    now = length - 1 - step if backwards != 0 else step
    inputs = x + ((entry * time + now) * directions + direction) * total * size + column
    place = entry * directions + direction
    out, state, inner = y + (place * time + now) * size + column, place * size + column, gates + 2 * span
    if kind == 3:
        _lstm(job, gates, span, inputs, size, count, out, load_i64(job, 16) + state)
    elif kind == 0:
        _rnn(job, gates, span, inputs, size, count, out)
    elif kind == 2:
        _gru_gates(job, gates, span, inputs, size, count)
        _sums_of_parts(inner, inputs + 2 * size, inputs + size, inner, count, low, high)
        _gru_state(job, inner, inputs, size, count, out, old)
    elif phase == 0:
        _gru_gates(job, gates, span, inputs, size, count)
        _products(load_i64(job, 17) + state, inputs + size, old, count, _INFINITY, _INFINITY)
    else:
        _sums(inner, inner, inputs + 2 * size, count, low, high)
        before = now + 1 if backwards != 0 else now - 1
        old = load_i64(job, 15) + state if step == 0 else y + (place * time + before) * size + column
        _gru_state(job, inner, inputs, size, count, out, old)


@device
def _unit(job: int, y: int, x: int, step: int, phase: int, unit: int, table: int) -> None:
    """Some columns of the state after a step; or, of a GRU that resets it before, the state that is reset."""
    parts, total, chunk, chunks = load_i64(job, 6), load_i64(job, 7), load_i64(job, 8), load_i64(job, 9)
    place, some = unit // chunks, unit % chunks
    direction, part = place // parts, place % parts
    first = some * chunk
    rows = min(chunk, load_i64(job, 2) - first)
    known = load_i64(job, 10) + 8 * WORDS * (direction * total * parts + part)
    span, count = 4 * LANES * load_i64(known, 1), (load_i64(known, 1) - 1) * LANES + load_i64(known, 2)
    column = 4 * (load_i64(known, 3) - direction * total * load_i64(job, 4))
    gates = table + 8 * chunk
    _place_states(job, y, step, phase, direction, first, rows, table)
    _multiply_states(job, phase, known, rows, table, gates)
    for r in range(rows):
        if step < load_i64(load_i64(job, 13), first + r):
            _finish_row(
                job, y, x, step, phase, direction, first + r, gates + r * total * span, span, count, column,
                load_i64(table, r) + column,
            )  # fmt: skip


def _steps(call: int) -> None:
    job, y, x, _, _, counter = load_args(call)
    phases, units, threads, done = load_i64(job, 19), load_i64(job, 24), load_i64(job, 25), load_i64(job, 26)
    table = alloc(load_i64(job, 27))
    home = fetch_add(counter) * units // threads
    for turn in range(load_i64(job, 1) * phases):
        step, phase = turn // phases, turn % phases
        counted = done + 8 * turn * (units + 1)
        if threads > 1 and load_atomic(counted) == units:
            continue
        for index in range(units):
            unit = (home + index) % units
            taken = counted + 8 * (unit + 1)
            if threads == 1:
                _unit(job, y, x, step, phase, unit, table)
            elif load_atomic(taken) == 0 and fetch_add(taken) == 0:
                _unit(job, y, x, step, phase, unit, table)
                fetch_add(counted)
        if threads > 1:
            barrier(counted, units)
    free(table)


STEPS = Task(_steps)
"""Takes all steps.

It reads, as A, what the inputs give to the gates, ``[batch, time, directions, gate, hidden]``, which it may
change; the result is ``[batch, directions, time, hidden]``. Its job:

0   a `Kind`; steps, as many as the longest sequence has; batch; directions; hidden size; time
6   panels of a gate; gates; entries of the batch in a unit, and how many such units there are
10  addresses: of the table of panels, one group for each direction and gate, of their numbers, and of biases
13  addresses: of the lengths of sequences; of a number for each direction, 1 where it goes backwards; of the
    hidden states; of the cell states, which are changed; of room for another state; of the offset 0
19  phases of a step; the curves of the functions f, g and h
23  two f32 that gates are kept between; units; threads
26  address of a counter for each phase of each step, and one for each of its units, all 0; bytes of room for
    a table of rows and gates
"""
