"""RNN, GRU and LSTM sequences: one GEMM for all inputs, and steps that allocate no arrays.

A sigmoid is ``tanh(x / 2) / 2 + 1 / 2``; the weights of gates that have one are halved beforehand, and such gates are
stored side by side, so a step has few calls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from .... import deadline
from ....ir.tensor import Array, Value
from ....ops.sequence.recurrent import GRUSequence, LSTMSequence, RNNSequence
from ... import Kernel
from ...common.layout import is_f32
from ...common.recurrence import sigmoid_gates_first
from .._backend import backend
from ..math.gemm import gemm
from ..math.panels import WIDTH, Panels
from ..threading.parallel import multithreaded_blas

__all__: list[str] = []

HALF = np.float32(0.5)
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

    def kernel(*arrays: Array) -> tuple[Array, ...]:
        x, *states, lengths, _, _, _ = arrays
        return _run(directions, x, *states) if _full_length(x, lengths) else op.evaluate(*arrays)

    return kernel


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
        direction.run(x, y[:, index], *(state[:, index] for state in states))
    return y, *states


class RecurrentWeights:
    """Recurrent weights ``[rows, hidden]`` in the layout that is multiplied fastest."""

    def __init__(self, matrix: Array, single_row: bool) -> None:
        """Copy the weights.

        Args:
            matrix: the weights of all gates, stacked.
            single_row: whether the batch size is 1; several rows are multiplied panel by panel.
        """
        rows, self.single_row = len(matrix), single_row
        if single_row:
            self._matrix = np.ascontiguousarray(matrix)
        else:
            width = WIDTH if rows % WIDTH == 0 else rows
            self._matrix = np.ascontiguousarray(matrix.reshape(-1, width, matrix.shape[1]).swapaxes(1, 2))

    def multiply_into(self, out: Array) -> Callable[[Array], object]:
        """Return a function that multiplies a state ``[batch, hidden]`` into ``out[batch, rows]``."""
        matrix = self._matrix
        if not self.single_row:
            panels = out.reshape(len(out), len(matrix), -1).swapaxes(0, 1)
            return lambda state: np.matmul(state, matrix, out=panels)
        if len(out) == 1:
            row = out[0]
            return lambda state: np.dot(matrix, state[0], out=row)
        return lambda state: np.matmul(state, matrix.T, out=out)


@dataclass(frozen=True)
class Direction:
    """One direction of a sequence."""

    reverse: bool
    inputs: Panels
    biases: Array
    recurrent: tuple[RecurrentWeights, ...]
    recurrent_bias: Array
    """A bias of the product with the state, for ``linear_before_reset``."""

    @classmethod
    def of(cls, reverse: bool, w: Array, r: Array, b: Array, single_row: bool) -> Direction:
        """Pack the weights ``w[gates * hidden, input]``, ``r[gates * hidden, hidden]`` and the biases ``b``."""
        w, r, b = (cls.arrange_gates(array, r.shape[1]) for array in (w, r, b))
        weights = tuple(RecurrentWeights(part, single_row) for part in cls.split_recurrent(r))
        return cls(reverse, Panels.of(w.T, w), b[: len(w)], weights, b[len(w) :])

    @staticmethod
    def arrange_gates(array: Array, hidden: int) -> Array:
        """Return a copy with the gates in order, those with a sigmoid halved."""
        raise NotImplementedError

    @staticmethod
    def split_recurrent(r: Array) -> tuple[Array, ...]:
        """Return the recurrent weights that are multiplied one after the other."""
        return (r,)

    def run(self, x: Array, y: Array, *states: Array) -> None:
        """Run over ``x[batch, time, input]``; the states ``[batch, hidden]`` are changed in place."""
        batch, time, inputs = x.shape
        rows = np.ascontiguousarray(x.swapaxes(0, 1)).reshape(-1, inputs)
        gate_inputs = np.empty((len(rows), len(self.biases)), np.float32)
        gemm(rows, self.inputs, gate_inputs, self._add_biases)
        order = range(time - 1, -1, -1) if self.reverse else range(time)
        shared = (
            self.recurrent[0].single_row
            and batch * len(self.biases) * states[0].shape[1] >= MIN_MULTITHREADED_SIZE
        )
        with multithreaded_blas() if shared else nullcontext():
            for step in self.steps(gate_inputs.reshape(time, batch, -1), order, *states):
                y[:, step] = states[0]

    def _add_biases(self, block: Array, first: int) -> None:
        np.add(block, self.biases, out=block)

    def steps(self, gate_inputs: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        """Run the steps, from the products of the inputs; yield the index of each step that is done."""
        raise NotImplementedError


class RNNDirection(Direction):
    """An RNN: the hidden state is the only gate."""

    @staticmethod
    def arrange_gates(array: Array, hidden: int) -> Array:
        return array

    def steps(self, gate_inputs: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        (hidden,) = states
        gate = np.empty(hidden.shape, np.float32)
        multiply = self.recurrent[0].multiply_into(gate)
        for step in order:
            deadline.check()
            multiply(hidden)
            np.add(gate, gate_inputs[step], out=gate)
            np.tanh(gate, out=hidden)
            yield step


class LSTMDirection(Direction):
    """An LSTM: gates f, i, o and c."""

    @staticmethod
    def arrange_gates(array: Array, hidden: int) -> Array:
        gates = sigmoid_gates_first(array, hidden)
        gates[: 3 * hidden] *= HALF
        return gates

    def steps(self, gate_inputs: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        hidden, cell = states
        batch, size = hidden.shape
        gates = np.empty((batch, 4 * size), np.float32)
        multiply = self.recurrent[0].multiply_into(gates)
        sigmoids, candidate = gates[:, : 3 * size], gates[:, 3 * size :]
        forget, input_gate, output_gate = (gates[:, i * size : (i + 1) * size] for i in range(3))
        for step in order:
            deadline.check()
            multiply(hidden)
            np.add(gates, gate_inputs[step], out=gates)
            np.tanh(gates, out=gates)
            np.multiply(sigmoids, HALF, out=sigmoids)
            np.add(sigmoids, HALF, out=sigmoids)
            np.multiply(cell, forget, out=cell)
            np.multiply(input_gate, candidate, out=input_gate)
            np.add(cell, input_gate, out=cell)
            np.tanh(cell, out=candidate)
            np.multiply(output_gate, candidate, out=hidden)
            yield step


class GRUDirection(Direction):
    """A GRU: gates z, r and h; the state is reset before it is multiplied."""

    @staticmethod
    def arrange_gates(array: Array, hidden: int) -> Array:
        gates = array.copy()
        gates[: 2 * hidden] *= HALF
        return gates

    @staticmethod
    def split_recurrent(r: Array) -> tuple[Array, ...]:
        return r[: 2 * r.shape[1]], r[2 * r.shape[1] :]

    def steps(self, gate_inputs: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        (hidden,) = states
        batch, size = hidden.shape
        gates, candidate = np.empty((batch, 2 * size), np.float32), np.empty((batch, size), np.float32)
        update, reset = gates[:, :size], gates[:, size:]
        multiply, multiply_reset = (
            self.recurrent[0].multiply_into(gates),
            self.recurrent[1].multiply_into(candidate),
        )
        for step in order:
            deadline.check()
            multiply(hidden)
            np.add(gates, gate_inputs[step, :, : 2 * size], out=gates)
            _sigmoid(gates)
            np.multiply(reset, hidden, out=reset)
            multiply_reset(reset)
            np.add(candidate, gate_inputs[step, :, 2 * size :], out=candidate)
            _update_hidden(candidate, update, hidden)
            yield step


class GRULinearBeforeResetDirection(GRUDirection):
    """A GRU with ``linear_before_reset``: the product of the state is reset."""

    @staticmethod
    def split_recurrent(r: Array) -> tuple[Array, ...]:
        return (r,)

    def steps(self, gate_inputs: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        (hidden,) = states
        batch, size = hidden.shape
        gates = np.empty((batch, 3 * size), np.float32)
        sigmoids, candidate = gates[:, : 2 * size], gates[:, 2 * size :]
        update, reset = gates[:, :size], gates[:, size : 2 * size]
        multiply = self.recurrent[0].multiply_into(gates)
        for step in order:
            deadline.check()
            multiply(hidden)
            np.add(sigmoids, gate_inputs[step, :, : 2 * size], out=sigmoids)
            _sigmoid(sigmoids)
            np.add(candidate, self.recurrent_bias, out=candidate)
            np.multiply(candidate, reset, out=candidate)
            np.add(candidate, gate_inputs[step, :, 2 * size :], out=candidate)
            _update_hidden(candidate, update, hidden)
            yield step


def _sigmoid(halves: Array) -> None:
    """Apply a sigmoid in place, given halves of its arguments."""
    np.tanh(halves, out=halves)
    np.multiply(halves, HALF, out=halves)
    np.add(halves, HALF, out=halves)


def _update_hidden(candidate: Array, update: Array, hidden: Array) -> None:
    """Compute ``hidden = update * hidden + (1 - update) * tanh(candidate)`` in place."""
    np.tanh(candidate, out=candidate)
    np.multiply(hidden, update, out=hidden)
    np.subtract(np.float32(1), update, out=update)
    np.multiply(update, candidate, out=candidate)
    np.add(hidden, candidate, out=hidden)
