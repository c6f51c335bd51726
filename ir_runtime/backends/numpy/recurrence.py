"""Long short-term memories along whole sequences."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ... import deadline
from ...ir.tensor import Array, Value
from ...ops.sequence.recurrent import LSTMSequence
from .. import Kernel
from ._backend import backend
from ._memory import is_f32
from ._panels import WIDTH, Panels
from ._products import multiply

__all__: list[str] = []

GATES = 4
# The gates of a cell are f, i, c, o; here o comes before c, so that those with a sigmoid lie side by side.
ORDER = (0, 1, 3, 2)


@backend.accelerates(LSTMSequence)
def lstm(
    op: LSTMSequence,
    x: Value,
    hidden: Value,
    cell: Value,
    lengths: Value,
    w: Value,
    r: Value,
    b: Value,
    unread: Collection[int] = (),
) -> Kernel | None:
    """f32 with constant weights and the usual functions; sequences that are shorter are left to the reference."""
    weights, recurrent, biases = w.known(), r.known(), b.known()
    if weights is None or recurrent is None or biases is None or not (weights.size and recurrent.size):
        return None
    if not is_f32(x, hidden, cell, w, r, b) or op.clip or op.activations[:3] != ("sigmoid", "tanh", "tanh"):
        return None
    passes = [Pass.of(*each) for each in zip(op.passes(), weights, recurrent, biases, strict=True)]
    size = recurrent.shape[-1]

    def kernel(x: Array, hidden: Array, cell: Array, lengths: Array, *constants: Array) -> tuple[Array, ...]:
        batch, time, _ = x.shape
        if not (batch and time) or (np.asarray(lengths) != time).any():
            return op.evaluate(x, hidden, cell, lengths, *constants)
        y = np.empty((batch, len(passes), time, size), np.float32)
        hidden, cell = hidden.copy(), cell.copy()
        for index, each in enumerate(passes):
            each.run(x, hidden[:, index], cell[:, index], y[:, index])
        return y, hidden, cell

    return kernel


@dataclass(frozen=True)
class Pass:
    """Weights for one direction. Those of gates with a sigmoid are halved: it is ``tanh(x / 2) / 2 + 1 / 2``."""

    backwards: bool
    inputs: Panels
    recurrent: Array
    """``[panel, hidden, gate of panel]``, each panel stored by gate: so the product of one row is fastest, too."""
    biases: Array

    @classmethod
    def of(cls, backwards: bool, w: Array, r: Array, b: Array) -> Pass:
        """Bring the gates into order."""
        w, r, b = (_ordered(array) for array in (w, r, b))
        width = WIDTH if len(r) % WIDTH == 0 else len(r)
        panels = r.reshape(-1, width, r.shape[1]).swapaxes(1, 2)
        return cls(backwards, Panels.of(w.T, w), panels, b)

    def run(self, x: Array, hidden: Array, cell: Array, y: Array) -> None:
        """Go along ``x[batch, time, input]``; the states ``[batch, hidden]`` are changed in place."""
        batch, time, inputs = x.shape
        size = hidden.shape[1]
        rows = np.ascontiguousarray(x.swapaxes(0, 1)).reshape(-1, inputs)
        projected = np.empty((len(rows), GATES * size), np.float32)
        multiply(rows, self.inputs, projected, self._add_biases)
        gates = np.empty((batch, GATES * size), np.float32)
        panels = gates.reshape(batch, len(self.recurrent), -1).swapaxes(0, 1)
        sigmoids, new = gates[:, : 3 * size], gates[:, 3 * size :]
        forget, take, show = (gates[:, i * size : (i + 1) * size] for i in range(3))
        half = np.float32(0.5)
        for now in range(time - 1, -1, -1) if self.backwards else range(time):
            deadline.check()
            np.matmul(hidden, self.recurrent, out=panels)
            np.add(gates, projected[now * batch : (now + 1) * batch], out=gates)
            np.tanh(gates, out=gates)
            np.multiply(sigmoids, half, out=sigmoids)
            np.add(sigmoids, half, out=sigmoids)
            np.multiply(cell, forget, out=cell)
            np.multiply(take, new, out=take)
            np.add(cell, take, out=cell)
            np.tanh(cell, out=new)
            np.multiply(show, new, out=hidden)
            y[:, now] = hidden

    def _add_biases(self, block: Array, first: int) -> None:
        np.add(block, self.biases, out=block)


def _ordered(array: Array) -> Array:
    """The rows of all gates in `ORDER`, a copy."""
    gates = array.reshape(GATES, -1, *array.shape[1:])[list(ORDER)]
    gates[:3] *= np.float32(0.5)
    return gates.reshape(array.shape)
