"""RNN, GRU and LSTM cells and sequences: one matrix product for all inputs, then all steps in one call.

A work unit is a range of hidden-state columns, with all their gates, for a chunk of the batch. In every step, each
thread starts with the same units, so that their weights stay in its cache, and then takes remaining units; a
barrier ends the step. The hidden states that a step reads are rows of the result. LSTM gates are in the order
f, i, o, c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.sequence.recurrent import (
    GRU,
    LSTM,
    GRUCell,
    GRUSequence,
    LSTMCell1,
    LSTMCell4,
    LSTMSequence,
    Recurrent,
    RNNCell,
    RNNSequence,
)
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import is_f32, sigmoid_gates_first
from .._backend import backend
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import Instruction, device, instruction, types
from ..codegen.memory import barrier, fetch_add, load_atomic, load_i64, scratch_memory, store_i64
from ..codegen.vectors import LANES, Emit
from ..codegen.vectors import Value as Register
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for, workspace
from ..threading.task import UNUSED, Task, each_counted, each_unit, failure_word, shared_counters
from ._copy import COPY, contiguous, copy_if_recording
from ._elementwise_code import ActivationKind, apply_activation
from ._epilogue import Epilogue
from ._gemm import NO_OFFSET, Gemm
from ._gemm_kernel import BF16_PRODUCTS, WIDENED_PRODUCTS, Products, few_row_products, requested_products
from ._gemm_tile import ROW_MULTIPLE, WIDE, bf16_panel, gemm_panel, round_row, widened_panel
from ._panels import PackedPanels, Panel

__all__ = ["StepsJob", "run_cell", "run_steps"]


def _row_instruction(count: int, function: Callable[..., Register]) -> Instruction:
    """Return an instruction ``(out, *rows, length, low, high)`` that applies a function to ``count`` rows element-wise."""

    def write(emit: Emit, out: Register, *arguments: Register) -> None:
        rows, (length, low, high) = arguments[:count], arguments[count:]
        bounds = emit.splat(low), emit.splat(high)

        for offset, load, store in emit.vectors(length):
            value = function(emit, *(load(emit.at(row, offset)) for row in rows), *bounds)
            store(value, emit.at(out, offset))

    write.__name__ = function.__name__
    return instruction(*[types.int64] * (count + 2), types.float32, types.float32)(write)


def _clamp(emit: Emit, x: Register, low: Register, high: Register) -> Register:
    return emit.minimum(emit.maximum(x, low), high)


def _add(emit: Emit, a: Register, b: Register, low: Register, high: Register) -> Register:
    """Compute ``clamp(a + b)``."""
    return _clamp(emit, emit.add(a, b), low, high)


def _add_scaled(emit: Emit, a: Register, b: Register, c: Register, low: Register, high: Register) -> Register:
    """Compute ``clamp(a + b * c)``."""
    return _clamp(emit, emit.add(a, emit.multiply(b, c)), low, high)


def _multiply(emit: Emit, a: Register, b: Register, low: Register, high: Register) -> Register:
    return emit.multiply(a, b)


def _interpolate(
    emit: Emit, part: Register, new: Register, old: Register, low: Register, high: Register
) -> Register:
    """Compute ``(1 - part) * new + part * old``."""
    one = emit.constant(1)
    return emit.add(emit.multiply(emit.subtract(one, part), new), emit.multiply(part, old))


def _lstm_cell_state(
    emit: Emit, forget: Register, old: Register, take: Register, new: Register, low: Register, high: Register
) -> Register:
    return emit.add(emit.multiply(forget, old), emit.multiply(take, new))


def _identity(emit: Emit, x: Register, low: Register, high: Register) -> Register:
    return x


add_rows, add_scaled_rows = _row_instruction(2, _add), _row_instruction(3, _add_scaled)
multiply_rows, copy_rows = _row_instruction(2, _multiply), _row_instruction(1, _identity)
interpolate_rows, update_cell_state = (
    _row_instruction(3, _interpolate),
    _row_instruction(4, _lstm_cell_state),
)


_INFINITY = np.float32(np.inf)


class StepsJob(Descriptor):
    """Parameters of `run_steps` and `run_cell`.

    Sizes: ``steps`` of the longest sequence, ``batch`` entries, ``directions``, ``hidden`` columns of a state, ``time`` steps of
    the result, and ``gates``. A work unit computes a panel of columns for ``chunk`` batch entries: there are ``panels`` for each
    gate and direction, ``chunks`` along the batch, and ``units`` in each of the ``phases`` (dependent products) of a step.

    Addresses: ``table`` of panels, packed ``weights`` and ``bias``, the ``lengths`` of sequences, the ``backwards`` flag of each
    direction, initial ``hidden_states``, ``cell_states`` to write and those before the step, ``reset_states`` of a GRU, and the
    ``counters`` of claimed and finished units.

    Rows of states are multiplied as ``depth`` words, rounded if ``in_bf16``; ``widened`` weights are bf16, with f32 states.
    """

    kind: i64
    steps: i64
    batch: i64
    directions: i64
    hidden: i64
    time: i64
    panels: i64
    gates: i64
    chunk: i64
    chunks: i64
    table: i64
    weights: i64
    bias: i64
    lengths: i64
    backwards: i64
    hidden_states: i64
    cell_states: i64
    cell_states_before: i64
    reset_states: i64
    tap_offset: i64
    phases: i64
    activation_f: i64
    activation_g: i64
    activation_h: i64
    low: f32
    high: f32
    units: i64
    threads: i64
    counters: i64
    depth: i64
    in_bf16: i64
    widened: i64
    scratch_bytes: i64


class CellKind(IntEnum):
    """The kind of cell; `GRU` applies the reset gate before the product of state and weights, `GRU_AFTER` after it."""

    RNN = 0
    GRU = 1
    GRU_AFTER = 2
    LSTM = 3


@device
def _activate(address: int, count: int, kind: int) -> None:
    """Apply an activation in place; ReLU is a clamp to [0, inf]."""
    apply_activation(address, 0, 1, count, kind, np.float32(0), _INFINITY)


@device
def rnn_row(job: StepsJob, gates: int, span: int, inputs: int, size: int, count: int, y: int) -> None:
    """Compute the state of an RNN; ``gates`` and ``inputs`` are the products of the previous state and of the inputs.

    The other arguments are as in `lstm_row`.
    """
    add_rows(y, gates, inputs, count, job.low, job.high)
    _activate(y, count, job.activation_f)


@device
def lstm_row(  # noqa: PLR0913 (values in registers)
    job: StepsJob, gates: int, span: int, inputs: int, size: int, count: int, y: int, cell: int, before: int
) -> None:  # fmt: skip
    """Compute columns of the hidden and the cell state of an LSTM for one batch entry.

    Args:
        job: the parameters.
        gates: the address of the products of the previous hidden state, which are overwritten.
        span: the bytes between the gates of these products.
        inputs: the address of the products of the inputs.
        size: the bytes between the gates of these products.
        count: the number of columns.
        y: the address of the hidden state.
        cell: the address of the cell state.
        before: the address of the previous cell state.
    """
    low, high = job.low, job.high
    for gate in range(4):
        add_rows(gates + gate * span, gates + gate * span, inputs + gate * size, count, low, high)
    for gate in range(3):
        _activate(gates + gate * span, count, job.activation_f)
    forget, input_gate, output_gate, candidate = gates, gates + span, gates + 2 * span, gates + 3 * span
    _activate(candidate, count, job.activation_g)
    update_cell_state(cell, forget, before, input_gate, candidate, count, low, high)
    copy_rows(candidate, cell, count, low, high)
    _activate(candidate, count, job.activation_h)
    multiply_rows(y, output_gate, candidate, count, low, high)


@device
def gru_gates_row(job: StepsJob, gates: int, span: int, inputs: int, size: int, count: int) -> None:
    """Compute the update and reset gates, which overwrite the products of the inputs; arguments are as in `lstm_row`."""
    for gate in range(2):
        target = inputs + gate * size
        add_rows(target, gates + gate * span, target, count, job.low, job.high)
        _activate(target, count, job.activation_f)


@device
def gru_state_row(job: StepsJob, new: int, update: int, size: int, count: int, y: int, old: int) -> None:
    """Compute the state ``y`` of a GRU from its update gate, the sums ``new`` of its candidate state, and its previous state."""
    _activate(new, count, job.activation_g)
    interpolate_rows(y, update, new, old, count, _INFINITY, _INFINITY)


@device
def _state_addresses(
    job: StepsJob, y: int, step: int, phase: int, direction: int, first: int, rows: int, table: int
) -> None:
    """Store the addresses of the states to multiply at ``table``: previous, initial, or reset states.

    These are the states of ``rows`` batch entries from entry ``first`` on.
    """
    directions, hidden, time = job.directions, job.hidden, job.time
    size, backwards = 4 * hidden, load_i64(job.backwards, direction)
    for r in range(rows):
        entry = first + r
        length = load_i64(job.lengths, entry)
        before = length - step if backwards != 0 else step - 1
        at = y + ((entry * directions + direction) * time + before) * size
        if phase == 1:
            at = job.reset_states + (entry * directions + direction) * size
        elif step == 0 or step >= length:
            at = job.hidden_states + (entry * directions + direction) * size
        store_i64(table, r, at)


@device
def _round_states(job: StepsJob, rows: int, table: int, rounded: int) -> int:
    """Round the states at the addresses in ``table`` to bf16, and store them at ``rounded``, after a table of their addresses.

    Returns the address of that table.
    """
    depth, hidden = job.depth, job.hidden
    for r in range(rows):
        at = rounded + 8 * job.chunk + 4 * depth * r
        round_row(load_i64(table, r), hidden, at, 2 * depth)
        store_i64(rounded, r, at)
    return rounded


@device
def _multiply_states(job: StepsJob, phase: int, first: Panel, rows: int, table: int, gates: int) -> None:
    """Multiply ``rows`` states, whose addresses are in ``table``, by the weights of the gates of a phase.

    ``first`` is the `Panel` of the first gate; the products are stored at ``gates``.
    """
    total, parts, vectors, last = job.gates, job.panels, first.vectors, first.last_columns
    span = 4 * LANES * vectors
    stride = total * span
    at_once = 4 if rows == 8 else rows  # two tiles of 4 rows instead of 6 and 2
    lowest = 2 * phase
    highest = 2 if job.kind == 1 and phase == 0 else total
    for gate in range(lowest, highest):
        entry = Panel.at(first + 8 * Panel.words * gate * parts)
        panel, bias, out = job.weights + entry.start, job.bias + entry.bias, gates + gate * span
        for begin in range(0, rows, at_once):
            count, places, target = min(at_once, rows - begin), table + 8 * begin, out + begin * stride
            if job.widened != 0:
                widened_panel(
                    vectors, count, places, 0, 0, job.tap_offset, 1, job.depth,
                    panel, target, stride, bias, 0, 0, last, -_INFINITY, _INFINITY,
                )  # fmt: skip
            elif job.in_bf16 != 0:
                bf16_panel(
                    vectors, count, places, 0, 0, job.tap_offset, 1, job.depth,
                    panel, target, stride, bias, 0, 0, last, -_INFINITY, _INFINITY, 0, 0,
                )  # fmt: skip
            else:
                gemm_panel(
                    vectors, count, places, 0, 0, job.tap_offset, 1, job.depth,
                    panel, target, stride, bias, 0, 0, last, -_INFINITY, _INFINITY,
                )  # fmt: skip


@device
def _finish_row(  # noqa: PLR0913 (values in registers)
    job: StepsJob, y: int, x: int, step: int, phase: int, direction: int, entry: int, gates: int, span: int, count: int,
    column: int, old: int,
) -> None:  # fmt: skip
    """Compute columns of the state of a batch entry after a phase of a step from its gate products.

    In the first phase of `CellKind.GRU`, these are columns of the reset state.

    Args:
        job: the parameters.
        y: the address of the result of `run_steps`.
        x: the address of the products of the inputs.
        step: the index of the step.
        phase: the index of the phase.
        direction: the index of the direction.
        entry: the index of the batch entry.
        gates: the address of the products of the state.
        span: the bytes between the gates of these products.
        count: the number of columns.
        column: the byte offset of the first column in a state.
        old: the address of these columns of the state that was multiplied.
    """
    kind, directions, hidden = job.kind, job.directions, job.hidden
    time, total, length = job.time, job.gates, load_i64(job.lengths, entry)
    backwards, size = load_i64(job.backwards, direction), 4 * hidden
    low, high = job.low, job.high
    now = length - 1 - step if backwards != 0 else step
    inputs = x + ((entry * time + now) * directions + direction) * total * size + column
    place = entry * directions + direction
    out, state, inner = y + (place * time + now) * size + column, place * size + column, gates + 2 * span
    if kind == 3:
        before = job.cell_states_before + state
        cell = job.cell_states + state
        lstm_row(job, gates, span, inputs, size, count, out, cell, before)
    elif kind == 0:
        rnn_row(job, gates, span, inputs, size, count, out)
    elif kind == 2:
        gru_gates_row(job, gates, span, inputs, size, count)
        add_scaled_rows(inner, inputs + 2 * size, inputs + size, inner, count, low, high)
        gru_state_row(job, inner, inputs, size, count, out, old)
    elif phase == 0:
        gru_gates_row(job, gates, span, inputs, size, count)
        multiply_rows(job.reset_states + state, inputs + size, old, count, _INFINITY, _INFINITY)
    else:
        add_rows(inner, inner, inputs + 2 * size, count, low, high)
        previous = now + 1 if backwards != 0 else now - 1
        old = job.hidden_states + state if step == 0 else y + (place * time + previous) * size + column
        gru_state_row(job, inner, inputs, size, count, out, old)


@device
def _compute_unit(job: StepsJob, y: int, x: int, step: int, phase: int, unit: int, table: int) -> None:
    """Compute a unit: columns of the state after a step, or, in the first phase of `CellKind.GRU`, of the reset state."""
    parts, total, chunk, chunks = job.panels, job.gates, job.chunk, job.chunks
    place, part_of_batch = unit // chunks, unit % chunks
    direction, part = place // parts, place % parts
    first = part_of_batch * chunk
    rows = min(chunk, job.batch - first)
    panel = Panel.at(job.table, (direction * total * parts + part))
    span, count = 4 * LANES * panel.vectors, (panel.vectors - 1) * LANES + panel.last_columns
    column = 4 * (panel.column - direction * total * job.hidden)
    gates = table + 8 * chunk
    _state_addresses(job, y, step, phase, direction, first, rows, table)
    places = table
    if job.in_bf16 != 0:
        places = _round_states(job, rows, table, gates + chunk * total * 4 * LANES * WIDE)
    _multiply_states(job, phase, panel, rows, places, gates)
    for r in range(rows):
        if step < load_i64(job.lengths, first + r):
            _finish_row(
                job, y, x, step, phase, direction, first + r, gates + r * total * span, span, count, column,
                load_i64(table, r) + column,
            )  # fmt: skip


@Task
def run_steps(call: int, job: StepsJob, y: int, x: int) -> None:
    """Run all steps of all sequences.

    A is the product of inputs and gate weights, ``[batch, time, directions, gate, hidden]``, which may be
    overwritten; the result is ``[batch, directions, time, hidden]``.
    """
    counter = shared_counters(call)
    phases, units, threads, done = job.phases, job.units, job.threads, job.counters
    table = scratch_memory(job.scratch_bytes)
    home = fetch_add(counter) * units // threads
    for turn in range(job.steps * phases):
        step, phase = turn // phases, turn % phases
        counted = done + 8 * turn * (units + 1)
        if threads > 1 and load_atomic(counted) == units:
            continue
        for index in range(units):
            unit = (home + index) % units
            claimed = counted + 8 * (unit + 1)
            if threads == 1:
                _compute_unit(job, y, x, step, phase, unit, table)
            elif load_atomic(claimed) == 0 and fetch_add(claimed) == 0:
                _compute_unit(job, y, x, step, phase, unit, table)
                fetch_add(counted)
        if threads > 1:
            barrier(counted, units, failure_word(call))


@Task
def run_cell(call: int, job: StepsJob, y: int, x: int, hidden: int, cells: int, reset: int) -> None:
    """Run one step from hidden states B and cell states C; D is memory for reset states.

    A is as in `run_steps`; the result is the new hidden states, followed by the cell states of an LSTM.
    """
    counter = shared_counters(call)
    own = StepsJob.at(scratch_memory(8 * StepsJob.words + job.scratch_bytes))
    for index in range(StepsJob.words):
        store_i64(own, index, load_i64(job, index))
    store_i64(own, StepsJob.hidden_states, hidden)
    store_i64(own, StepsJob.cell_states_before, cells)
    states = job.batch * job.hidden
    store_i64(own, StepsJob.cell_states, y + 4 * states)
    store_i64(own, StepsJob.reset_states, reset)
    table, units = own + 8 * StepsJob.words, job.units
    phases = job.phases
    for unit in each_unit(call, units):
        _compute_unit(own, y, x, 0, 0, unit, table)
        if phases > 1:
            fetch_add(counter + 8)
    if phases > 1:
        barrier(counter + 8, units, failure_word(call))
        for unit in each_counted(counter + 16, units):
            _compute_unit(own, y, x, 0, 1, unit, table)


_ACTIVATIONS = {"relu": ActivationKind.CLAMP, "sigmoid": ActivationKind.SIGMOID, "tanh": ActivationKind.TANH}


@backend.accelerates(RNNSequence, GRUSequence, LSTMSequence)
def sequence(
    op: RNNSequence | GRUSequence | LSTMSequence, *inputs: Value, unread: Collection[int] = ()
) -> Kernel | None:
    """Return an RNN, GRU or LSTM kernel for f32 sequences with constant weights."""
    *varying, _, w, r, b = inputs
    if not is_f32(*varying) or (runner := _runner(op, op.passes(), varying[0], w, r, b)) is None:
        return None
    if len(runner.backwards) == 1 and varying[0].shape.rank and varying[0].shape[1] == 1:
        return _single_step(op, runner, len(varying))

    def kernel(*arrays: Array) -> tuple[Array, ...]:
        x, *states, lengths, _, _, _ = arrays
        takes = runner.takes(x, lengths, *states)
        return runner.run(x, lengths, *states) if takes else op.evaluate(*arrays)

    run_steps.prepare()
    return Kernel(kernel, name=runner.products.name)


def _single_step(op: RNNSequence | GRUSequence | LSTMSequence, runner: Runner, place: int) -> Kernel:
    """Return a kernel for sequences of one step, as in decoders; input ``place`` holds the sequence lengths."""
    for task in (run_cell, COPY):
        task.prepare()

    def kernel(*arrays: Array) -> tuple[Array, ...]:
        x, *states, lengths, _, _, _ = arrays
        if not (runner.takes(x, lengths, *states) and x.shape[1] == 1 and lengths.all()):
            return op.evaluate(*arrays)
        after = runner.step(x[:, 0], *[state[:, 0] for state in states])
        hidden, *cells = after if isinstance(after, tuple) else (after,)
        y = empty(hidden.shape, np.float32)
        if not copy_if_recording(hidden, y):
            y[...] = hidden
        return y[:, None, None], hidden[:, None], *[cell[:, None] for cell in cells]

    return Kernel(kernel, name=runner.products.name, replay=replayed(contents=[place]))


@backend.accelerates(RNNCell, GRUCell, LSTMCell4, LSTMCell1)
def step(
    op: RNNCell | GRUCell | LSTMCell4 | LSTMCell1, *inputs: Value, unread: Collection[int] = ()
) -> Kernel | None:
    """Return an RNN, GRU or LSTM cell kernel for f32 with constant weights and biases."""
    states = 2 if isinstance(op, LSTM) else 1
    if len(inputs) != 4 + states or not is_f32(*inputs[: 1 + states]):
        return None
    if isinstance(op, LSTMCell1) and (op.input_forget or op.weights_format != "fico"):
        return None
    w, r, b = (_add_direction(value) for value in inputs[1 + states :])
    if (runner := _runner(op, (False,), inputs[0], w, r, b)) is None:
        return None

    def kernel(x: Array, *others: Array) -> Array | tuple[Array, ...]:
        if not runner.takes_step(x, *others[:states]):
            return op.evaluate(x, *others)
        return runner.step(x, *others[:states])

    run_cell.prepare()
    return Kernel(kernel, name=runner.products.name, replay=replayed())


def _add_direction(value: Value) -> Value:
    """Insert a leading direction axis into a constant."""
    constant = value.known()
    return value if constant is None else Value.constant(constant[None])


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
    """Whether each direction is reversed."""
    inputs: Gemm
    rows_of_inputs: Callable[[Array], Array]
    recurrent: PackedPanels
    products: Products
    """The precision of the products of states with ``recurrent``."""
    width: int
    """The length of an input."""
    gates: int
    hidden: int
    functions: tuple[ActivationKind, ...]
    clip: float
    _jobs: dict[tuple[int, int], Array] = field(default_factory=dict)

    @classmethod
    def of(cls, op: Recurrent, passes: Sequence[bool], x: Value, w: Array, r: Array, b: Array) -> Runner:
        """Pack ``w[directions, gates * hidden, input]``, ``r`` and ``b`` for inputs ``x[batch, ..., input]``.

        ``passes`` says for each direction whether it is reversed.
        """
        directions, rows, inputs = w.shape
        hidden, kind = r.shape[-1], _kind(op)
        gates = rows // hidden
        later = np.zeros((directions, gates, hidden), np.float32)
        if kind is CellKind.GRU_AFTER:  # the bias of the product that the reset gate multiplies
            later[:, 2] = b[:, 3 * hidden :]
        input_weights = _reorder_gates(w, kind, hidden).reshape(1, directions * rows, 1, inputs)
        bias = _reorder_gates(b[:, :rows], kind, hidden).reshape(-1)
        state_weights = _reorder_gates(r, kind, hidden).reshape(directions * gates, hidden, 1, hidden)
        first, products = _choose_products(x, w, r)
        dense = Gemm(
            first.pack(input_weights, None, bias), Epilogue(), directions * rows, 1, first.words(inputs), UNUSED,
            first.task,
        )  # fmt: skip
        # Further names are those of the second direction, which has the activations of the first.
        functions = tuple(_ACTIVATIONS[name] for name in op.activations[:3])
        return cls(
            kind, np.array(passes, np.int64), dense, first.rows_of(inputs),
            products.pack(state_weights, None, later.reshape(-1)), products, inputs, gates, hidden, functions,
            op.clip if op.clip > 0 else math.inf,
        )  # fmt: skip

    def takes(self, x: Array, lengths: Array, *states: Array) -> bool:
        """Return whether inputs are valid and nonempty; others are left to the reference."""
        expected = len(x), len(self.backwards), self.hidden
        if not x.size or x.shape[2] != self.width or lengths.shape != x.shape[:1]:
            return False
        if any(state.shape != expected for state in states):
            return False
        return bool((lengths >= 0).all() and (lengths <= x.shape[1]).all())

    def run(self, x: Array, lengths: Array, hidden: Array, cell: Array | None = None) -> tuple[Array, ...]:
        """Run all steps of ``x[batch, time, input]`` from states ``[batch, directions, hidden]``.

        Returns the hidden states of all steps, and the states after the last step.
        """
        batch, time, _ = x.shape
        directions, rows = len(self.backwards), batch * time
        lengths = np.ascontiguousarray(lengths, np.int64)
        whole = bool((lengths == time).all())
        products = empty(rows * directions * self.gates * self.hidden, np.float32)
        self.inputs.multiply(self.rows_of_inputs(contiguous(x)), products)
        shape = batch, directions, time, self.hidden
        y = empty(shape, np.float32) if whole else np.zeros(shape, np.float32)
        hidden = np.ascontiguousarray(hidden)
        states = () if cell is None else (np.array(cell, order="C"),)
        self._advance(y, products, hidden, states, lengths)
        final = (self._last(y, lengths), *states)
        if not whole:
            for state in final:
                state[lengths == 0] = 0
        return y, *final

    def _last(self, y: Array, lengths: Array) -> Array:
        """Return the hidden states after the last steps, ``[batch, directions, hidden]``."""
        ends = np.where(self.backwards, 0, np.maximum(lengths - 1, 0)[:, None])
        return np.asarray(y[np.arange(len(y))[:, None], np.arange(len(self.backwards)), ends])

    def _advance(
        self, y: Array, products: Array, hidden: Array, states: Sequence[Array], lengths: Array
    ) -> None:
        batch, _, time, _ = y.shape
        steps = int(lengths.max(initial=0))
        count, units = self._threads_and_units(batch)
        counters = np.zeros(steps * self._phases * (units + 1) if count > 1 else 1, np.int64)
        other = empty(hidden.size if self._phases == 2 else 1, np.float32)
        cell = (states[0] if states else other).ctypes.data
        job = self._job(batch, count, units).copy()
        job["steps"], job["time"], job["lengths"] = steps, time, lengths.ctypes.data
        job["hidden_states"], job["counters"] = hidden.ctypes.data, counters.ctypes.data
        job["cell_states"], job["cell_states_before"], job["reset_states"] = cell, cell, other.ctypes.data
        parallel_for(run_steps.address, job, y.reshape(-1), products, UNUSED, UNUSED, count)

    def takes_step(self, x: Array, *states: Array) -> bool:
        """Return whether the inputs of one step, ``[batch, ...]``, are valid and nonempty."""
        expected = len(x), self.hidden
        return bool(x.size) and x.shape[1:] == (self.width,) and all(s.shape == expected for s in states)

    def step(self, x: Array, hidden: Array, cell: Array | None = None) -> Array | tuple[Array, ...]:
        """Run one step of ``x[batch, input]`` from states ``[batch, hidden]``.

        Returns the new hidden state, or, for an LSTM, the new hidden and cell states.
        """
        batch, (count, units) = len(x), self._threads_and_units(len(x))
        products = workspace(batch * self.gates * self.hidden)
        self.inputs.multiply(self.rows_of_inputs(contiguous(x)), products)
        y = empty((1 if cell is None else 2, batch, self.hidden), np.float32)
        before = UNUSED if cell is None else contiguous(cell)
        reset = workspace(y.size) if self._phases == 2 else UNUSED
        job = self._job(batch, count, units)
        parallel_for(run_cell.address, job, y, products, contiguous(hidden), before, count, reset)
        return y[0] if cell is None else (y[0], y[1])

    @property
    def _phases(self) -> int:
        """The number of successive state products in a step: 2 for `CellKind.GRU`, where one needs the reset gate, else 1."""
        return 2 if self.kind is CellKind.GRU else 1

    def _threads_and_units(self, batch: int) -> tuple[int, int]:
        """Return the number of threads and of units of a step."""
        directions = len(self.backwards)
        units = len(self.recurrent) // self.gates * -(-batch // ROW_MULTIPLE)
        work = batch * directions * self.gates * self.hidden * self.hidden
        return min(threads_for(computed=work), units), units

    def _job(self, batch: int, threads: int, units: int) -> Array:
        """Return the cached job of `run_cell`; `run_steps` takes a copy with states and sequence lengths."""
        if (job := self._jobs.get((batch, threads))) is not None:
            return job
        if len(self._jobs) >= 64:
            self._jobs.clear()
        directions, panels, depth = len(self.backwards), self.recurrent, self.products.words(self.hidden)
        chunk = min(batch, ROW_MULTIPLE)
        f, g, h = (*self.functions, *[0] * 3)[:3]
        job = self._jobs[batch, threads] = StepsJob.fill(
            kind=self.kind, batch=batch, directions=directions, hidden=self.hidden,
            panels=len(panels) // (directions * self.gates), gates=self.gates, chunk=chunk,
            chunks=-(-batch // chunk), table=panels.table, weights=panels.numbers, bias=panels.bias,
            backwards=self.backwards, tap_offset=NO_OFFSET, phases=self._phases, activation_f=f,
            activation_g=g, activation_h=h, low=-self.clip, high=self.clip, units=units, threads=threads,
            depth=depth, in_bf16=self.products is BF16_PRODUCTS, widened=self.products is WIDENED_PRODUCTS,
            scratch_bytes=chunk * (8 + self.gates * 4 * LANES * WIDE + 8 + 4 * depth), steps=1, time=1,
            lengths=np.ones(batch, np.int64), hidden_states=0, cell_states=0, cell_states_before=0,
            reset_states=0, counters=0,
        )  # fmt: skip
        return job


def _choose_products(x: Value, w: Array, r: Array) -> tuple[Products, Products]:
    """Choose the precision of the products of all inputs, and of those of the states of a step."""
    requested, shape = requested_products(), x.shape
    batch = int(shape[0]) if shape.rank and shape[0].is_static else None
    steps = math.prod(shape.static[1:-1]) if shape.is_static else None
    rows = None if batch is None or steps is None else batch * steps
    return (
        few_row_products(requested, rows, w.shape[-1], w.size),
        few_row_products(requested, batch, r.shape[-1], r.size),
    )


def _reorder_gates(array: Array, kind: CellKind, hidden: int) -> Array:
    """Reorder ``[directions, gates * hidden, ...]`` to the gate order of the kernel."""
    return sigmoid_gates_first(array, hidden, axis=1) if kind is CellKind.LSTM else array
