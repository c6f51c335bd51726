"""Recurrent cells along whole sequences: one product for all inputs, and steps that make no new arrays.

A sigmoid is ``tanh(x / 2) / 2 + 1 / 2``; the weights of gates that have one are halved beforehand, and such
gates lie side by side, so a step has few calls.
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
from .._backend import backend
from ..math.gemm import multiply
from ..math.panels import WIDTH, Panels
from ..threading.parallel import several_blas

__all__: list[str] = []

HALF = np.float32(0.5)
# The gates of an LSTM are f, i, c, o; here o comes before c, so that those with a sigmoid lie side by side.
ORDER = (0, 1, 3, 2)
# Weights of the hidden state of which BLAS lets threads of its own multiply a part in each step: they find
# each other sooner than ours.
LARGE = 1 << 19


@backend.accelerates(RNNSequence, GRUSequence, LSTMSequence)
def sequence(
    op: RNNSequence | GRUSequence | LSTMSequence, *inputs: Value, unread: Collection[int] = ()
) -> Kernel | None:
    """f32 with constant weights and the usual functions; sequences that are shorter are left to the reference."""
    *varying, _, w, r, b = inputs
    passes = _passes(op, varying, (w, r, b))
    if passes is None:
        return None

    def kernel(*arrays: Array) -> tuple[Array, ...]:
        x, *states, lengths, _, _, _ = arrays
        return _run(passes, x, *states) if _whole(x, lengths) else op.evaluate(*arrays)

    return kernel


def _passes(
    op: RNNSequence | GRUSequence | LSTMSequence, varying: Sequence[Value], constant: Sequence[Value]
) -> list[Pass] | None:
    """A pass for each direction, if the cell is a usual one."""
    usual = {
        RNNSequence: ("tanh",),
        GRUSequence: ("sigmoid", "tanh"),
        LSTMSequence: ("sigmoid", "tanh", "tanh"),
    }
    w, r, b = (value.known() for value in constant)
    functions = usual[type(op)]
    if not is_f32(*varying, *constant) or op.clip or op.activations[: len(functions)] != functions:
        return None
    if w is None or r is None or b is None or not (w.size and r.size):
        return None
    alone = varying[0].shape.rank == 3 and varying[0].shape[0] == 1
    kind: type[Pass] = {RNNSequence: RNNPass, GRUSequence: GRUPass, LSTMSequence: LSTMPass}[type(op)]
    if isinstance(op, GRUSequence) and op.linear_before_reset:
        kind = GRUAfterPass
    return [kind.of(*each, alone) for each in zip(op.passes(), w, r, b, strict=True)]


def _whole(x: Array, lengths: Array) -> bool:
    """Whether there is something to do, and all sequences are as long as their arrays."""
    return bool(x.size) and not (np.asarray(lengths) != x.shape[1]).any()


def _run(passes: Sequence[Pass], x: Array, *states: Array) -> tuple[Array, ...]:
    batch, time, _ = x.shape
    y = np.empty((batch, len(passes), time, states[0].shape[-1]), np.float32)
    states = tuple(np.array(state, order="C") for state in states)
    for index, each in enumerate(passes):
        each.run(x, y[:, index], *(state[:, index] for state in states))
    return y, *states


class Weights:
    """Weights of a state, ``[rows, hidden]``, as they are multiplied fastest."""

    def __init__(self, matrix: Array, alone: bool) -> None:
        """Copy them.

        Args:
            matrix: those of all gates below each other.
            alone: for a batch of one; several rows are multiplied panel by panel.
        """
        rows, self.alone = len(matrix), alone
        if alone:
            self._matrix = np.ascontiguousarray(matrix)
        else:
            width = WIDTH if rows % WIDTH == 0 else rows
            self._matrix = np.ascontiguousarray(matrix.reshape(-1, width, matrix.shape[1]).swapaxes(1, 2))

    def into(self, out: Array) -> Callable[[Array], object]:
        """What multiplies a state ``[batch, hidden]`` into ``out[batch, rows]``."""
        matrix = self._matrix
        if not self.alone:
            panels = out.reshape(len(out), len(matrix), -1).swapaxes(0, 1)
            return lambda state: np.matmul(state, matrix, out=panels)
        if len(out) == 1:
            row = out[0]
            return lambda state: np.dot(matrix, state[0], out=row)
        return lambda state: np.matmul(state, matrix.T, out=out)


@dataclass(frozen=True)
class Pass:
    """One direction."""

    backwards: bool
    inputs: Panels
    biases: Array
    recurrent: tuple[Weights, ...]
    later: Array
    """A bias of the state's product."""

    @classmethod
    def of(cls, backwards: bool, w: Array, r: Array, b: Array, alone: bool) -> Pass:
        """Take in ``w[gates * hidden, input]`` and its like."""
        w, r, b = (cls.arranged(array, r.shape[1]) for array in (w, r, b))
        weights = tuple(Weights(part, alone) for part in cls.parted(r))
        return cls(backwards, Panels.of(w.T, w), b[: len(w)], weights, b[len(w) :])

    @staticmethod
    def arranged(array: Array, hidden: int) -> Array:
        """The gates in order, those with a sigmoid halved; a copy."""
        raise NotImplementedError

    @staticmethod
    def parted(r: Array) -> tuple[Array, ...]:
        """The weights of states that are multiplied one after the other."""
        return (r,)

    def run(self, x: Array, y: Array, *states: Array) -> None:
        """Go along ``x[batch, time, input]``; the states ``[batch, hidden]`` are changed in place."""
        batch, time, inputs = x.shape
        rows = np.ascontiguousarray(x.swapaxes(0, 1)).reshape(-1, inputs)
        given = np.empty((len(rows), len(self.biases)), np.float32)
        multiply(rows, self.inputs, given, self._add_biases)
        order = range(time - 1, -1, -1) if self.backwards else range(time)
        shared = self.recurrent[0].alone and batch * len(self.biases) * states[0].shape[1] >= LARGE
        with several_blas() if shared else nullcontext():
            for now in self.steps(given.reshape(time, batch, -1), order, *states):
                y[:, now] = states[0]

    def _add_biases(self, block: Array, first: int) -> None:
        np.add(block, self.biases, out=block)

    def steps(self, given: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        """Take one step after the other, given what the inputs give to the gates; says which one is done."""
        raise NotImplementedError


class RNNPass(Pass):
    """The hidden state is one gate."""

    @staticmethod
    def arranged(array: Array, hidden: int) -> Array:
        return array

    def steps(self, given: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        (hidden,) = states
        gate = np.empty(hidden.shape, np.float32)
        multiply = self.recurrent[0].into(gate)
        for now in order:
            deadline.check()
            multiply(hidden)
            np.add(gate, given[now], out=gate)
            np.tanh(gate, out=hidden)
            yield now


class LSTMPass(Pass):
    """Gates f, i, o and c."""

    @staticmethod
    def arranged(array: Array, hidden: int) -> Array:
        gates = array.reshape(4, hidden, *array.shape[1:])[list(ORDER)]
        gates[:3] *= HALF
        return np.asarray(gates.reshape(array.shape))

    def steps(self, given: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        hidden, cell = states
        batch, size = hidden.shape
        gates = np.empty((batch, 4 * size), np.float32)
        multiply = self.recurrent[0].into(gates)
        sigmoids, new = gates[:, : 3 * size], gates[:, 3 * size :]
        forget, take, show = (gates[:, i * size : (i + 1) * size] for i in range(3))
        for now in order:
            deadline.check()
            multiply(hidden)
            np.add(gates, given[now], out=gates)
            np.tanh(gates, out=gates)
            np.multiply(sigmoids, HALF, out=sigmoids)
            np.add(sigmoids, HALF, out=sigmoids)
            np.multiply(cell, forget, out=cell)
            np.multiply(take, new, out=take)
            np.add(cell, take, out=cell)
            np.tanh(cell, out=new)
            np.multiply(show, new, out=hidden)
            yield now


class GRUPass(Pass):
    """Gates z, r and h; the state is reset before it is multiplied."""

    @staticmethod
    def arranged(array: Array, hidden: int) -> Array:
        gates = array.copy()
        gates[: 2 * hidden] *= HALF
        return gates

    @staticmethod
    def parted(r: Array) -> tuple[Array, ...]:
        return r[: 2 * r.shape[1]], r[2 * r.shape[1] :]

    def steps(self, given: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        (hidden,) = states
        batch, size = hidden.shape
        gates, new = np.empty((batch, 2 * size), np.float32), np.empty((batch, size), np.float32)
        kept, reset = gates[:, :size], gates[:, size:]
        multiply, multiply_reset = self.recurrent[0].into(gates), self.recurrent[1].into(new)
        for now in order:
            deadline.check()
            multiply(hidden)
            np.add(gates, given[now, :, : 2 * size], out=gates)
            _sigmoid(gates)
            np.multiply(reset, hidden, out=reset)
            multiply_reset(reset)
            np.add(new, given[now, :, 2 * size :], out=new)
            _mix(new, kept, hidden)
            yield now


class GRUAfterPass(GRUPass):
    """Gates z, r and h; it is the product of the state that is reset."""

    @staticmethod
    def parted(r: Array) -> tuple[Array, ...]:
        return (r,)

    def steps(self, given: Array, order: Sequence[int], *states: Array) -> Iterator[int]:
        (hidden,) = states
        batch, size = hidden.shape
        gates = np.empty((batch, 3 * size), np.float32)
        sigmoids, new = gates[:, : 2 * size], gates[:, 2 * size :]
        kept, reset = gates[:, :size], gates[:, size : 2 * size]
        multiply = self.recurrent[0].into(gates)
        for now in order:
            deadline.check()
            multiply(hidden)
            np.add(sigmoids, given[now, :, : 2 * size], out=sigmoids)
            _sigmoid(sigmoids)
            np.add(new, self.later, out=new)
            np.multiply(new, reset, out=new)
            np.add(new, given[now, :, 2 * size :], out=new)
            _mix(new, kept, hidden)
            yield now


def _sigmoid(halves: Array) -> None:
    """In place, given half of what it is applied to."""
    np.tanh(halves, out=halves)
    np.multiply(halves, HALF, out=halves)
    np.add(halves, HALF, out=halves)


def _mix(new: Array, kept: Array, hidden: Array) -> None:
    """The hidden state keeps a part, the rest is new."""
    np.tanh(new, out=new)
    np.multiply(hidden, kept, out=hidden)
    np.subtract(np.float32(1), kept, out=kept)
    np.multiply(kept, new, out=new)
    np.add(hidden, new, out=hidden)
