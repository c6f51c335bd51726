"""Recurrent networks (RNN, GRU, LSTM): cells, which compute one step, and sequences, which run a cell over time."""

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
    """Attributes of every recurrent cell. A family declares its gates.

    OpenVINO takes the hidden size from the shapes and ignores ``hidden_size``. It uses as many
    ``activations`` as the cell has functions; extra ones occur in bidirectional models converted from ONNX.
    """

    flops_per_element = 0

    hidden_size: int = attr(gt=0, doc="length of the hidden state")
    activations: tuple[Function, ...] = attr((), doc="functions of the gates")
    activations_alpha: tuple[float, ...] = attr(
        (), doc="parameters of the functions, which none of the functions allowed has"
    )
    activations_beta: tuple[float, ...] = attr(
        (), doc="more parameters of the functions, which none of the functions allowed has"
    )
    clip: float = attr(
        0.0, ge=0, doc="gates are kept within this of 0 before they are activated; 0: they are not"
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
        """Return the axis lengths that follow from attributes, by name."""
        return {
            "hidden": Dimension(self.hidden_size),
            "gates": Dimension(self.gates * self.hidden_size),
            "biases": Dimension(self.gates * self.hidden_size),
            "peepholes": Dimension(3 * self.hidden_size),
        }

    def fit(self, layout: Mapping[str, Sequence[str]], *values: Value | None) -> Sizes:
        """Return the length of every axis, merged with those of the inputs."""
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
        """Describe the attribute that determines an axis length."""
        if axis == "hidden":
            return "attribute 'hidden_size'"
        return f"{self.sizes()[axis].min // self.hidden_size} times attribute 'hidden_size'"

    def cell(self, w: Array, r: Array, b: Array | None) -> kernels.Cell:
        """Return the kernel with its weights."""
        raise NotImplementedError

    def macs(self, operands: Operands) -> Count:
        """Return one MAC for each weight and each element of each sequence."""
        lengths = dict(zip((port.name for port in self.inputs), operands.inputs, strict=False))
        return product(lengths["x"][:-1]) * (size(lengths["w"]) + size(lengths["r"]))

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of the products, and of bias, activation and state update for each gate."""
        return 2 * self.macs(operands) + 3 * self.gates * operands.result


class RNN(Recurrent):
    """Cells with one gate."""

    activations: tuple[Function, ...] = attr(("tanh",), doc="the function f of the gate")

    gates = 1

    def cell(self, w: Array, r: Array, b: Array | None) -> kernels.Cell:
        """Return the kernel with its weights."""
        return kernels.RNN(*_wide(w, r, b), self.activations, self.clip)


class GRU(Recurrent):
    """Cells with the gates z, r and h."""

    activations: tuple[Function, ...] = attr(
        ("sigmoid", "tanh"), doc="the functions f of the gates z and r, and g of h"
    )
    linear_before_reset: bool = attr(
        False,
        doc="reset the product of the hidden state and its weights, not that state; h has two biases then",
    )

    gates = 3

    def sizes(self) -> dict[str, Dimension]:
        """Return the axis lengths that follow from attributes, by name."""
        return super().sizes() | {"biases": Dimension((3 + self.linear_before_reset) * self.hidden_size)}

    def cell(self, w: Array, r: Array, b: Array | None) -> kernels.Cell:
        """Return the kernel with its weights."""
        return kernels.GRU(*_wide(w, r, b), self.activations, self.clip, self.linear_before_reset)


class LSTM(Recurrent):
    """Cells with the gates f, i, c and o, and a cell state in addition to the hidden one."""

    activations: tuple[Function, ...] = attr(
        ("sigmoid", "tanh", "tanh"),
        doc="the functions f of the gates f, i and o, g of c, and h of the cell state",
    )

    gates = 4

    def cell(self, w: Array, r: Array, b: Array | None) -> kernels.Cell:
        """Return the kernel with its weights."""
        return kernels.LSTM(*_wide(w, r, b), self.activations, self.clip)


def _wide(w: Array, r: Array, b: Array | None) -> tuple[Array, Array, Array | None]:
    return (
        kernels.as_accumulator(w),
        kernels.as_accumulator(r),
        None if b is None else kernels.as_accumulator(b),
    )


class RecurrentSequence(Recurrent):
    """A cell run over the time of sequences, in one or both directions, with the inputs common to all cells.

    After the end of a sequence, the output is 0, and so is the last state of an empty one. Lengths beyond
    that of ``x`` are refused here; in OpenVINO, they make the last state 0.
    """

    decisions = (
        "beyond the length of a sequence outputs are 0, and the last state of an empty one is 0, as in OpenVINO's reference; the pages do not say",
    )

    x = Input(T_FLOAT, "[batch, time, input]")
    initial_hidden_state = Input(T_FLOAT, "[batch, directions, hidden]")
    y = Output(T_FLOAT, "the hidden state after each element, [batch, directions, time, hidden]")
    ho = Output(T_FLOAT, "the last hidden state, [batch, directions, hidden]")

    direction: Literal["forward", "reverse", "bidirectional"] = attr(
        default_with_warning="forward",
        doc="forward: from the first element to the last; reverse: from the last to the first; "
        "bidirectional: both, with weights for each",
    )

    def sizes(self) -> dict[str, Dimension]:
        """Return the axis lengths that follow from attributes, by name."""
        return super().sizes() | {"directions": Dimension(len(self.passes()))}

    def origin(self, axis: str) -> str:
        """Describe the attribute that determines an axis length."""
        if axis == "directions":
            return f"as attribute 'direction' is {self.direction}"
        return super().origin(axis)

    def passes(self) -> tuple[bool, ...]:
        """Return, for each direction, whether it is reversed."""
        return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[self.direction]

    def infer_run(self, *values: Value) -> tuple[PartialShape, ...]:
        """Return the shapes of all hidden states and of the last states."""
        lengths = self.fit(SEQUENCE, *values)
        y = PartialShape([lengths[axis] for axis in ("batch", "directions", "time", "hidden")])
        last = PartialShape([lengths[axis] for axis in ("batch", "directions", "hidden")])
        check_at_most(values[-4], "sequence_lengths", lengths["time"], "the time of x")
        return (y,) + (last,) * (len(self.outputs) - 1)

    def run(
        self, x: Array, states: Sequence[Array], lengths: Array, w: Array, r: Array, b: Array
    ) -> tuple[Array, ...]:
        """Return all hidden states ``[batch, directions, time, hidden]`` and the last states."""
        check_at_most(Value.constant(lengths), "sequence_lengths", Dimension(x.shape[1]), "the time of x")
        lengths = lengths.astype(np.int64)
        runs = [
            kernels.unroll(
                self.cell(w[i], r[i], b[i]), x, tuple(state[:, i] for state in states), lengths, backwards
            )
            for i, backwards in enumerate(self.passes())
        ]
        return tuple(np.stack(states_over_runs, axis=1) for states_over_runs in zip(*runs, strict=True))


# Recurrent cells (RNN, GRU, LSTM), which compute one step.


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


# Recurrent sequences (RNN, GRU, LSTM), which run a cell over time.


class SingleStateSequence(RecurrentSequence):
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
class LSTMSequence(LSTM, RecurrentSequence):
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
