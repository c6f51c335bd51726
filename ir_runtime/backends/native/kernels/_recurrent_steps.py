"""The steps of RNN, GRU and LSTM cells along sequences, in one call: threads share the columns of the hidden state.

A unit is some columns of the hidden state, with all their gates, for a chunk of the batch. In every step, each thread
begins with the same units, so that their weights stay in its cache, and then takes units that are left; a barrier ends
the step.

The hidden states that a step reads are rows of the result. The product with the inputs is computed before; the gates of
an LSTM are in the order f, i, o, c.
"""

from __future__ import annotations

import numpy as np

from ..codegen.language import device
from ..codegen.memory import barrier, fetch_add, load_atomic, load_i64, scratch_memory, store_i64
from ..codegen.vectors import LANES
from ..threading.task import Task, each_counted, each_unit, failure_word, load_args, load_fourth
from ._bf16_tile import bf16_panel, round_row
from ._gemm_tile import WIDE, gemm_panel
from ._panels import Panel
from ._recurrent_cells import StepsJob, gru_gates_row, gru_state_row, lstm_row, rnn_row
from ._recurrent_rows import add_rows, add_scaled_rows, multiply_rows
from ._widened_tile import widened_panel

__all__ = ["RUN_CELL", "RUN_STEPS"]

_INFINITY = np.float32(np.inf)


@device
def _state_addresses(
    job: StepsJob, y: int, step: int, phase: int, direction: int, first: int, rows: int, table: int
) -> None:
    """Write the addresses of the states to multiply: of the step before, initial, or reset."""
    directions, hidden, time = (
        job.directions,
        job.hidden,
        job.time,
    )
    size, backwards = 4 * hidden, load_i64(job.backwards, direction)
    for r in range(rows):
        entry = first + r
        length = load_i64(job.lengths, entry)
        before = length - step if backwards != 0 else step - 1
        at = y + ((entry * directions + direction) * time + before) * size
        if phase == 1:
            at = job.reset_states + (entry * directions + direction) * size
        elif step == 0 or step >= length:
            at = job.hidden_states + (entry * directions + direction) * size
        store_i64(table, r, at)


@device
def _round_states(job: StepsJob, rows: int, table: int, rounded: int) -> int:
    """Round states to bf16, behind a table of the addresses that they get; return that table."""
    depth, hidden = job.depth, job.hidden
    for r in range(rows):
        at = rounded + 8 * job.chunk + 4 * depth * r
        round_row(load_i64(table, r), hidden, at, 2 * depth)
        store_i64(rounded, r, at)
    return rounded


@device
def _multiply_states(job: StepsJob, phase: int, known: Panel, rows: int, table: int, gates: int) -> None:
    """Multiply states with the weights of the gates of a phase; ``known`` is the `Panel` of the first gate."""
    total, parts, vectors, last = (
        job.gates,
        job.panels,
        known.vectors,
        known.last_columns,
    )
    span = 4 * LANES * vectors
    stride = total * span
    at_once = 4 if rows == 8 else rows  # two tiles of 4 rows instead of 6 and 2
    lowest = 2 * phase
    highest = 2 if job.kind == 1 and phase == 0 else total
    for gate in range(lowest, highest):
        entry = Panel.at(known + 8 * Panel.words * gate * parts)
        panel, bias, out = (
            job.weights + entry.start,
            job.bias + entry.bias,
            gates + gate * span,
        )
        for begin in range(0, rows, at_once):
            some, places, target = min(at_once, rows - begin), table + 8 * begin, out + begin * stride
            if job.widened != 0:
                widened_panel(
                    vectors, some, places, 0, 0, job.tap_offset, 1, job.depth,
                    panel, target, stride, bias, 0, 0, last, -_INFINITY, _INFINITY,
                )  # fmt: skip
            elif job.in_bf16 != 0:
                bf16_panel(
                    vectors, some, places, 0, 0, job.tap_offset, 1, job.depth,
                    panel, target, stride, bias, 0, 0, last, -_INFINITY, _INFINITY, 0, 0,
                )  # fmt: skip
            else:
                gemm_panel(
                    vectors, some, places, 0, 0, job.tap_offset, 1, job.depth,
                    panel, target, stride, bias, 0, 0, last, -_INFINITY, _INFINITY,
                )  # fmt: skip


@device
def _finish_row(  # noqa: PLR0913 (values in registers)
    job: StepsJob, y: int, x: int, step: int, phase: int, direction: int, entry: int, gates: int, span: int, count: int,
    column: int, old: int,
) -> None:  # fmt: skip
    """Compute the state of one entry after a step from the products for its gates and the state ``old``."""
    kind, directions, hidden = (
        job.kind,
        job.directions,
        job.hidden,
    )
    time, total, length = (
        job.time,
        job.gates,
        load_i64(job.lengths, entry),
    )
    backwards, size = load_i64(job.backwards, direction), 4 * hidden
    low, high = job.low, job.high
    now = length - 1 - step if backwards != 0 else step
    inputs = x + ((entry * time + now) * directions + direction) * total * size + column
    place = entry * directions + direction
    out, state, inner = y + (place * time + now) * size + column, place * size + column, gates + 2 * span
    if kind == 3:
        before = job.cell_states_before + state
        cell = job.cell_states + state
        lstm_row(job, gates, span, inputs, size, count, out, cell, before)
    elif kind == 0:
        rnn_row(job, gates, span, inputs, size, count, out)
    elif kind == 2:
        gru_gates_row(job, gates, span, inputs, size, count)
        add_scaled_rows(inner, inputs + 2 * size, inputs + size, inner, count, low, high)
        gru_state_row(job, inner, inputs, size, count, out, old)
    elif phase == 0:
        gru_gates_row(job, gates, span, inputs, size, count)
        multiply_rows(job.reset_states + state, inputs + size, old, count, _INFINITY, _INFINITY)
    else:
        add_rows(inner, inner, inputs + 2 * size, count, low, high)
        previous = now + 1 if backwards != 0 else now - 1
        old = job.hidden_states + state if step == 0 else y + (place * time + previous) * size + column
        gru_state_row(job, inner, inputs, size, count, out, old)


@device
def _compute_unit(job: StepsJob, y: int, x: int, step: int, phase: int, unit: int, table: int) -> None:
    """Compute some columns of the state after a step; in the first phase of a GRU that resets before, the reset state."""
    parts, total, chunk, chunks = (
        job.panels,
        job.gates,
        job.chunk,
        job.chunks,
    )
    place, some = unit // chunks, unit % chunks
    direction, part = place // parts, place % parts
    first = some * chunk
    rows = min(chunk, job.batch - first)
    known = Panel.at(job.table + 8 * Panel.words * (direction * total * parts + part))
    span, count = (
        4 * LANES * known.vectors,
        (known.vectors - 1) * LANES + known.last_columns,
    )
    column = 4 * (known.column - direction * total * job.hidden)
    gates = table + 8 * chunk
    _state_addresses(job, y, step, phase, direction, first, rows, table)
    places = table
    if job.in_bf16 != 0:
        places = _round_states(job, rows, table, gates + chunk * total * 4 * LANES * WIDE)
    _multiply_states(job, phase, known, rows, places, gates)
    for r in range(rows):
        if step < load_i64(job.lengths, first + r):
            _finish_row(
                job, y, x, step, phase, direction, first + r, gates + r * total * span, span, count, column,
                load_i64(table, r) + column,
            )  # fmt: skip


def _run_steps(call: int) -> None:
    address, y, x, _, _, counter = load_args(call)
    job = StepsJob.at(address)
    phases, units, threads, done = (
        job.phases,
        job.units,
        job.threads,
        job.counters,
    )
    table = scratch_memory(job.scratch_bytes)
    home = fetch_add(counter) * units // threads
    for turn in range(job.steps * phases):
        step, phase = turn // phases, turn % phases
        counted = done + 8 * turn * (units + 1)
        if threads > 1 and load_atomic(counted) == units:
            continue
        for index in range(units):
            unit = (home + index) % units
            taken = counted + 8 * (unit + 1)
            if threads == 1:
                _compute_unit(job, y, x, step, phase, unit, table)
            elif load_atomic(taken) == 0 and fetch_add(taken) == 0:
                _compute_unit(job, y, x, step, phase, unit, table)
                fetch_add(counted)
        if threads > 1:
            barrier(counted, units, failure_word(call))


RUN_STEPS = Task(_run_steps)
"""Run all steps.

A is the product of the inputs and the weights of the gates, ``[batch, time, directions, gate, hidden]``, which may be
overwritten; the result is ``[batch, directions, time, hidden]``.
"""


def _run_cell(call: int) -> None:
    """Run one step with states that are inputs of the call, whose threads share units by its own counters."""
    address, y, x, hidden, cells, counter = load_args(call)
    job = StepsJob.at(address)
    own = StepsJob.at(scratch_memory(8 * StepsJob.words + job.scratch_bytes))
    for index in range(StepsJob.words):
        store_i64(own, index, load_i64(job, index))
    store_i64(own, StepsJob.hidden_states, hidden)
    store_i64(own, StepsJob.cell_states_before, cells)
    states = job.batch * job.hidden
    store_i64(own, StepsJob.cell_states, y + 4 * states)
    store_i64(own, StepsJob.reset_states, load_fourth(call))
    table, units = own + 8 * StepsJob.words, job.units
    phases = job.phases
    for unit in each_unit(call, units):
        _compute_unit(own, y, x, 0, 0, unit, table)
        if phases > 1:
            fetch_add(counter + 8)
    if phases > 1:
        barrier(counter + 8, units, failure_word(call))
        for unit in each_counted(counter + 16, units):
            _compute_unit(own, y, x, 0, 1, unit, table)


RUN_CELL = Task(_run_cell)
"""Run one step: A as of `RUN_STEPS`, B the hidden states, C the cell states, D memory for states that are reset.

The result is the new hidden states, then the cell states of an LSTM."""
