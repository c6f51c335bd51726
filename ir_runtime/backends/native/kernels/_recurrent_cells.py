"""The cells of RNN, GRU and LSTM: a row of the state from the products of its gates, and the job of `RUN_STEPS`."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import device
from ._activation_code import apply_activation
from ._recurrent_rows import add_rows, copy_rows, interpolate_rows, multiply_rows, update_cell_state

__all__ = ["CellKind", "StepsJob", "gru_gates_row", "gru_state_row", "lstm_row", "rnn_row"]

_INFINITY = np.float32(np.inf)


class StepsJob(Descriptor):
    """The job of `RUN_STEPS`."""

    kind: i64
    steps: i64
    batch: i64
    directions: i64
    hidden: i64
    time: i64
    panels: i64
    gates: i64
    chunk: i64
    chunks: i64
    table: i64
    weights: i64
    bias: i64
    lengths: i64
    backwards: i64
    hidden_states: i64
    cell_states: i64
    cell_states_before: i64
    reset_states: i64
    tap_offset: i64
    phases: i64
    activation_f: i64
    activation_g: i64
    activation_h: i64
    low: f32
    high: f32
    units: i64
    threads: i64
    counters: i64
    depth: i64
    in_bf16: i64
    widened: i64
    scratch_bytes: i64


class CellKind(IntEnum):
    """The kind of cell; a GRU resets its state before or after the product with its weights."""

    RNN = 0
    GRU = 1
    GRU_AFTER = 2
    LSTM = 3


@device
def _activate(address: int, count: int, kind: int) -> None:
    """Apply an activation; a clamp is ReLU here."""
    apply_activation(address, 0, 1, count, kind, np.float32(0), _INFINITY)


@device
def rnn_row(job: StepsJob, gates: int, span: int, given: int, size: int, count: int, y: int) -> None:
    """Compute the state of an RNN."""
    add_rows(y, gates, given, count, job.low, job.high)
    _activate(y, count, job.activation_f)


@device
def lstm_row(  # noqa: PLR0913 (values in registers)
    job: StepsJob, gates: int, span: int, given: int, size: int, count: int, y: int, cell: int, before: int
) -> None:  # fmt: skip
    """Compute the state of an LSTM, and its cell state from the one before."""
    low, high = job.low, job.high
    for gate in range(4):
        add_rows(gates + gate * span, gates + gate * span, given + gate * size, count, low, high)
    for gate in range(3):
        _activate(gates + gate * span, count, job.activation_f)
    forget, input_gate, output_gate, candidate = gates, gates + span, gates + 2 * span, gates + 3 * span
    _activate(candidate, count, job.activation_g)
    update_cell_state(cell, forget, before, input_gate, candidate, count, low, high)
    copy_rows(candidate, cell, count, low, high)
    _activate(candidate, count, job.activation_h)
    multiply_rows(y, output_gate, candidate, count, low, high)


@device
def gru_gates_row(job: StepsJob, gates: int, span: int, given: int, size: int, count: int) -> None:
    """Compute the update and reset gates in place of the products with the inputs."""
    for gate in range(2):
        target = given + gate * size
        add_rows(
            target,
            gates + gate * span,
            target,
            count,
            job.low,
            job.high,
        )
        _activate(target, count, job.activation_f)


@device
def gru_state_row(job: StepsJob, new: int, given: int, size: int, count: int, y: int, old: int) -> None:
    """Compute the state of a GRU from its update gate and the sums of its new state."""
    _activate(new, count, job.activation_g)
    interpolate_rows(y, given, new, old, count, _INFINITY, _INFINITY)
