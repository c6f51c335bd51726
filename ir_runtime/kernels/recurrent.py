"""Recurrent cells, and how they run over sequences: one loop, over time. Knows nothing of the IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .products import working_dtype
from .special import sigmoid

Array = NDArray[Any]

__all__ = ["GRU", "LSTM", "RNN", "Cell", "advance", "unroll", "wide"]

FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.asarray(np.maximum(x, 0)),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
}


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """Weights of a cell: those of all gates stand below each other, [gates * hidden, ...]."""

    w: Array
    """Weights of the input."""
    r: Array
    """Weights of the hidden state."""
    b: Array | None
    functions: tuple[str, ...]
    clip: float = 0
    """Gates are kept within this of 0 before they are activated, unless it is 0."""

    def project(self, x: Array) -> Array:
        """What the input gives to all gates: of one step, or of many at once."""
        found = x @ self.w.T
        if self.b is not None:
            found += self.b[: found.shape[-1]]
        return np.asarray(found)

    def step(self, projected: Array, *states: Array) -> tuple[Array, ...]:
        """The states after one step, the hidden one first."""
        raise NotImplementedError

    def activate(self, gate: Array, which: int) -> Array:
        """One of the functions of a gate, clipped before."""
        return self.function(gate.clip(-self.clip, self.clip) if self.clip > 0 else gate, which)

    def function(self, x: Array, which: int) -> Array:
        """One of the functions."""
        return np.asarray(FUNCTIONS[self.functions[which]](x))


class RNN(Cell):
    """The hidden state is one activated gate."""

    __slots__ = ()

    def step(self, projected: Array, *states: Array) -> tuple[Array, ...]:
        """The states after one step."""
        return (self.activate(projected + states[0] @ self.r.T, 0),)


@dataclass(frozen=True, slots=True, eq=False)
class GRU(Cell):
    """Gates z (update), r (reset) and h (what is new), in this order."""

    linear_before_reset: bool = False
    """Whether the reset applies to the hidden state's product, with a bias of its own, or to that state."""

    def step(self, projected: Array, *states: Array) -> tuple[Array, ...]:
        """The states after one step."""
        (hidden,) = states
        size = hidden.shape[-1]
        new = projected[..., 2 * size :]
        if self.linear_before_reset:
            recurrent = hidden @ self.r.T
            gates = self.activate(projected[..., : 2 * size] + recurrent[..., : 2 * size], 0)
            inner = recurrent[..., 2 * size :]
            if self.b is not None:
                inner = inner + self.b[3 * size :]
            new = new + gates[..., size:] * inner
        else:
            gates = self.activate(projected[..., : 2 * size] + hidden @ self.r[: 2 * size].T, 0)
            new = new + (gates[..., size:] * hidden) @ self.r[2 * size :].T
        update = gates[..., :size]
        return ((1 - update) * self.activate(new, 1) + update * hidden,)


@dataclass(frozen=True, slots=True, eq=False)
class LSTM(Cell):
    """Gates f (forget), i (input), c (cell) and o (output), in this order."""

    peepholes: Array | None = None
    """Weights of the cell state for the gates f, i and o."""
    input_forget: bool = False
    """Whether the input gate is what the forget gate leaves."""

    def step(self, projected: Array, *states: Array) -> tuple[Array, ...]:
        """The states after one step."""
        hidden, cell = states
        forget, take, new, show = np.split(projected + hidden @ self.r.T, 4, axis=-1)
        if self.peepholes is not None:
            to_forget, to_take, to_show = np.split(self.peepholes, 3)
            forget, take = forget + to_forget * cell, take + to_take * cell
        forget = self.activate(forget, 0)
        take = 1 - forget if self.input_forget else self.activate(take, 0)
        cell = forget * cell + take * self.activate(new, 1)
        if self.peepholes is not None:
            show = show + to_show * cell
        return self.activate(show, 0) * self.function(cell, 2), cell


def advance(cell: Cell, x: Array, *states: Array) -> tuple[Array, ...]:
    """One step of a cell on ``x[batch, input]``: the new states, each ``[batch, hidden]``."""
    work = cell.w.dtype
    found = cell.step(cell.project(x.astype(work, copy=False)), *(s.astype(work, copy=False) for s in states))
    return tuple(state.astype(x.dtype, copy=False) for state in found)


def unroll(
    cell: Cell, x: Array, states: tuple[Array, ...], lengths: Array, backwards: bool = False
) -> tuple[Array, ...]:
    """Run a cell over ``x[batch, time, input]``, each entry of the batch for as many steps as it has.

    Returns the hidden states of all steps, ``[batch, time, hidden]``, with zeros behind the end of an
    entry, and the last states, which are zeros for an entry without any step.
    """
    work = cell.w.dtype
    batch, time = x.shape[:2]
    order = np.arange(time)
    order = np.where(order < lengths[:, None], lengths[:, None] - 1 - order, order)[..., None]
    projected = cell.project(x.astype(work, copy=False))
    if backwards:
        projected = np.take_along_axis(projected, order, axis=1)
    projected = np.ascontiguousarray(np.swapaxes(projected, 0, 1))
    outputs = np.zeros((batch, time, states[0].shape[-1]), work)
    states = tuple(np.where(lengths[:, None] > 0, state, 0).astype(work) for state in states)
    for now in range(lengths.max(initial=0)):
        found = cell.step(projected[now], *states)
        runs = lengths[:, None] > now
        if not runs.all():
            outputs[:, now] = np.where(runs, found[0], 0)
            states = tuple(np.where(runs, new, old) for new, old in zip(found, states, strict=True))
            continue
        outputs[:, now], states = found[0], found
    if backwards:
        outputs = np.take_along_axis(outputs, order, axis=1)
    return tuple(array.astype(x.dtype, copy=False) for array in (outputs, *states))


def wide(weights: Array) -> Array:
    """Weights in the dtype in which their products are summed."""
    return weights.astype(working_dtype(weights.dtype), copy=False)
