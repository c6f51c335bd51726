"""Recurrent cells (RNN, GRU, LSTM), and their unrolling over time.

Internally, the batch is the last axis: for small batches and large weights, BLAS computes ``weights @ columns`` several
times as fast as ``rows @ weights.T``, and the gates of a cell are contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..._util import deadline
from ..._util.arrays import Array
from .matmul import accumulator_dtype
from .special import sigmoid

__all__ = ["GRU", "LSTM", "RNN", "Cell", "advance", "unroll", "as_accumulator"]

FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.asarray(np.maximum(x, 0)),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
}


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A recurrent cell: its weights, stacked over gates as ``[gates * hidden, ...]``, and its activation functions."""

    w: Array
    """Input weights."""
    r: Array
    """Recurrent weights."""
    b: Array | None
    functions: tuple[str, ...]
    clip: float = 0
    """Gates are clipped to ``[-clip, clip]`` before activation, unless ``clip`` is 0."""

    def project(self, x: Array) -> Array:
        """Apply the input weights and biases of all gates to inputs ``[input, columns]`` of one or many steps."""
        product = self.w @ x
        if self.b is not None:
            product += self.b[: len(product), None]
        return np.asarray(product)

    def step(self, projected: Array, *states: Array) -> tuple[Array, ...]:
        """Return the states ``[hidden, batch]`` after one step, the hidden state first."""
        raise NotImplementedError

    def activate(self, gate: Array, which: int) -> Array:
        """Clip a gate to [-clip, clip] if ``clip`` is positive, and apply activation function number ``which``, from 0."""
        return self.function(gate.clip(-self.clip, self.clip) if self.clip > 0 else gate, which)

    def function(self, x: Array, which: int) -> Array:
        """Apply activation function number ``which``."""
        return np.asarray(FUNCTIONS[self.functions[which]](x))


class RNN(Cell):
    """An RNN cell, which has a single gate."""

    __slots__ = ()

    def step(self, projected: Array, *states: Array) -> tuple[Array, ...]:
        """Return the states after one step."""
        return (self.activate(projected + self.r @ states[0], 0),)


@dataclass(frozen=True, slots=True, eq=False)
class GRU(Cell):
    """A GRU cell with gates z (update), r (reset) and h (candidate), in this order."""

    linear_before_reset: bool = False
    """Whether the reset gate applies after the recurrent product of the candidate, instead of before."""

    def step(self, projected: Array, *states: Array) -> tuple[Array, ...]:
        """Return the states after one step."""
        (hidden,) = states
        size = len(hidden)
        recurrent = (self.r if self.linear_before_reset else self.r[: 2 * size]) @ hidden
        gates = self.activate(projected[: 2 * size] + recurrent[: 2 * size], 0)
        update, reset = gates[:size], gates[size:]
        if self.linear_before_reset:
            inner = recurrent[2 * size :]
            if self.b is not None:
                inner += self.b[3 * size :, None]
            inner *= reset
        else:
            inner = self.r[2 * size :] @ (reset * hidden)
        new = self.activate(projected[2 * size :] + inner, 1)
        return ((1 - update) * new + update * hidden,)


@dataclass(frozen=True, slots=True, eq=False)
class LSTM(Cell):
    """An LSTM cell with gates f (forget), i (input), c (cell) and o (output), in this order."""

    peepholes: Array | None = None
    """Peephole weights of the gates f, i and o."""
    input_forget: bool = False
    """Whether the input gate is coupled, that is, 1 minus the forget gate."""

    def step(self, projected: Array, *states: Array) -> tuple[Array, ...]:
        """Return the states after one step."""
        hidden, cell = states
        forget, take, new, show = (projected + self.r @ hidden).reshape(4, *hidden.shape)
        if self.peepholes is not None:
            to_forget, to_take, to_show = self.peepholes.reshape(3, -1, 1)
            forget, take = forget + to_forget * cell, take + to_take * cell
        forget = self.activate(forget, 0)
        take = 1 - forget if self.input_forget else self.activate(take, 0)
        cell = forget * cell + take * self.activate(new, 1)
        if self.peepholes is not None:
            show = show + to_show * cell
        return self.activate(show, 0) * self.function(cell, 2), cell


def advance(cell: Cell, x: Array, *states: Array) -> tuple[Array, ...]:
    """Run one step of a cell on ``x[batch, input]``; return the new states, each ``[batch, hidden]``."""
    updated = cell.step(cell.project(as_accumulator(x).T), *(as_accumulator(state).T for state in states))
    return tuple(np.ascontiguousarray(state.T, x.dtype) for state in updated)


def unroll(
    cell: Cell, x: Array, states: tuple[Array, ...], lengths: Array, backwards: bool = False
) -> tuple[Array, ...]:
    """Run a cell over ``x[batch, time, input]``, for ``lengths[batch]`` steps.

    Returns the hidden states of all steps, ``[batch, time, hidden]``, with zeros after the end of a batch entry,
    followed by the final states, which are zeros for an entry of length 0.
    """
    batch, time, inputs = x.shape
    order = np.arange(time)
    order = np.where(order < lengths[:, None], lengths[:, None] - 1 - order, order)[..., None]
    if backwards:
        x = np.take_along_axis(x, order, axis=1)
    projected = cell.project(as_accumulator(x).transpose(2, 1, 0).reshape(inputs, time * batch))
    projected = np.ascontiguousarray(projected.reshape(len(projected), time, batch).swapaxes(0, 1))
    outputs = np.zeros((batch, time, states[0].shape[-1]), projected.dtype)
    states = tuple(np.where(lengths > 0, as_accumulator(state).T, 0) for state in states)
    for now in range(lengths.max(initial=0)):
        deadline.check()
        runs = lengths > now
        updated = cell.step(projected[now], *states)
        if not runs.all():
            updated = tuple(np.where(runs, new, old) for new, old in zip(updated, states, strict=True))
        states = updated
        outputs[runs, now] = states[0].T[runs]
    if backwards:
        outputs = np.take_along_axis(outputs, order, axis=1)
    return tuple(array.astype(x.dtype, copy=False) for array in (outputs, *(state.T for state in states)))


def as_accumulator(array: Array) -> Array:
    """Convert an array to its accumulator dtype."""
    return array.astype(accumulator_dtype(array.dtype), copy=False)
