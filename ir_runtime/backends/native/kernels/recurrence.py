"""RNN, GRU and LSTM cells and sequences: one matrix product for all inputs, then the steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.recurrent import GRU, LSTM, Recurrent
from ....ops.sequence.cells import GRUCell, LSTMCell1, LSTMCell4, RNNCell
from ....ops.sequence.recurrent import GRUSequence, LSTMSequence, RNNSequence
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import is_f32
from ...common.recurrence import sigmoid_gates_first
from .._backend import backend
from ..codegen.descriptor import Job
from ..codegen.vectors import LANES
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.recording import workspace
from ..threading.task import UNUSED
from ._activation_code import ActivationKind
from ._copy import COPY, recorded_copy
from ._epilogue import Epilogue
from ._gemm import NO_OFFSET, Gemm
from ._gemm_tile import ROW_MULTIPLE, WIDE
from ._panels import PackedPanels
from ._products import BF16_PRODUCTS, WIDENED_PRODUCTS, Products, asked_products, few_row_products
from ._recurrent_cells import CellKind, StepsJob
from ._recurrent_steps import RUN_CELL, RUN_STEPS
from .contiguous import contiguous

__all__: list[str] = []

_ACTIVATIONS = {"relu": ActivationKind.CLAMP, "sigmoid": ActivationKind.SIGMOID, "tanh": ActivationKind.TANH}


@backend.accelerates(RNNSequence, GRUSequence, LSTMSequence)
def sequence(
    op: RNNSequence | GRUSequence | LSTMSequence, *inputs: Value, unread: Collection[int] = ()
) -> Kernel | None:
    """f32 with constant weights."""
    *varying, _, w, r, b = inputs
    if not is_f32(*varying) or (runner := _runner(op, op.passes(), varying[0], w, r, b)) is None:
        return None
    if len(runner.backwards) == 1 and varying[0].shape.rank and varying[0].shape[1] == 1:
        return _single_step(op, runner, len(varying))

    def kernel(*arrays: Array) -> tuple[Array, ...]:
        x, *states, lengths, _, _, _ = arrays
        takes = runner.takes(x, lengths, *states)
        return runner.run(x, lengths, *states) if takes else op.evaluate(*arrays)

    RUN_STEPS.prepare()
    return Kernel(kernel, name=runner.products.name)


def _single_step(op: RNNSequence | GRUSequence | LSTMSequence, runner: Runner, place: int) -> Kernel:
    """Return a kernel for sequences of one step, as of decoders; the input ``place`` is their lengths."""
    for task in (RUN_CELL, COPY):
        task.prepare()

    def kernel(*arrays: Array) -> tuple[Array, ...]:
        x, *states, lengths, _, _, _ = arrays
        if not (runner.takes(x, lengths, *states) and x.shape[1] == 1 and lengths.all()):
            return op.evaluate(*arrays)
        found = runner.step(x[:, 0], *[state[:, 0] for state in states])
        hidden, *cells = found if isinstance(found, tuple) else (found,)
        y = empty(hidden.shape, np.float32)
        if not recorded_copy(hidden, y):
            y[...] = hidden
        return y[:, None, None], hidden[:, None], *[cell[:, None] for cell in cells]

    return Kernel(kernel, name=runner.products.name, replay=replayed(contents=[place]))


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
        if not runner.takes_step(x, *others[:states]):
            return op.evaluate(x, *others)
        return runner.step(x, *others[:states])

    RUN_CELL.prepare()
    return Kernel(kernel, name=runner.products.name, replay=replayed())


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
    """A cell with packed weights for all directions."""

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
    _jobs: dict[tuple[int, int], Array] = field(default_factory=dict)

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
        given = empty(rows * directions * self.gates * self.hidden, np.float32)
        self.inputs.multiply(self.rows_of_inputs(contiguous(x)), given)
        shape = (batch, directions, time, self.hidden)
        y = empty(shape, np.float32) if whole else np.zeros(shape, np.float32)
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
        batch, _, time, _ = y.shape
        steps = int(lengths.max(initial=0))
        count, units = self._sharing(batch)
        counters = np.zeros(steps * self._phases * (units + 1) if count > 1 else 1, np.int64)
        other = empty(hidden.size if self._phases == 2 else 1, np.float32)
        cell = (states[0] if states else other).ctypes.data
        job = self._job(
            batch, count, units, steps=steps, time=time, lengths=lengths.ctypes.data, hidden_states=hidden.ctypes.data,
            cell_states=cell, cell_states_before=cell, reset_states=other.ctypes.data, counters=counters.ctypes.data,
        )  # fmt: skip
        parallel_for(RUN_STEPS.address, job, y.reshape(-1), given, UNUSED, UNUSED, count)

    def takes_step(self, x: Array, *states: Array) -> bool:
        """Return whether the inputs of one step ``[batch, ...]`` are valid and not empty."""
        expected = len(x), self.hidden
        return bool(x.size) and x.shape[1:] == (self.width,) and all(s.shape == expected for s in states)

    def step(self, x: Array, hidden: Array, cell: Array | None = None) -> Array | tuple[Array, ...]:
        """Run one step of ``x[batch, input]`` from states ``[batch, hidden]``; return the new ones."""
        batch, (count, units) = len(x), self._sharing(len(x))
        given = workspace(batch * self.gates * self.hidden)
        self.inputs.multiply(self.rows_of_inputs(contiguous(x)), given)
        y = empty((1 if cell is None else 2, batch, self.hidden), np.float32)
        before = UNUSED if cell is None else contiguous(cell)
        reset = workspace(y.size) if self._phases == 2 else UNUSED
        job = self._step_job(batch, count, units)
        parallel_for(RUN_CELL.address, job, y, given, contiguous(hidden), before, count, reset)
        return y[0] if cell is None else (y[0], y[1])

    def _step_job(self, batch: int, threads: int, units: int) -> Array:
        """Return the job of `RUN_CELL`, whose states are inputs of the call."""
        if (found := self._jobs.get((batch, threads))) is None:
            if len(self._jobs) >= 64:
                self._jobs.clear()
            lengths = np.ones(batch, np.int64)
            none = dict.fromkeys(
                ("hidden_states", "cell_states", "cell_states_before", "reset_states", "counters"), 0
            )
            job = self._job(batch, threads, units, steps=1, time=1, lengths=lengths.ctypes.data, **none)
            found = self._jobs[batch, threads] = Job.of(job, lengths)
        return found

    @property
    def _phases(self) -> int:
        """How many products of states a step has, each of which needs the one before."""
        return 2 if self.kind is CellKind.GRU else 1

    def _sharing(self, batch: int) -> tuple[int, int]:
        """Return the threads and units of a step."""
        directions = len(self.backwards)
        units = len(self.recurrent) // self.gates * -(-batch // ROW_MULTIPLE)
        work = batch * directions * self.gates * self.hidden * self.hidden
        return min(threads_for(computed=work), units), units

    def _job(self, batch: int, threads: int, units: int, **others: int) -> Array:
        """Return a job; ``others`` are its fields that depend on the inputs."""
        directions, panels, depth = len(self.backwards), self.recurrent, self.products.words(self.hidden)
        chunk = min(batch, ROW_MULTIPLE)
        f, g, h = (*self.functions, *[0] * 3)[:3]
        return StepsJob.fill(
            kind=self.kind, batch=batch, directions=directions, hidden=self.hidden,
            panels=len(panels) // (directions * self.gates), gates=self.gates, chunk=chunk, chunks=-(-batch // chunk),
            table=panels.table.ctypes.data, weights=panels.numbers.ctypes.data, bias=panels.bias.ctypes.data,
            backwards=self.backwards.ctypes.data, tap_offset=NO_OFFSET.ctypes.data, phases=self._phases,
            activation_f=f, activation_g=g, activation_h=h, low=-self.clip, high=self.clip, units=units,
            threads=threads, depth=depth, in_bf16=self.products is BF16_PRODUCTS,
            widened=self.products is WIDENED_PRODUCTS,
            scratch_bytes=chunk * (8 + self.gates * 4 * LANES * WIDE + 8 + 4 * depth), **others,
        )  # fmt: skip


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
