"""Recurrent cells (RNN, GRU, LSTM), which compute one step."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast

import numpy as np

from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, Input, Output, attr, op
from ..kernels import recurrent as kernels
from ..recurrent import GRU, LSTM, RNN, STEP, Recurrent


class Cell(Recurrent):
    """The inputs common to all cells."""

    x = Input(T_FLOAT, "[batch, input]")
    initial_hidden_state = Input(T_FLOAT, "[batch, hidden]")
    ho = Output(T_FLOAT, "the new hidden state, [batch, hidden]")

    def state(self, *values: Value | None) -> PartialShape:
        """Return the shape of a new state."""
        sizes = self.fit(STEP, *values)
        return PartialShape([sizes["batch"], sizes["hidden"]])


@op("RNNCell-1", spec="sequence/rnn-cell-3")
class RNNCell(RNN, Cell):
    """One step of a plain recurrent cell: ``f(x @ w.T + initial_hidden_state @ r.T + b)``."""

    w = Input(T_FLOAT, "weights of x, [hidden, input]")
    r = Input(T_FLOAT, "weights of the hidden state, [hidden, hidden]")
    b = Input(T_FLOAT, "biases, [hidden]")

    def infer(self, x: Value, initial_hidden_state: Value, w: Value, r: Value, b: Value) -> PartialShape:
        return self.state(x, initial_hidden_state, w, r, b)

    def evaluate(self, x: Array, initial_hidden_state: Array, w: Array, r: Array, b: Array) -> Array:
        return kernels.advance(self.cell(w, r, b), x, initial_hidden_state)[0]


@op("GRUCell-3")
class GRUCell(GRU, Cell):
    """One step of a gated recurrent unit: the gate z blends the hidden state with a new one.

    OpenVINO does not read a layer without ``b``, which the page lets be absent.
    """

    w = Input(T_FLOAT, "weights of x for the gates z, r, h, [3 * hidden, input]", mixed=True)
    r = Input(T_FLOAT, "weights of the hidden state, [3 * hidden, hidden]")
    b = Input(
        T_FLOAT,
        "biases, [3 * hidden]; with linear_before_reset one more for h, [4 * hidden]; none when absent",
        optional=True,
    )

    def infer(
        self, x: Value, initial_hidden_state: Value, w: Value, r: Value, b: Value | None = None
    ) -> PartialShape:
        return self.state(x, initial_hidden_state, w, r, b)

    def evaluate(
        self, x: Array, initial_hidden_state: Array, w: Array, r: Array, b: Array | None = None
    ) -> Array:
        return kernels.advance(self.cell(w, r, b), x, initial_hidden_state)[0]


class LSTMCellBase(LSTM, Cell):
    """Base of the versions of LSTMCell."""

    initial_cell_state = Input(T_FLOAT, "[batch, hidden]")
    w = Input(T_FLOAT, "weights of x for the gates f, i, c, o, [4 * hidden, input]")
    r = Input(T_FLOAT, "weights of the hidden state, [4 * hidden, hidden]")
    b = Input(T_FLOAT, "biases, [4 * hidden]; none when absent", optional=True)
    co = Output(T_FLOAT, "the new cell state, [batch, hidden]")

    def infer(
        self,
        x: Value,
        initial_hidden_state: Value,
        initial_cell_state: Value,
        w: Value,
        r: Value,
        b: Value | None = None,
    ) -> tuple[PartialShape, ...]:
        return (self.state(x, initial_hidden_state, initial_cell_state, w, r, b),) * 2

    def evaluate(
        self,
        x: Array,
        initial_hidden_state: Array,
        initial_cell_state: Array,
        w: Array,
        r: Array,
        b: Array | None = None,
    ) -> tuple[Array, ...]:
        return kernels.advance(self.cell(w, r, b), x, initial_hidden_state, initial_cell_state)


@op("LSTMCell-4", spec="sequence/lstm-cell-1")
class LSTMCell4(LSTMCellBase):
    """One step of a long short-term memory: gates control what its cell state forgets, adds and outputs.

    OpenVINO does not read a layer without ``b``, which the page lets be absent.
    """


@op("LSTMCell-1")
class LSTMCell1(LSTMCellBase):
    """As version 4, with peepholes, coupled gates and other gate orders, which the page does not mention.

    OpenVINO's plugin reads and then ignores these three, its reference has no order but fico.
    """

    p = Input(
        T_FLOAT,
        "weights of the cell state for the gates f, i, o, [3 * hidden]; none when absent",
        optional=True,
        mixed=True,
    )

    input_forget: bool = attr(False, doc="take for the input gate what the forget gate leaves")
    weights_format: Literal["fico", "icof", "ifco", "ifoc", "iofc"] = attr(
        "fico", doc="the order of the gates in w, r and b"
    )

    def infer(
        self,
        x: Value,
        initial_hidden_state: Value,
        initial_cell_state: Value,
        w: Value,
        r: Value,
        b: Value | None = None,
        p: Value | None = None,
    ) -> tuple[PartialShape, ...]:
        return (self.state(x, initial_hidden_state, initial_cell_state, w, r, b, p),) * 2

    def evaluate(
        self,
        x: Array,
        initial_hidden_state: Array,
        initial_cell_state: Array,
        w: Array,
        r: Array,
        b: Array | None = None,
        p: Array | None = None,
    ) -> tuple[Array, ...]:
        w, r = self._reorder_gates(w), self._reorder_gates(r)
        cell = cast("kernels.LSTM", self.cell(w, r, None if b is None else self._reorder_gates(b)))
        peepholes = None if p is None else kernels.as_accumulator(p)
        cell = replace(cell, peepholes=peepholes, input_forget=self.input_forget)
        return kernels.advance(cell, x, initial_hidden_state, initial_cell_state)

    def _reorder_gates(self, weights: Array) -> Array:
        gates = weights.reshape(4, self.hidden_size, *weights.shape[1:])
        places = [self.weights_format.index(gate) for gate in "fico"]
        return np.asarray(gates[places].reshape(weights.shape))
