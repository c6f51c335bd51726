"""Recurrent sequences (RNN, GRU, LSTM), which run a cell over time."""

from __future__ import annotations

from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, T_INDEX, Input, Output, op
from ..recurrent import GRU, LSTM, RNN, RecurrentSequence


class Sequence(RecurrentSequence):
    """The inputs common to sequences of all cells.

    After the end of a sequence, the output is 0, and so is the last state of an empty one. Lengths beyond
    that of ``x`` are refused here; in OpenVINO, they make the last state 0.
    """

    x = Input(T_FLOAT, "[batch, time, input]")
    initial_hidden_state = Input(T_FLOAT, "[batch, directions, hidden]")
    y = Output(T_FLOAT, "the hidden state after each element, [batch, directions, time, hidden]")
    ho = Output(T_FLOAT, "the last hidden state, [batch, directions, hidden]")


class SingleStateSequence(Sequence):
    """Sequences of cells with only a hidden state."""

    sequence_lengths = Input(T_INDEX, "how many elements each sequence has, [batch]")
    w = Input(T_FLOAT, "weights of x for all gates, [directions, gates * hidden, input]")
    r = Input(T_FLOAT, "weights of the hidden state, [directions, gates * hidden, hidden]")
    b = Input(T_FLOAT, "biases, [directions, gates * hidden]")

    def infer(
        self, x: Value, initial_hidden_state: Value, sequence_lengths: Value, w: Value, r: Value, b: Value
    ) -> tuple[PartialShape, ...]:
        return self.infer_run(x, initial_hidden_state, sequence_lengths, w, r, b)

    def evaluate(
        self, x: Array, initial_hidden_state: Array, sequence_lengths: Array, w: Array, r: Array, b: Array
    ) -> tuple[Array, ...]:
        return self.run(x, [initial_hidden_state], sequence_lengths, w, r, b)


@op("RNNSequence-5")
class RNNSequence(RNN, SingleStateSequence):
    """Run a plain recurrent cell along the sequences in ``x``, each up to its own length."""


@op("GRUSequence-5")
class GRUSequence(GRU, SingleStateSequence):
    """Run a gated recurrent unit along the sequences in ``x``, each up to its own length."""

    b = Input(
        T_FLOAT,
        "biases of the gates z, r, h, [directions, 3 * hidden]; with linear_before_reset one more for h, "
        "[directions, 4 * hidden]",
    )


@op("LSTMSequence-5")
class LSTMSequence(LSTM, Sequence):
    """Run a long short-term memory along the sequences in ``x``, each up to its own length."""

    initial_cell_state = Input(T_FLOAT, "[batch, directions, hidden]")
    sequence_lengths = Input(T_INDEX, "how many elements each sequence has, [batch]")
    w = Input(T_FLOAT, "weights of x for the gates f, i, c, o, [directions, 4 * hidden, input]")
    r = Input(T_FLOAT, "weights of the hidden state, [directions, 4 * hidden, hidden]")
    b = Input(T_FLOAT, "biases, [directions, 4 * hidden]")
    co = Output(T_FLOAT, "the last cell state, [batch, directions, hidden]")

    def infer(
        self,
        x: Value,
        initial_hidden_state: Value,
        initial_cell_state: Value,
        sequence_lengths: Value,
        w: Value,
        r: Value,
        b: Value,
    ) -> tuple[PartialShape, ...]:
        return self.infer_run(x, initial_hidden_state, initial_cell_state, sequence_lengths, w, r, b)

    def evaluate(
        self,
        x: Array,
        initial_hidden_state: Array,
        initial_cell_state: Array,
        sequence_lengths: Array,
        w: Array,
        r: Array,
        b: Array,
    ) -> tuple[Array, ...]:
        return self.run(x, [initial_hidden_state, initial_cell_state], sequence_lengths, w, r, b)
