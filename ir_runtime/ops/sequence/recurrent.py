"""Recurrent networks (RNN, GRU, LSTM): cells that compute one step, and sequences that run a cell over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, TypeAlias, cast

import numpy as np

from ...errors import InferenceError, ValidationError
from ...ir.dimension import Dimension
from ...ir.formula import Count, product
from ...ir.operation import Operands, size
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, T_INDEX, Input, Op, Output, attr, op
from .._lengths import check_at_most, fit_axes
from ..kernels import recurrent as kernels

Function: TypeAlias = Literal["relu", "sigmoid", "tanh"]
Sizes: TypeAlias = Mapping[str, Dimension]

STEP = {
    "x": ("batch", "input"),
    "initial_hidden_state": ("batch", "hidden"),
    "initial_cell_state": ("batch", "hidden"),
    "w": ("gates", "input"),
    "r": ("gates", "hidden"),
    "b": ("biases",),
    "p": ("peepholes",),
}
SEQUENCE = {
    "x": ("batch", "time", "input"),
    "initial_hidden_state": ("batch", "directions", "hidden"),
    "initial_cell_state": ("batch", "directions", "hidden"),
    "sequence_lengths": ("batch",),
    "w": ("directions", "gates", "input"),
    "r": ("directions", "gates", "hidden"),
    "b": ("directions", "biases"),
}


class Recurrent(Op):
    """Base of recurrent cells and sequences, with the attributes common to all. A subclass declares its gates.

    OpenVINO derives the hidden size from shapes, and ignores ``hidden_size``. It uses as many ``activations`` as the
    cell has functions; models converted from bidirectional ONNX models have more.
    """

    flops_per_element = 0

    hidden_size: int = attr(gt=0, doc="length of the hidden state")
    activations: tuple[Function, ...] = attr((), doc="functions of the gates")
    activations_alpha: tuple[float, ...] = attr(
        (), doc="parameters of the functions; ignored, as no allowed function has any"
    )
    activations_beta: tuple[float, ...] = attr(
        (), doc="second parameters of the functions; ignored, as no allowed function has any"
    )
    clip: float = attr(
        0.0, ge=0, doc="gates are clipped to [-clip, clip] before activation; 0 for no clipping"
    )

    gates: ClassVar[int]

    def verify(self) -> None:
        """Require enough activation functions."""
        usual = self.schema()["activations"].default
        needed = len(usual) if isinstance(usual, tuple) else 0
        if len(self.activations) < needed:
            raise ValidationError(
                f"attribute 'activations' must name {needed} functions, not {len(self.activations)}: "
                f"{', '.join(self.activations)}",
                clause=f"attribute 'activations' names {needed} functions",
            )

    def sizes(self) -> dict[str, Dimension]:
        """Return the axis lengths that follow from the attributes, by the name of the axis."""
        return {
            "hidden": Dimension(self.hidden_size),
            "gates": Dimension(self.gates * self.hidden_size),
            "biases": Dimension(self.gates * self.hidden_size),
            "peepholes": Dimension(3 * self.hidden_size),
        }

    def fit(self, layout: Mapping[str, Sequence[str]], *values: Value | None) -> Sizes:
        """Return the length of every named axis, merged from the attributes and the inputs; raise if they differ."""
        lengths = self.sizes()
        for port, value in zip(self.inputs, values, strict=True):
            if value is not None:
                self._fit_port(port.name, layout[port.name], value.shape, lengths)
        return {name: lengths.get(name, Dimension()) for name in ("batch", "time", *lengths)}

    def _fit_port(
        self, name: str, axes: Sequence[str], shape: PartialShape, lengths: dict[str, Dimension]
    ) -> None:
        fixed = self.sizes()
        try:
            fit_axes(name, axes, shape, lengths)
        except InferenceError as reason:
            wrong = [
                a for a, d in zip(axes, shape, strict=False) if a in fixed and not d.compatible(fixed[a])
            ]
            hint = "; ".join(f"{axis} is {fixed[axis]}, {self.origin(axis)}" for axis in wrong)
            raise InferenceError(reason.message, hint=hint, clause=reason.clause) from None

    def origin(self, axis: str) -> str:
        """Describe the attribute that determines the length of an axis, for messages."""
        if axis == "hidden":
            return "attribute 'hidden_size'"
        return f"{self.sizes()[axis].min // self.hidden_size} times attribute 'hidden_size'"

    def cell(self, w: Array, r: Array, b: Array | None) -> kernels.Cell:
        """Return the kernel of the cell with the given weights."""
        raise NotImplementedError

    def macs(self, operands: Operands) -> Count:
        """Return one MAC for each weight, per step and batch entry."""
        lengths = dict(zip((port.name for port in self.inputs), operands.inputs, strict=False))
        return product(lengths["x"][:-1]) * (size(lengths["w"]) + size(lengths["r"]))

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of the products, and of the bias, activation and state update of each gate."""
        return 2 * self.macs(operands) + 3 * self.gates * operands.result


class RNN(Recurrent):
    """Base of RNNCell and RNNSequence, whose cell has one gate."""

    activations: tuple[Function, ...] = attr(("tanh",), doc="the function f of the gate")

    gates = 1

    def cell(self, w: Array, r: Array, b: Array | None) -> kernels.Cell:
        """Return the kernel of the cell with the given weights."""
        return kernels.RNN(*_wide(w, r, b), self.activations, self.clip)


class GRU(Recurrent):
    """Base of GRUCell and GRUSequence, whose cell has the gates z, r and h."""

    activations: tuple[Function, ...] = attr(
        ("sigmoid", "tanh"), doc="the functions f of the gates z and r, and g of h"
    )
    linear_before_reset: bool = attr(
        False,
        doc="whether the reset gate applies to the recurrent product, instead of to the hidden state; h then has two "
        "biases",
    )

    gates = 3

    def sizes(self) -> dict[str, Dimension]:
        """Return the axis lengths that follow from the attributes, by the name of the axis."""
        return super().sizes() | {"biases": Dimension((3 + self.linear_before_reset) * self.hidden_size)}

    def cell(self, w: Array, r: Array, b: Array | None) -> kernels.Cell:
        """Return the kernel of the cell with the given weights."""
        return kernels.GRU(*_wide(w, r, b), self.activations, self.clip, self.linear_before_reset)


class LSTM(Recurrent):
    """Base of LSTMCell and LSTMSequence, whose cell has the gates f, i, c and o, and a cell state."""

    activations: tuple[Function, ...] = attr(
        ("sigmoid", "tanh", "tanh"),
        doc="the functions f of the gates f, i and o, g of c, and h of the cell state",
    )

    gates = 4

    def cell(self, w: Array, r: Array, b: Array | None) -> kernels.Cell:
        """Return the kernel of the cell with the given weights."""
        return kernels.LSTM(*_wide(w, r, b), self.activations, self.clip)


def _wide(w: Array, r: Array, b: Array | None) -> tuple[Array, Array, Array | None]:
    return (
        kernels.as_accumulator(w),
        kernels.as_accumulator(r),
        None if b is None else kernels.as_accumulator(b),
    )


class RecurrentSequence(Recurrent):
    """Base of sequences, which run a cell over time in one or both directions.

    Outputs after the end of a sequence are 0, and so is the final state of an empty sequence. Sequence lengths that
    exceed ``x`` are refused; in OpenVINO, they make the final state 0.
    """

    decisions = (
        "beyond the length of a sequence outputs are 0, and the last state of an empty one is 0, as in OpenVINO's reference; the pages do not say",
    )

    x = Input(T_FLOAT, "[batch, time, input]")
    initial_hidden_state = Input(T_FLOAT, "[batch, directions, hidden]")
    y = Output(T_FLOAT, "the hidden state after each step, [batch, directions, time, hidden]")
    ho = Output(T_FLOAT, "the final hidden state, [batch, directions, hidden]")

    direction: Literal["forward", "reverse", "bidirectional"] = attr(
        default_with_warning="forward",
        doc="forward: from the first step to the last; reverse: from the last to the first; bidirectional: both, each "
        "with its own weights",
    )

    def sizes(self) -> dict[str, Dimension]:
        """Return the axis lengths that follow from the attributes, by the name of the axis."""
        return super().sizes() | {"directions": Dimension(len(self.passes()))}

    def origin(self, axis: str) -> str:
        """Describe the attribute that determines the length of an axis, for messages."""
        if axis == "directions":
            return f"as attribute 'direction' is {self.direction}"
        return super().origin(axis)

    def passes(self) -> tuple[bool, ...]:
        """Return whether each direction is reversed."""
        return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[self.direction]

    def infer_run(self, *values: Value) -> tuple[PartialShape, ...]:
        """Check the inputs; return the shapes of the hidden states of all steps and of the final states."""
        lengths = self.fit(SEQUENCE, *values)
        y = PartialShape([lengths[axis] for axis in ("batch", "directions", "time", "hidden")])
        last = PartialShape([lengths[axis] for axis in ("batch", "directions", "hidden")])
        check_at_most(values[-4], "sequence_lengths", lengths["time"], "the time of x")
        return (y,) + (last,) * (len(self.outputs) - 1)

    def run(
        self, x: Array, states: Sequence[Array], lengths: Array, w: Array, r: Array, b: Array
    ) -> tuple[Array, ...]:
        """Return the hidden states ``[batch, directions, time, hidden]`` and the final states."""
        check_at_most(Value.constant(lengths), "sequence_lengths", Dimension(x.shape[1]), "the time of x")
        lengths = lengths.astype(np.int64)
        runs = [
            kernels.unroll(
                self.cell(w[i], r[i], b[i]), x, tuple(state[:, i] for state in states), lengths, backwards
            )
            for i, backwards in enumerate(self.passes())
        ]
        return tuple(np.stack(states_over_runs, axis=1) for states_over_runs in zip(*runs, strict=True))


# Cells, which compute one step.


class Cell(Recurrent):
    """Base of cells, with the ports common to all."""

    x = Input(T_FLOAT, "[batch, input]")
    initial_hidden_state = Input(T_FLOAT, "[batch, hidden]")
    ho = Output(T_FLOAT, "the new hidden state, [batch, hidden]")

    def state(self, *values: Value | None) -> PartialShape:
        """Check the inputs, and return the shape of the new state."""
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

    OpenVINO does not read layers without ``b``, which is optional in the specification.
    """

    w = Input(T_FLOAT, "weights of x for the gates z, r, h, [3 * hidden, input]", mixed=True)
    r = Input(T_FLOAT, "weights of the hidden state, [3 * hidden, hidden]")
    b = Input(
        T_FLOAT,
        "biases, [3 * hidden], or [4 * hidden] with a second one for h if linear_before_reset is true; 0 if absent",
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
    b = Input(T_FLOAT, "biases, [4 * hidden]; 0 if absent", optional=True)
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
    """One step of a long short-term memory, whose gates control what the cell state forgets, adds and outputs.

    OpenVINO does not read layers without ``b``, which is optional in the specification.
    """


@op("LSTMCell-1")
class LSTMCell1(LSTMCellBase):
    """The same as version 4, with peepholes, coupled gates and other gate orders, which the specification lacks.

    OpenVINO's plugin accepts but ignores all three; its reference supports only the gate order fico.
    """

    p = Input(
        T_FLOAT,
        "peephole weights of the cell state for the gates f, i, o, [3 * hidden]; 0 if absent",
        optional=True,
        mixed=True,
    )

    input_forget: bool = attr(False, doc="whether the input gate is 1 minus the forget gate")
    weights_format: Literal["fico", "icof", "ifco", "ifoc", "iofc"] = attr(
        "fico", doc="order of the gates in w, r and b"
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
        order = [self.weights_format.index(gate) for gate in "fico"]
        return np.asarray(gates[order].reshape(weights.shape))


# Sequences, which run a cell over time.


class SingleStateSequence(RecurrentSequence):
    """Base of sequences of cells whose only state is the hidden state."""

    sequence_lengths = Input(T_INDEX, "number of steps of each sequence, [batch]")
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
        "biases of the gates z, r, h, [directions, 3 * hidden], or [directions, 4 * hidden] with a second one for h if "
        "linear_before_reset is true",
    )


@op("LSTMSequence-5")
class LSTMSequence(LSTM, RecurrentSequence):
    """Run a long short-term memory along the sequences in ``x``, each up to its own length."""

    initial_cell_state = Input(T_FLOAT, "[batch, directions, hidden]")
    sequence_lengths = Input(T_INDEX, "number of steps of each sequence, [batch]")
    w = Input(T_FLOAT, "weights of x for the gates f, i, c, o, [directions, 4 * hidden, input]")
    r = Input(T_FLOAT, "weights of the hidden state, [directions, 4 * hidden, hidden]")
    b = Input(T_FLOAT, "biases, [directions, 4 * hidden]")
    co = Output(T_FLOAT, "the final cell state, [batch, directions, hidden]")

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
