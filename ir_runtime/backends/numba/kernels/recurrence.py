"""RNN, GRU and LSTM cells and sequences: one matrix product for all inputs, then the steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.recurrent import GRU, LSTM, Recurrent
from ....ops.sequence.cells import GRUCell, LSTMCell1, LSTMCell4, RNNCell
from ....ops.sequence.recurrent import GRUSequence, LSTMSequence, RNNSequence
from ... import Kernel, named
from ...common.layout import is_f32
from ...common.recurrence import sigmoid_gates_first
from .._backend import backend
from ..codegen.vectors import LANES
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED
from ._activation_code import ActivationKind
from ._epilogue import Epilogue
from ._gemm import NO_OFFSET, Gemm
from ._gemm_tile import ROW_MULTIPLE, WIDE
from ._panels import PackedPanels
from ._products import BF16_PRODUCTS, WIDENED_PRODUCTS, Products, asked_products, few_row_products
from ._recurrent_cells import CellKind, StepsJob
from ._recurrent_steps import RUN_STEPS
from .contiguous import contiguous

__all__: list[str] = []

# Multiplications of a step from which on several threads are faster, in spite of a barrier after each step.
MIN_PARALLEL_WORK = 1 << 17

_ACTIVATIONS = {"relu": ActivationKind.CLAMP, "sigmoid": ActivationKind.SIGMOID, "tanh": ActivationKind.TANH}


@backend.accelerates(RNNSequence, GRUSequence, LSTMSequence)
def sequence(
    op: RNNSequence | GRUSequence | LSTMSequence, *inputs: Value, unread: Collection[int] = ()
) -> Kernel | None:
    """f32 with constant weights."""
    *varying, _, w, r, b = inputs
    if not is_f32(*varying) or (runner := _runner(op, op.passes(), varying[0], w, r, b)) is None:
        return None

    def kernel(*arrays: Array) -> tuple[Array, ...]:
        x, *states, lengths, _, _, _ = arrays
        takes = runner.takes(x, lengths, *states)
        return runner.run(x, lengths, *states) if takes else op.evaluate(*arrays)

    return named(kernel, runner.products.name)


@backend.accelerates(RNNCell, GRUCell, LSTMCell4, LSTMCell1)
def step(
    op: RNNCell | GRUCell | LSTMCell4 | LSTMCell1, *inputs: Value, unread: Collection[int] = ()
) -> Kernel | None:
    """Return a kernel for a cell, as a sequence of one step: f32 with constant weights and biases."""
    states = 2 if isinstance(op, LSTM) else 1
    if len(inputs) != 4 + states or not is_f32(*inputs[: 1 + states]):
        return None
    if isinstance(op, LSTMCell1) and (op.input_forget or op.weights_format != "fico"):
        return None
    w, r, b = (_with_direction(value) for value in inputs[1 + states :])
    if (runner := _runner(op, (False,), inputs[0], w, r, b)) is None:
        return None

    def kernel(x: Array, *others: Array) -> Array | tuple[Array, ...]:
        lengths, given = np.ones(len(x), np.int64), [array[:, None] for array in (x, *others[:states])]
        if not runner.takes(given[0], lengths, *given[1:]):
            return op.evaluate(x, *others)
        _, *found = runner.run(given[0], lengths, *given[1:])
        return found[0][:, 0] if states == 1 else (found[0][:, 0], found[1][:, 0])

    return named(kernel, runner.products.name)


def _with_direction(value: Value) -> Value:
    """Add an axis for one direction."""
    known = value.known()
    return value if known is None else Value.constant(known[None])


def _runner(op: Recurrent, passes: Sequence[bool], x: Value, w: Value, r: Value, b: Value) -> Runner | None:
    weights, recurrent, biases = w.known(), r.known(), b.known()
    if weights is None or recurrent is None or biases is None or not is_f32(w, r, b):
        return None
    if not (weights.size and recurrent.size) or weights.ndim != 3:
        return None
    return Runner.of(op, passes, x, weights, recurrent, biases)


def _kind(op: Recurrent) -> CellKind:
    if isinstance(op, GRU):
        return CellKind.GRU_AFTER if op.linear_before_reset else CellKind.GRU
    return CellKind.LSTM if isinstance(op, LSTM) else CellKind.RNN


@dataclass(frozen=True)
class Runner:
    """A cell with packed weights for all directions. Eleven fields: the cell, its packed weights, and their sizes."""

    kind: CellKind
    backwards: Array
    """For each direction, whether it goes from the end to the beginning."""
    inputs: Gemm
    rows_of_inputs: Callable[[Array], Array]
    recurrent: PackedPanels
    products: Products
    """How states are multiplied with ``recurrent``."""
    width: int
    """Numbers of an input."""
    gates: int
    hidden: int
    functions: tuple[ActivationKind, ...]
    clip: float

    @classmethod
    def of(cls, op: Recurrent, passes: Sequence[bool], x: Value, w: Array, r: Array, b: Array) -> Runner:
        """Pack ``w[directions, gates * hidden, input]``, ``r`` and ``b`` for inputs ``x[batch, ..., input]``."""
        directions, rows, inputs = w.shape
        hidden, kind = r.shape[-1], _kind(op)
        gates = rows // hidden
        later = np.zeros((directions, gates, hidden), np.float32)
        if kind is CellKind.GRU_AFTER:  # the bias of a product that is reset
            later[:, 2] = b[:, 3 * hidden :]
        given = _reorder_gates(w, kind, hidden).reshape(1, directions * rows, 1, inputs)
        bias = _reorder_gates(b[:, :rows], kind, hidden).reshape(-1)
        again = _reorder_gates(r, kind, hidden).reshape(directions * gates, hidden, 1, hidden)
        RUN_STEPS.prepare()
        first, products = _products_of(x, w, r)
        dense = Gemm(
            first.pack(given, None, bias),
            Epilogue(),
            directions * rows,
            1,
            first.words(inputs),
            UNUSED,
            first.task,
        )
        # There may be more: the second direction has the functions of the first.
        functions = tuple(_ACTIVATIONS[name] for name in op.activations[:3])
        return cls(
            kind, np.array(passes, np.int64), dense, first.rows_of(inputs),
            products.pack(again, None, later.reshape(-1)), products, inputs, gates, hidden, functions,
            op.clip if op.clip > 0 else math.inf,
        )  # fmt: skip

    def takes(self, x: Array, lengths: Array, *states: Array) -> bool:
        """Return whether the inputs are valid and not empty; the reference handles others."""
        expected = (len(x), len(self.backwards), self.hidden)
        if not x.size or x.shape[2] != self.width or lengths.shape != x.shape[:1]:
            return False
        if any(state.shape != expected for state in states):
            return False
        return bool((lengths >= 0).all() and (lengths <= x.shape[1]).all())

    def run(self, x: Array, lengths: Array, hidden: Array, cell: Array | None = None) -> tuple[Array, ...]:
        """Run over ``x[batch, time, input]`` from states ``[batch, directions, hidden]``."""
        batch, time, _ = x.shape
        directions, rows = len(self.backwards), batch * time
        lengths = np.ascontiguousarray(lengths, np.int64)
        whole = bool((lengths == time).all())
        given = np.empty(rows * directions * self.gates * self.hidden, np.float32)
        self.inputs.multiply(self.rows_of_inputs(contiguous(x)), given)
        shape = (batch, directions, time, self.hidden)
        y = np.empty(shape, np.float32) if whole else np.zeros(shape, np.float32)
        hidden = np.ascontiguousarray(hidden)
        states = () if cell is None else (np.array(cell, order="C"),)
        self._advance(y, given, hidden, states, lengths)
        found = (self._last(y, lengths), *states)
        if not whole:
            for state in found:
                state[lengths == 0] = 0
        return y, *found

    def _last(self, y: Array, lengths: Array) -> Array:
        """Return the hidden states after the last steps, ``[batch, directions, hidden]``."""
        ends = np.where(self.backwards, 0, np.maximum(lengths - 1, 0)[:, None])
        return np.asarray(y[np.arange(len(y))[:, None], np.arange(len(self.backwards)), ends])

    def _advance(
        self, y: Array, given: Array, hidden: Array, states: Sequence[Array], lengths: Array
    ) -> None:
        batch, directions, time, size = y.shape
        steps = int(lengths.max(initial=0))
        parts = len(self.recurrent) // (directions * self.gates)
        chunk = min(batch, ROW_MULTIPLE)
        chunks = -(-batch // chunk)
        units = directions * parts * chunks
        phases = 2 if self.kind is CellKind.GRU else 1
        work = batch * directions * self.gates * size * size
        count = min(threads(), units) if work >= MIN_PARALLEL_WORK else 1
        counters = np.zeros(steps * phases * (units + 1) if count > 1 else 1, np.int64)
        other = np.empty(hidden.size if phases == 2 else 1, np.float32)
        cell = states[0] if states else other
        f, g, h = (*self.functions, *[0] * 3)[:3]
        panels, depth = self.recurrent, self.products.words(size)
        job = StepsJob.fill(
            kind=self.kind, steps=steps, batch=batch, directions=directions, hidden=size, time=time, panels=parts,
            gates=self.gates, chunk=chunk, chunks=chunks, table=panels.table.ctypes.data,
            weights=panels.numbers.ctypes.data, bias=panels.bias.ctypes.data, lengths=lengths.ctypes.data,
            backwards=self.backwards.ctypes.data, hidden_states=hidden.ctypes.data, cell_states=cell.ctypes.data,
            reset_states=other.ctypes.data, tap_offset=NO_OFFSET.ctypes.data, phases=phases, activation_f=f,
            activation_g=g, activation_h=h, low=-self.clip, high=self.clip, units=units, threads=count,
            counters=counters.ctypes.data, depth=depth, in_bf16=self.products is BF16_PRODUCTS,
            widened=self.products is WIDENED_PRODUCTS,
            scratch_bytes=chunk * (8 + self.gates * 4 * LANES * WIDE + 8 + 4 * depth),
        )  # fmt: skip
        parallel_for(RUN_STEPS.address, job, y.reshape(-1), given, UNUSED, UNUSED, count)


def _products_of(x: Value, w: Array, r: Array) -> tuple[Products, Products]:
    """Return how all inputs are multiplied with weights, and how the states of each step are."""
    asked, shape = asked_products(), x.shape
    batch = int(shape[0]) if shape.rank and shape[0].is_static else None
    steps = math.prod(shape.static[1:-1]) if shape.is_static else None
    rows = None if batch is None or steps is None else batch * steps
    return (
        few_row_products(asked, rows, w.shape[-1], w.size),
        few_row_products(asked, batch, r.shape[-1], r.size),
    )


def _reorder_gates(array: Array, kind: CellKind, hidden: int) -> Array:
    """Return ``[directions, gates * hidden, ...]`` with the gates in the order of the kernel."""
    return sigmoid_gates_first(array, hidden, axis=1) if kind is CellKind.LSTM else array
