"""RNN, GRU and LSTM sequences: one GEMM for all inputs of a direction, then its steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.sequence.recurrent import GRUSequence, LSTMSequence, RNNSequence
from ... import Kernel
from ...common.layout import is_f32
from .._backend import backend
from ..parallel import multithreaded_blas
from ._recurrent_cells import (
    Direction,
    GRUDirection,
    GRULinearBeforeResetDirection,
    LSTMDirection,
    RNNDirection,
)

__all__: list[str] = []

# The size of recurrent weights from which the threads of BLAS itself share the product of each step: they synchronize
# faster than the thread pool.
MIN_MULTITHREADED_SIZE = 1 << 19


@backend.accelerates(RNNSequence, GRUSequence, LSTMSequence)
def sequence(
    op: RNNSequence | GRUSequence | LSTMSequence, *inputs: Value, unread: Collection[int] = ()
) -> Kernel | None:
    """Return a kernel for f32, constant weights and the default activations; padded sequences run the reference."""
    *data, _, w, r, b = inputs
    directions = _directions(op, data, (w, r, b))
    if directions is None:
        return None

    first, *others = directions
    size = first.recurrent_size
    both = (
        first.together(others[0]) if others and first.single_row and size < MIN_MULTITHREADED_SIZE else None
    )

    def kernel(*arrays: Array) -> tuple[Array, ...]:
        x, *states, lengths, _, _, _ = arrays
        if not _full_length(x, lengths):
            return op.evaluate(*arrays)
        return _run(directions, x, *states) if both is None else _run_together(directions, both, x, *states)

    return Kernel(kernel)


def _directions(
    op: RNNSequence | GRUSequence | LSTMSequence, data: Sequence[Value], constant: Sequence[Value]
) -> list[Direction] | None:
    """Return a kernel of each direction, if the cell has the default activations."""
    standard = {
        RNNSequence: ("tanh",),
        GRUSequence: ("sigmoid", "tanh"),
        LSTMSequence: ("sigmoid", "tanh", "tanh"),
    }
    w, r, b = (value.known() for value in constant)
    functions = standard[type(op)]
    if not is_f32(*data, *constant) or op.clip or op.activations[: len(functions)] != functions:
        return None
    if w is None or r is None or b is None or not (w.size and r.size):
        return None
    single_row = data[0].shape.rank == 3 and data[0].shape[0] == 1
    direction_class: type[Direction] = {
        RNNSequence: RNNDirection,
        GRUSequence: GRUDirection,
        LSTMSequence: LSTMDirection,
    }[type(op)]
    if isinstance(op, GRUSequence) and op.linear_before_reset:
        direction_class = GRULinearBeforeResetDirection
    return [
        direction_class.of(*direction, single_row) for direction in zip(op.passes(), w, r, b, strict=True)
    ]


def _full_length(x: Array, lengths: Array) -> bool:
    """Return whether the data is not empty and all sequences are as long as the time axis."""
    return bool(x.size) and not (np.asarray(lengths) != x.shape[1]).any()


def _run(directions: Sequence[Direction], x: Array, *states: Array) -> tuple[Array, ...]:
    batch, time, _ = x.shape
    y = np.empty((batch, len(directions), time, states[0].shape[-1]), np.float32)
    states = tuple(np.array(state, order="C") for state in states)
    for index, direction in enumerate(directions):
        _run_direction(direction, x, y[:, index], *(state[:, index] for state in states))
    return y, *states


def _run_direction(direction: Direction, x: Array, y: Array, *states: Array) -> None:
    """Run over ``x[batch, time, input]``; the states ``[batch, hidden]`` are changed in place."""
    inputs, time = direction.gate_inputs(x), x.shape[1]
    order = range(time - 1, -1, -1) if direction.reverse else range(time)
    shared = direction.single_row and inputs[0].size * states[0].shape[1] >= MIN_MULTITHREADED_SIZE
    with multithreaded_blas() if shared else nullcontext():
        for step in direction.steps(inputs, order, *states):
            y[:, step] = states[0]


def _run_together(
    directions: Sequence[Direction], both: Direction, x: Array, *states: Array
) -> tuple[Array, ...]:
    """Run the steps of two directions at once, over one row: the calls of a small step take longer than its products."""
    time = x.shape[1]
    reversed_first = [slice(None, None, -1 if direction.reverse else 1) for direction in directions]
    size = states[0].shape[-1]
    inputs = np.stack(
        [
            d.gate_inputs(x)[order].reshape(time, -1, 1, size)
            for d, order in zip(directions, reversed_first, strict=True)
        ],
        axis=2,
    )
    stacked = [np.array(state.swapaxes(0, 1), order="C") for state in states]
    made = np.empty((time, *stacked[0].shape), np.float32)
    for step in both.steps(inputs, range(time), *stacked):
        made[step] = stacked[0]
    y = np.stack([made[order, i] for i, order in enumerate(reversed_first)]).transpose(2, 0, 1, 3)
    return y, *(state.swapaxes(0, 1) for state in stacked)
