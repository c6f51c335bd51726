"""RNN, GRU and LSTM sequences: for each direction, one GEMM for all inputs, then time steps that allocate no arrays.

A sigmoid is computed as ``tanh(x / 2) / 2 + 1 / 2``. The weights of sigmoid gates are halved beforehand, and these gates are
stored next to each other, so that a step takes few calls. Small steps of two directions run together, with stacked states
and weights.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ...._util import deadline
from ....ir.tensor import Array, Value
from ....ops.sequence.recurrent import GRUSequence, LSTMSequence, RNNSequence
from ... import Kernel
from ...common.layout import is_f32, sigmoid_gates_first
from .._backend import backend
from ..parallel import multithreaded_blas
from ._gemm import gemm, own_matrix

__all__: list[str] = []

HALF = np.full((), 0.5, np.float32)


class RecurrentWeights:
    """Recurrent weights ``[rows, hidden]``, copied to the layout that BLAS multiplies fastest."""

    hidden: int

    def __init__(self, matrix: Array, single_row: bool) -> None:
        """Copy the weights.

        Args:
            matrix: the weights of all gates, ``[rows, hidden]``.
            single_row: whether the batch size is 1.
        """
        self.single_row, self.hidden = single_row, matrix.shape[1]
        self._matrix = np.array(matrix if single_row else matrix.T, order="C")

    def multiply_into(self, out: Array) -> Callable[[Array], object]:
        """Return a function that multiplies a state ``[batch, hidden]`` by the weights, into ``out[batch, rows]``."""
        matrix = self._matrix
        if not self.single_row:
            return lambda state: np.matmul(state, matrix, out=out)
        if len(out) == 1:
            row = out[0]
            return lambda state: np.dot(matrix, state[0], out=row)
        return lambda state: np.matmul(state, matrix.T, out=out)


class StackedWeights(RecurrentWeights):
    """The recurrent weights of two directions, ``[gate, direction, hidden, hidden]``, for batch size 1."""

    def __init__(self, first: RecurrentWeights, second: RecurrentWeights) -> None:
        """Stack copies of the weights of two directions."""
        self.single_row, self.hidden = True, first.hidden
        both = np.stack([first._matrix, second._matrix]).reshape(2, -1, self.hidden, self.hidden)
        self._matrix = np.ascontiguousarray(both.transpose(1, 0, 3, 2))

    def multiply_into(self, out: Array) -> Callable[[Array], object]:
        """Return a function that multiplies states ``[direction, 1, hidden]``, into ``out[gate, direction, 1, hidden]``."""
        matrices = self._matrix
        return lambda states: np.matmul(states, matrices, out)


@dataclass(frozen=True)
class Direction:
    """The packed weights of a direction of a sequence, and its time steps."""

    reverse: bool
    inputs: Array
    biases: Array
    recurrent: tuple[RecurrentWeights, ...]
    recurrent_bias: Array
    """The bias of the product with the state, for ``linear_before_reset``; empty otherwise."""

    @property
    def single_row(self) -> bool:
        """Whether the batch size is 1."""
        return self.recurrent[0].single_row

    @property
    def recurrent_size(self) -> int:
        """The number of recurrent weights that a step reads."""
        return len(self.biases) * self.recurrent[0].hidden

    @classmethod
    def of(cls, reverse: bool, w: Array, r: Array, b: Array, single_row: bool) -> Direction:
        """Pack the weights ``w[gates * hidden, input]``, ``r[gates * hidden, hidden]`` and the biases ``b``."""
        w, r, b = (cls.arrange_gates(array, r.shape[1]) for array in (w, r, b))
        weights = tuple(RecurrentWeights(part, single_row) for part in cls.split_recurrent(r))
        return cls(reverse, own_matrix(w.T, w), b[: len(w)], weights, b[len(w) :])

    @staticmethod
    def arrange_gates(array: Array, hidden: int) -> Array:
        """Return weights or biases with gates in the order of this class, and sigmoid gates halved."""
        raise NotImplementedError

    @staticmethod
    def split_recurrent(r: Array) -> tuple[Array, ...]:
        """Split the recurrent weights into the matrices of successive products."""
        return (r,)

    def gate_inputs(self, x: Array) -> Array:
        """Return ``x[batch, time, input]`` multiplied by the input weights plus biases, ``[time, batch, gates * hidden]``."""
        batch, time, inputs = x.shape
        rows = np.ascontiguousarray(x.swapaxes(0, 1)).reshape(-1, inputs)
        products = np.empty((len(rows), len(self.biases)), np.float32)
        gemm(rows, self.inputs, products, self._add_biases)
        return products.reshape(time, batch, -1)

    def together(self, other: Self) -> Self:
        """Return a direction that runs the steps of this one and another at once, for batch size 1."""
        return replace(
            self,
            recurrent=tuple(map(StackedWeights, self.recurrent, other.recurrent)),
            recurrent_bias=np.stack([self.recurrent_bias, other.recurrent_bias])[:, None],
        )

    def _add_biases(self, block: Array, first: int) -> None:
        np.add(block, self.biases, out=block)

    def steps(self, inputs: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        """Run time steps, and yield the index of each completed step.

        Args:
            inputs: the result of `gate_inputs`; for two directions ``[time, gate, direction, 1, hidden]``, so that each call
                writes contiguous memory.
            order: the indices of the steps, in order.
            states: ``[batch, hidden]`` or ``[direction, 1, hidden]``, updated in place.
        """
        raise NotImplementedError


class RNNDirection(Direction):
    """An RNN, whose only gate is the hidden state."""

    @staticmethod
    def arrange_gates(array: Array, hidden: int) -> Array:
        return array

    def steps(self, inputs: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        (hidden,) = states
        gate = _gates(1, hidden)
        multiply = self.recurrent[0].multiply_into(gate)
        for step in order:
            deadline.check()
            multiply(hidden)
            np.add(gate, inputs[step], out=gate)
            np.tanh(_part(gate, 0, 1, hidden.shape[-1]), out=hidden)
            yield step


class LSTMDirection(Direction):
    """An LSTM, with gates in the order f, i, o, c."""

    @staticmethod
    def arrange_gates(array: Array, hidden: int) -> Array:
        gates = sigmoid_gates_first(array, hidden)
        gates[: 3 * hidden] *= HALF
        return gates

    def steps(self, inputs: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        hidden, cell = states
        size, gates = hidden.shape[-1], _gates(4, hidden)
        multiply = self.recurrent[0].multiply_into(gates)
        sigmoids, candidate = _part(gates, 0, 3, size), _part(gates, 3, 4, size)
        forget, input_gate, output_gate = (_part(gates, i, i + 1, size) for i in range(3))
        for step in order:
            deadline.check()
            multiply(hidden)
            np.add(gates, inputs[step], out=gates)
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
    """A GRU, with gates in the order z, r, h; the reset gate is applied to the state before its product."""

    @staticmethod
    def arrange_gates(array: Array, hidden: int) -> Array:
        gates = array.copy()
        gates[: 2 * hidden] *= HALF
        return gates

    @staticmethod
    def split_recurrent(r: Array) -> tuple[Array, ...]:
        return r[: 2 * r.shape[1]], r[2 * r.shape[1] :]

    def steps(self, inputs: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        (hidden,) = states
        size, gates, candidates = hidden.shape[-1], _gates(2, hidden), _gates(1, hidden)
        candidate = _part(candidates, 0, 1, size)
        update, reset = _part(gates, 0, 1, size), _part(gates, 1, 2, size)
        multiply, multiply_reset = (
            self.recurrent[0].multiply_into(gates),
            self.recurrent[1].multiply_into(candidates),
        )
        for step in order:
            deadline.check()
            multiply(hidden)
            np.add(gates, _part(inputs[step], 0, 2, size), out=gates)
            _sigmoid(gates)
            np.multiply(reset, hidden, out=reset)
            multiply_reset(reset)
            np.add(candidate, _part(inputs[step], 2, 3, size), out=candidate)
            _update_hidden(candidate, update, hidden)
            yield step


class GRULinearBeforeResetDirection(GRUDirection):
    """A GRU with ``linear_before_reset``: the reset gate is applied to the product of the state."""

    @staticmethod
    def split_recurrent(r: Array) -> tuple[Array, ...]:
        return (r,)

    def steps(self, inputs: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        (hidden,) = states
        size, gates = hidden.shape[-1], _gates(3, hidden)
        sigmoids, candidate = _part(gates, 0, 2, size), _part(gates, 2, 3, size)
        update, reset = _part(gates, 0, 1, size), _part(gates, 1, 2, size)
        multiply = self.recurrent[0].multiply_into(gates)
        for step in order:
            deadline.check()
            multiply(hidden)
            np.add(sigmoids, _part(inputs[step], 0, 2, size), out=sigmoids)
            _sigmoid(sigmoids)
            np.add(candidate, self.recurrent_bias, out=candidate)
            np.multiply(candidate, reset, out=candidate)
            np.add(candidate, _part(inputs[step], 2, 3, size), out=candidate)
            _update_hidden(candidate, update, hidden)
            yield step


def _gates(count: int, states: Array) -> Array:
    """Allocate memory for ``count`` gates of states, in the layout of the inputs of a step."""
    *stack, size = states.shape
    return np.empty((*stack, count * size) if states.ndim == 2 else (count, *stack, size), np.float32)


def _part(gates: Array, first: int, last: int, size: int) -> Array:
    """Return a view of gates ``[first, last)``, ``size`` elements each; a single gate has the shape of the states."""
    if gates.ndim == 2:
        return gates[:, first * size : last * size]
    return np.asarray(gates[first] if last == first + 1 else gates[first:last])


def _sigmoid(halves: Array) -> None:
    """Replace ``x / 2`` by ``sigmoid(x)`` in place."""
    np.tanh(halves, out=halves)
    np.multiply(halves, HALF, out=halves)
    np.add(halves, HALF, out=halves)


def _update_hidden(candidate: Array, update: Array, hidden: Array) -> None:
    """Compute ``hidden = update * hidden + (1 - update) * tanh(candidate)`` in place."""
    np.tanh(candidate, candidate)
    np.subtract(hidden, candidate, hidden)
    np.multiply(hidden, update, hidden)
    np.add(hidden, candidate, hidden)


# From this size of recurrent weights on, the threads of BLAS share the product of each step; they synchronize faster than the
# thread pool.
MIN_MULTITHREADED_SIZE = 1 << 19


@backend.accelerates(RNNSequence, GRUSequence, LSTMSequence)
def sequence(
    op: RNNSequence | GRUSequence | LSTMSequence, *inputs: Value, unread: Collection[int] = ()
) -> Kernel | None:
    """Return a kernel for f32, constant weights and the default activations, else ``None``; the reference handles padded sequences."""
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
    """Return the packed directions, or ``None`` if weights are not constant f32, or activations are not the defaults."""
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
    """Return whether the data is not empty, and all sequences are as long as the time axis."""
    return bool(x.size) and not (np.asarray(lengths) != x.shape[1]).any()


def _run(directions: Sequence[Direction], x: Array, *states: Array) -> tuple[Array, ...]:
    batch, time, _ = x.shape
    y = np.empty((batch, len(directions), time, states[0].shape[-1]), np.float32)
    states = tuple(np.array(state, order="C") for state in states)
    for index, direction in enumerate(directions):
        _run_direction(direction, x, y[:, index], *(state[:, index] for state in states))
    return y, *states


def _run_direction(direction: Direction, x: Array, y: Array, *states: Array) -> None:
    """Run a direction over ``x[batch, time, input]``; write ``y[batch, time, hidden]``, and update the states in place."""
    inputs, time = direction.gate_inputs(x), x.shape[1]
    order = range(time - 1, -1, -1) if direction.reverse else range(time)
    shared = direction.single_row and inputs[0].size * states[0].shape[1] >= MIN_MULTITHREADED_SIZE
    with multithreaded_blas() if shared else nullcontext():
        for step in direction.steps(inputs, order, *states):
            y[:, step] = states[0]


def _run_together(
    directions: Sequence[Direction], both: Direction, x: Array, *states: Array
) -> tuple[Array, ...]:
    """Run the steps of two directions at once, for batch size 1, where calls take longer than the products of a step."""
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
    hidden = np.empty((time, *stacked[0].shape), np.float32)
    for step in both.steps(inputs, range(time), *stacked):
        hidden[step] = stacked[0]
    y = np.stack([hidden[order, i] for i, order in enumerate(reversed_first)]).transpose(2, 0, 1, 3)
    return y, *(state.swapaxes(0, 1) for state in stacked)
