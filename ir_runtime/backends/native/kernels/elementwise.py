"""Chains of element-wise operations fused into one pass over the data.

A chain becomes a program of `Instruction`s, planned for each layout of its inputs. A task interprets it block
by block on f32 or bf16 data, so a block stays in the L1 cache from the first operation to the last. Each
operation is a precompiled vectorized loop; no machine code is generated for a chain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from ...._util.forks import cached_property
from ....ir.operation import Operation
from ....ir.pages import held
from ....ir.shape import PartialShape
from ....ir.tensor import Array, Value
from ....ops.activation import PReLU, ReLU, known_slopes
from ....ops.arithmetic import (
    Abs,
    Add,
    Ceiling,
    Divide,
    Floor,
    FloorMod,
    Maximum,
    Minimum,
    Mod,
    Multiply,
    Negative,
    Power,
    Round,
    Sqrt,
    SquaredDifference,
    Subtract,
)
from ....ops.normalization import BatchNormInference, BatchNormInference1
from ....ops.quantization import FakeQuantize
from ... import Kernel, KernelTemplate
from ...common.epilogue import BINARY_UFUNCS
from ...common.kept_memory import empty
from ...common.layout import is_f32
from ...common.post_op import PostOp, match_post_op, quantize_parameters
from ...core.kernel import any_lengths
from .._backend import backend
from ..codegen.bf16 import as_bf16, load_bf16, store_bf16
from ..codegen.descriptor import Descriptor, concatenate, f32, i64
from ..codegen.language import device, instruction, routine, types
from ..codegen.memory import scratch_memory
from ..codegen.vectors import F32 as FLOAT
from ..codegen.vectors import LANES, Emit
from ..codegen.vectors import Value as Register
from ..threading.capture import replayed
from ..threading.parallel import RECORD, is_recording, parallel_for, pays_to_share, threads
from ..threading.task import UNUSED, Task
from ._copy import MAX_SIZE, broadcast_copy, contiguous
from ._elementwise_code import (
    ABSOLUTE,
    ACTIVATION,
    BATCH_NORM,
    COPY,
    QUANTIZE,
    ActivationKind,
    Opcode,
    apply_activation,
    apply_unary,
    combine,
    fake_quantize,
    normalize_rows,
)
from ._epilogue import ACTIVATION_TYPES, BF16, F32, activation_of
from ._gemm_kernel import requested_products
from ._gemm_tile import load_lanes, round_row, widen_row
from ._nest import (
    BLOCK,
    Addresses,
    NestJob,
    Place,
    align_strides,
    collapse_axes,
    contiguous_strides,
    memory_order,
    nest_fields,
    nest_task,
    operand_axes,
    permute_constant,
    row_stride,
)

__all__ = ["Instruction", "SHORT"]


@instruction(*[types.int64] * 6)
def expand_rows(
    emit: Emit, out: Register, x: Register, rows: Register, count: Register, apart: Register, single: Register
) -> None:  # fmt: skip
    """Copy f32 rows, ``apart`` bytes apart, to contiguous memory; if ``single``, broadcast one element per row instead.

    The last vector of a row is stored whole where the next row overwrites the excess.
    """
    builder, lanes = emit.builder, emit.i64(LANES)
    step = builder.mul(count, emit.i64(4))
    before = builder.sdiv(builder.sub(count, emit.i64(1)), lanes)  # vectors before the last one of a row
    done = builder.mul(before, lanes)
    last = builder.sub(count, done)
    tail, mask = builder.mul(done, emit.i64(4)), emit.lane_mask(last)
    # Trailing rows followed by less than a vector of memory.
    ends = builder.sdiv(builder.add(builder.sub(emit.i64(LANES - 1), last), count), count)
    whole = builder.sub(rows, ends)
    whole = builder.select(builder.icmp_signed(">", whole, emit.i64(0)), whole, emit.i64(0))

    def write(number: Register, places: list[Register], masked: bool, same: bool) -> list[Register]:
        with emit.loop(number, places) as (_, (target, source), following):
            splat = emit.splat(emit.load(source, FLOAT)) if same else None
            with emit.loop(before) as (i, _, _following):
                offset = builder.mul(i, emit.i64(4 * LANES))
                emit.store(
                    emit.load(emit.at(source, offset)) if splat is None else splat, emit.at(target, offset)
                )
            value = emit.masked_load(emit.at(source, tail), mask) if splat is None else splat
            if masked:
                emit.masked_store(value, emit.at(target, tail), mask)
            else:
                emit.store(value, emit.at(target, tail))
            following += [emit.at(target, step), emit.at(source, apart)]
        return list(following)

    def go(same: bool) -> None:
        places = write(whole, [out, x], False, same)
        write(builder.sub(rows, whole), places, True, same)

    emit.switch(single, {0: partial(go, False), 1: partial(go, True)})


# Operand rows with fewer elements are expanded, as a separate loop for each row takes longer.
SHORT = 64


class ProgramJob(NestJob):
    """Parameters of `RUN_PROGRAM` and `RUN_BF16_PROGRAM`, followed by ``operations`` `Instruction`s.

    ``rounded_data`` and ``rounded_result`` say that data and result are bf16. Operands B and C have no strides
    here; instructions locate them. If ``is_expanded``, the rows of the data are not contiguous, or hold one
    element each (``is_single``), and are copied to the result first. An ``is_affine`` program on bf16
    multiplies by a constant row, adds another, and optionally clamps.
    """

    operations: i64
    rounded_data: i64
    rounded_result: i64
    is_affine: i64
    is_expanded: i64
    is_single: i64


class Instruction(Descriptor):
    """An operation of a program with its operand, or with the parameters ``a`` and ``b`` of an activation.

    ``operand`` is 1 for operand B, 2 for C, and 0 for a constant at ``address``. Strides are in bytes, as is
    ``plane``, the distance between the constants of an operation that has several.
    """

    opcode: i64
    operand: i64
    address: i64
    image_stride: i64
    row_stride: i64
    column_stride: i64
    plane: i64
    a: f32
    b: f32


@routine(*[types.int64] * 11)
def execute(  # noqa: PLR0913 (values in registers)
    job: ProgramJob, first: int, second: int, out: int, x: int, image: int, row: int, column: int, rows: int, count: int,
    room: int,
) -> None:  # fmt: skip
    """Execute a program on ``rows`` rows of ``count`` elements; short operand rows are expanded in ``room``.

    Args:
        job: the job, followed by the instructions.
        first: the address of operand B.
        second: the address of operand C.
        out: the address of the block in the result.
        x: the address of the block in the data.
        image: the index of the block's plane.
        row: the index of its first row.
        column: the index of its first column.
        rows: the number of rows.
        count: the number of elements in a row.
        room: scratch memory.
    """
    step = Instruction.at(job + 8 * ProgramJob.words)
    for _ in range(job.operations):
        code = step.opcode
        if code >= ABSOLUTE:
            if code < ACTIVATION or x != out:  # activations work in place
                apply_unary(min(code, COPY), out, x, rows * count)
            if code >= ACTIVATION:
                apply_activation(out, 0, 1, rows * count, code - ACTIVATION, step.a, step.b)
        else:
            slot, down, along = step.operand, step.row_stride, step.column_stride
            base = first if slot == 1 else second if slot == 2 else 0
            y = base + step.address + image * step.image_stride + row * down + column * along
            joined = rows == 1 or down == along * count  # rows of the operand are contiguous
            lines = 1 if joined else rows
            if code == QUANTIZE:
                length = rows * count // lines
                fake_quantize(out, x, 4 * length, y, step.plane, down, along == 0, lines, length)
            elif code == BATCH_NORM:
                length = rows * count // lines
                normalize_rows(out, x, 4 * length, y, step.plane, down, along == 0, lines, length)
            elif lines > 1 and count < SHORT:
                expand_rows(room, y, rows, count, down, along == 0)
                combine(code, 0, out, x, room, 1, rows * count, 0)
            else:
                combine(code, along == 0, out, x, y, lines, rows * count // lines, down)
        step = Instruction.at(step + 8 * Instruction.words)
        x = out


@device
def _run_block(job: ProgramJob, operands: Addresses, place: Place, rows: int, count: int, room: int) -> None:
    """Execute a program on a block of f32."""
    (out, x, first, second), (image, row, column) = operands, place
    if job.is_expanded != 0:
        expand_rows(out, x, rows, count, row_stride(job, 1), job.is_single)
        x = out
    execute(job, first, second, out, x, image, row, column, rows, count, room)


RUN_PROGRAM = nest_task("_run_program", _run_block)
"""Run a program on f32; A is the data, B and C are operands."""


# Operations of an affine program before the optional clamp.
AFFINE = 2


@instruction(*[types.int64] * 6, types.float32, types.float32)
def _affine_rows(  # noqa: PLR0913 (values in registers)
    emit: Emit, x: Register, scale: Register, shift: Register, rows: Register, count: Register, out: Register, low: Register, high:
    Register,
) -> None:  # fmt: skip
    """Multiply bf16 rows by the f32 row ``scale``, add the row ``shift``, clamp, and store bf16."""
    builder, bounds = emit.builder, (emit.splat(low), emit.splat(high))
    step, whole = builder.mul(count, emit.i64(2)), builder.sdiv(count, emit.i64(LANES))
    done = builder.mul(whole, emit.i64(LANES))
    rest = builder.sub(count, done)

    def compute(source: Register, target: Register, start: Register, length: Register | None) -> None:
        here, there = (builder.mul(start, emit.i64(size)) for size in (2, 4))
        factor, term = (load_lanes(emit, emit.at(row, there), length) for row in (scale, shift))
        # The product is rounded before the sum, as in two separate operations.
        product = emit.fence(emit.multiply(load_bf16(emit, emit.at(source, here), length), factor))
        value = emit.minimum(emit.maximum(emit.add(product, term), bounds[0]), bounds[1])
        store_bf16(emit, as_bf16(emit, value), emit.at(target, here), length)

    with emit.loop(rows, [x, out]) as (_, (source, target), following):
        with emit.loop(whole) as (i, _, _following):
            compute(source, target, builder.mul(i, emit.i64(LANES)), None)
        with builder.if_then(builder.icmp_signed(">", rest, emit.i64(0))):
            compute(source, target, done, rest)
        following += [emit.at(source, step), emit.at(target, step)]


@device
def _run_affine(job: ProgramJob, out: int, x: int, column: int, rows: int, count: int) -> None:
    step = Instruction.at(job + 8 * ProgramJob.words)
    scale = step.address + 4 * column
    step = Instruction.at(step + 8 * Instruction.words)
    shift = step.address + 4 * column
    low, high = np.float32(-np.inf), np.float32(np.inf)
    if job.operations > AFFINE:
        step = Instruction.at(step + 8 * Instruction.words)
        low, high = step.a, step.b
    _affine_rows(x, scale, shift, rows, count, out, low, high)


@device
def _run_bf16_block(
    job: ProgramJob, operands: Addresses, place: Place, rows: int, count: int, room: int
) -> None:
    """Execute a program on a block of contiguous rows whose data or result is bf16."""
    (out, x, first, second), (image, row, column) = operands, place
    if job.is_affine != 0:
        _run_affine(job, out, x, column, rows, count)
        return
    block = scratch_memory(4 * BLOCK)
    if job.rounded_data != 0:
        widen_row(x, rows * count, block)
        x = block
    target = block if job.rounded_result != 0 else out
    execute(job, first, second, target, x, image, row, column, rows, count, room)
    if job.rounded_result != 0:
        round_row(block, rows * count, out, rows * count)


RUN_BF16_PROGRAM = nest_task("_run_bf16_program", _run_bf16_block)
"""Like `RUN_PROGRAM`, with data or result in bf16."""


# The opcodes for the running result as the first input, and as the second.
_BINARY: dict[type[Operation], tuple[Opcode, Opcode]] = {
    Add: (Opcode.ADD, Opcode.ADD),
    Subtract: (Opcode.SUBTRACT, Opcode.SUBTRACT_FROM),
    Multiply: (Opcode.MULTIPLY, Opcode.MULTIPLY),
    Divide: (Opcode.DIVIDE, Opcode.DIVIDE_INTO),
    Maximum: (Opcode.MAXIMUM, Opcode.MAXIMUM_OF),
    Minimum: (Opcode.MINIMUM, Opcode.MINIMUM_OF),
    SquaredDifference: (Opcode.SQUARED_DIFFERENCE, Opcode.SQUARED_DIFFERENCE),
    Mod: (Opcode.MOD, Opcode.MOD_OF),
    FloorMod: (Opcode.FLOOR_MOD, Opcode.FLOOR_MOD_OF),
}
_UNARY: dict[type[Operation], Opcode] = {
    Abs: Opcode.ABSOLUTE,
    Negative: Opcode.NEGATIVE,
    Sqrt: Opcode.ROOT,
    Floor: Opcode.FLOOR,
    Ceiling: Opcode.CEILING,
}


ELEMENTWISE_TYPES: tuple[type[Operation], ...] = (
    *_BINARY, *_UNARY, Round, Power, FakeQuantize, BatchNormInference, BatchNormInference1, *ACTIVATION_TYPES,
)  # fmt: skip
"""The types of operations that a chain can contain."""

_ZERO = np.float32(0)
# Operations with several constant operands.
_SEVERAL = Opcode.QUANTIZE, Opcode.BATCH_NORM
_REMAINDERS = Opcode.MOD, Opcode.MOD_OF, Opcode.FLOOR_MOD, Opcode.FLOOR_MOD_OF


@dataclass(frozen=True)
class ElementwiseOp:
    """One layer of a chain.

    Args:
        op: the operation.
        place: the index of the input that is the running result.
        inputs: the number of other inputs.
        code: the opcode.
        parameters: the parameters of an activation.
        constant: the operand, if constant; for a FakeQuantize, each `QuantizeParameter`, ``[10, ...]``; for a
            BatchNormInference, mean, deviation, factor and shift, ``[4, ...]``.
        paired: whether the operand is an input of the chain.
    """

    op: Operation
    place: int
    inputs: int
    code: int
    parameters: tuple[float, float] = (0.0, 0.0)
    constant: Array | None = None
    paired: bool = False

    @property
    def planes(self) -> tuple[Array, ...]:
        """The constant operands: several for FakeQuantize and BatchNormInference."""
        if self.constant is None:
            return ()
        return tuple(self.constant) if self.code in _SEVERAL else (self.constant,)

    @property
    def is_costly(self) -> bool:
        """Whether the layer takes several times as long as an addition."""
        return self.code in _REMAINDERS or self.code >= Opcode.ACTIVATION or len(self.planes) > 1


def numpy_function(op: Operation) -> Callable[..., Array]:
    """Return a NumPy function for an f32 layer: an equivalent ufunc if there is one, else the reference."""
    if isinstance(op, ReLU):
        return lambda x: np.maximum(x, _ZERO)
    return BINARY_UFUNCS.get(type(op)) or op.evaluate


def elementwise_op(op: Operation, inputs: Sequence[Value], place: int) -> ElementwiseOp | None:
    """Return the `ElementwiseOp` of an f32 layer whose input ``place`` is the running result.

    Returns ``None`` if the operation is not supported or may change the shape.
    """
    if isinstance(op, BatchNormInference | BatchNormInference1):
        return _batch_norm(op, inputs, place)
    post_op = match_post_op(op, inputs, place)
    if post_op is None:
        return None
    others, operand = post_op.extra_inputs, post_op.operand
    if isinstance(op, FakeQuantize):
        return _quantize(post_op)
    if place == 0 and (activation := activation_of(op, inputs)) is not None:
        code = Opcode.ACTIVATION + activation.kind
        return ElementwiseOp(op, place, others, code, (activation.a, activation.b))
    if (unary := _unary(op, inputs)) is not None:
        return ElementwiseOp(op, place, others, unary)
    if isinstance(op, PReLU):
        return _slopes(op, *inputs)
    if operand is None or type(op) not in _BINARY or not _broadcasts(operand.shape, post_op.data.shape):
        return None
    constant = operand.known()
    return ElementwiseOp(
        op, place, others, _BINARY[type(op)][place], constant=constant, paired=constant is None
    )


def outer_op(op: Operation, inputs: Sequence[Value]) -> ElementwiseOp | None:
    """Return the `ElementwiseOp` of a binary f32 layer whose inputs may both broadcast, or ``None`` for other layers.

    The first input is the running result.
    """
    if type(op) not in _BINARY or not is_f32(*inputs) or getattr(op, "auto_broadcast", "") != "numpy":
        return None
    return ElementwiseOp(op, 0, 1, _BINARY[type(op)][0], paired=True)


def _quantize(post_op: PostOp) -> ElementwiseOp | None:
    parameters = quantize_parameters(post_op.op, post_op.inputs)
    if parameters is None or not _broadcasts(PartialShape(parameters.shape[1:]), post_op.data.shape):
        return None
    limits = zip(reversed(parameters.shape[1:]), reversed(list(post_op.data.shape)), strict=False)
    if any(count != 1 and dim.is_dynamic for count, dim in limits):
        return None  # a dynamic length could broadcast, which inference refuses
    return ElementwiseOp(post_op.op, 0, post_op.extra_inputs, Opcode.QUANTIZE, constant=parameters)


def _batch_norm(
    op: BatchNormInference | BatchNormInference1, inputs: Sequence[Value], place: int
) -> ElementwiseOp | None:
    """Convert a layer with constant parameters; the deviation is computed as in the reference."""
    data_place = 0 if isinstance(op, BatchNormInference) else 2
    shape = inputs[place].shape
    if place != data_place or not is_f32(*inputs) or not shape.rank:
        return None
    if not shape[min(1, shape.rank - 1)].is_static:
        return None  # a dynamic length could broadcast, which inference refuses
    constants = [value.known() for index, value in enumerate(inputs) if index != place]
    if any(array is None for array in constants):
        return None
    gamma, beta, mean, variance = (array for array in constants if array is not None)
    with np.errstate(invalid="ignore"):
        deviation = np.sqrt(variance + np.float32(op.epsilon))
    constant = np.stack([mean, deviation, gamma, beta]).reshape(4, -1, *[1] * (shape.rank - 2))
    if not _broadcasts(PartialShape(constant.shape[1:]), shape):
        return None
    return ElementwiseOp(op, place, 4, Opcode.BATCH_NORM, constant=constant)


def _slopes(op: PReLU, data: Value, slope: Value) -> ElementwiseOp | None:
    """Convert a PReLU with constant slopes; slopes are per channel if there are as many as channels."""
    values = known_slopes(data, slope)
    if values is None or not _broadcasts(PartialShape(values.shape), data.shape):
        return None
    return ElementwiseOp(op, 0, 1, Opcode.SLOPE, constant=values)


def _unary(op: Operation, inputs: Sequence[Value]) -> Opcode | None:
    if isinstance(op, Round):
        return Opcode.ROUND if op.mode == "half_to_even" else None
    if isinstance(op, Power):
        exponent = inputs[1].known()
        is_square = exponent is not None and exponent.size == 1 and exponent.reshape(-1)[0] == 2
        return Opcode.SQUARE if is_square and _broadcasts(inputs[1].shape, inputs[0].shape) else None
    return _UNARY.get(type(op))


def _broadcasts(other: PartialShape, ours: PartialShape) -> bool:
    """Return whether ``other`` can broadcast to ``ours`` without changing it; runs check dynamic lengths."""
    if other.rank is None or ours.rank is None or other.rank > ours.rank:
        return False
    pairs = zip(other[::-1], ours[::-1], strict=False)
    return all(a == 1 or (a == b if a.is_static and b.is_static else b != 1) for a, b in pairs)


# Cost of an activation relative to an addition.
ACTIVATION_COST = 4
AFFINE_CODES = [Opcode.MULTIPLY, Opcode.ADD]
# Operand indices of non-constant operands.
OPERAND_SLOTS = 1, 2


class Plan(NamedTuple):
    """The program for inputs of one layout."""

    job: Array
    shape: tuple[int, ...]
    """The shape of the result, with its axes in memory order."""
    back: tuple[int, ...]
    """The permutation that restores the axis order of the result."""
    copied: list[tuple[int, ...] | None]
    """For the data and each operand, the axis order of a contiguous copy; ``None`` to read the array in
    place."""
    large: bool
    task: Task

    def read(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the data and the operands as the task reads them, copied where needed."""
        return [
            array if order is None else contiguous(array.transpose(order))
            for array, order in zip(arrays, self.copied, strict=True)
        ]


class _Layout(NamedTuple):
    """The three axes of a program: their lengths, and the strides of data and operands, including constants.

    ``copied`` is as in `Plan`.
    """

    lengths: tuple[int, ...]
    strides: list[tuple[int, ...]]
    copied: list[tuple[int, ...] | None]


def make_plan(ops: Sequence[ElementwiseOp], arrays: Sequence[Array], rounds: bool) -> Plan | None:
    """Return the plan for data and operands; ``rounds`` says whether the result is stored as bf16.

    Returns ``None`` if an operand does not broadcast, or if axes do not merge into three.
    """
    x, others = arrays[0], list(arrays[1:])
    is_bf16 = rounds or x.dtype == BF16
    shape = x.shape if is_bf16 or not ops[0].paired else _broadcast(x.shape, others[0].shape)
    if shape is None:
        return None
    order = next(
        (memory_order(array) for array in arrays[:2] if array.shape == shape), tuple(range(len(shape)))
    )
    waiting = iter(others)
    operands = [next(waiting) if op.paired else op.planes[0] for op in ops if op.paired or op.planes]
    is_input = [True, *(op.paired for op in ops if op.paired or op.planes)]
    layout = _layout([x, *operands], is_input, shape, order, is_bf16)
    if layout is None:
        return None
    job = _job(ops, layout, order, (x.dtype == BF16, rounds))
    size, cost = math.prod(shape), sum(ACTIVATION_COST if op.is_costly else 1 for op in ops)
    copied = [axes for axes, varies in zip(layout.copied, is_input, strict=True) if varies]
    return Plan(
        job, tuple(shape[axis] for axis in order), tuple(np.argsort(order).tolist()), copied,
        pays_to_share(moved=2 * F32.itemsize * size, computed=cost * size),
        RUN_BF16_PROGRAM if rounds or x.dtype == BF16 else RUN_PROGRAM,
    )  # fmt: skip


def _broadcast(shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(shape, other)
    except ValueError:
        return None  # the operation raises a better error


def _layout(
    arrays: Sequence[Array], is_input: Sequence[bool], shape: tuple[int, ...], order: tuple[int, ...], is_bf16:
    bool,
) -> _Layout | None:  # fmt: skip
    """Return a layout that reads the arrays in place if possible, else with contiguous copies.

    Args:
        arrays: the data and all operands.
        is_input: whether each array is an input rather than a constant.
        shape: the shape of the result.
        order: the memory order of its axes.
        is_bf16: whether data or result are bf16; then the data is read as contiguous, with strides as for f32.
    """
    lengths = tuple(shape[axis] for axis in order)
    orders = [operand_axes(array.shape, order) for array in arrays]
    if any(array.ndim > len(shape) for array in arrays):
        return None
    is_ready = [array.transpose(own).flags.c_contiguous for array, own in zip(arrays, orders, strict=True)]
    for copies in (False, True):
        strides, copied = [], list[tuple[int, ...] | None]()
        for index, (array, own, ready, varies) in enumerate(
            zip(arrays, orders, is_ready, is_input, strict=True)
        ):
            moved = copies or not varies or (is_bf16 and index == 0)  # constants are stored in this order
            steps = contiguous_strides(array.shape, own) if moved else array.strides
            strides.append(align_strides(array.shape, steps, shape, order))
            copied.append(own if moved and varies and not ready else None)
        if any(steps is None for steps in strides):
            return None
        collapsed = collapse_axes(lengths, [steps for steps in strides if steps is not None])
        if collapsed is not None:
            return _Layout(*collapsed, copied)
    return None


def _job(
    ops: Sequence[ElementwiseOp], layout: _Layout, order: tuple[int, ...], rounded: tuple[bool, bool]
) -> Array:
    """Return the parameters of the task for a chain of element-wise operations.

    Args:
        ops: the operations.
        layout: the loop nest over the operands.
        order: the order of the axes.
        rounded: whether the data, and whether the result, is stored as bf16.
    """
    own, *strides = layout.strides
    records = _instructions(ops, strides, order)
    flat = contiguous_strides(layout.lengths)
    is_flat = all(step == n for step, n, length in zip(own, flat, layout.lengths, strict=True) if length != 1)
    data, result = (BF16.itemsize if is_bf16 else F32.itemsize for is_bf16 in rounded)
    axes = [
        (length, there * result // F32.itemsize, here * data // F32.itemsize)
        for length, there, here in zip(layout.lengths, flat, own, strict=True)
    ]
    fields = nest_fields(axes[::-1])
    assert fields is not None
    width = layout.lengths[-1]
    job = ProgramJob.fill(
        **fields, room=F32.itemsize * BLOCK if width < SHORT else 0, operations=len(ops),
        rounded_data=rounded[0], rounded_result=rounded[1],
        is_affine=all(rounded) and _is_affine(ops, strides), is_expanded=not is_flat, is_single=own[-1] == 0,
    )  # fmt: skip
    return concatenate(job, *records)


def _instructions(
    ops: Sequence[ElementwiseOp], strides: Sequence[tuple[int, ...]], order: tuple[int, ...]
) -> list[Array]:
    """Return an `Instruction` for each layer."""
    records = list[Array]()
    places, slots = iter(strides), iter(OPERAND_SLOTS)
    for op in ops:
        slot = plane = 0
        planes: Array | None = None
        apart: tuple[int, ...] = (0, 0, 0)
        if op.planes:
            planes = np.stack([permute_constant(held(constant), order) for constant in op.planes])
            plane, apart = planes[0].nbytes, next(places)
        elif op.paired:
            slot, apart = next(slots), next(places)
        by_image, by_row, by_column = apart
        a, b = op.parameters
        records.append(
            Instruction.fill(
                opcode=op.code, operand=slot, address=planes, image_stride=by_image, row_stride=by_row,
                column_stride=by_column, plane=plane, a=a, b=b,
            )
        )  # fmt: skip
    return records


def _is_affine(ops: Sequence[ElementwiseOp], strides: Sequence[tuple[int, ...]]) -> bool:
    """Return whether a program multiplies by a constant row, adds another, and at most clamps."""
    codes = [op.code for op in ops]
    rows = all(apart == (0, 0, 4) for apart in strides) and all(len(op.planes) == 1 for op in ops[:2])
    return rows and codes in (AFFINE_CODES, [*AFFINE_CODES, Opcode.ACTIVATION + ActivationKind.CLAMP])


# Smaller results are left to NumPy, whose calls are cheaper, unless a run is recorded or NumPy rounds differently. The
# limit of FakeQuantize is lower, as it takes some twenty calls of NumPy.
MIN_SIZE = 1 << 11
MIN_QUANTIZED_SIZE = MIN_SIZE // 16
# Plans that a chain caches, one for each layout of inputs.
MAX_PLANS = 16
# The rank of feature maps, which may be stored in bf16.
MAP_RANK = 4


# Number of cached kernels for a single unary layer, shared by all layers with the same parameters.
MAX_SHARED = 256

_SHARED: dict[tuple[object, ...], Kernel] = {}
_LayoutKey: TypeAlias = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


@dataclass(frozen=True)
class ElementwiseChain(KernelTemplate):
    """A chain of element-wise layers, run layer by layer in NumPy if inputs have no `Plan`.

    Args:
        ops: the layers.
        arity: the number of inputs of the first layer.
        bf16: whether the result may be stored in bf16.
        rounds: whether the result is stored in bf16; then the data may be, too.
        small: whether the shape is static and has fewer than `MIN_SIZE` elements.
    """

    ops: tuple[ElementwiseOp, ...]
    arity: int
    bf16: bool = False
    rounds: bool = False
    small: bool = False
    _plans: dict[_LayoutKey, Plan | None] = field(default_factory=dict, compare=False)

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> ElementwiseChain | None:
        """Return a kernel that also applies ``op``, or ``None`` if it cannot be fused."""
        op_ = elementwise_op(op, inputs, place)
        if op_ is None or op_.paired + sum(op.paired for op in self.ops) > len(OPERAND_SLOTS):
            return None
        return replace(self, ops=(*self.ops, op_), _plans={})

    def reads_bf16(self, place: int) -> bool:
        """Return whether an input may be stored in bf16."""
        return self.rounds and place == self.ops[0].place

    def storing_bf16(self) -> ElementwiseChain | None:
        """Return a kernel that stores its result in bf16, or ``None`` if it cannot."""
        return replace(self, rounds=True, _plans={}) if self.bf16 else None

    @cached_property
    def _read(self) -> list[int]:
        """The input indices of the data and of the non-constant operands."""
        places, start = [self.ops[0].place], 0
        for index, op_ in enumerate(self.ops):
            if op_.paired:
                places.append(1 - op_.place if index == 0 else start)
            start += self.arity if index == 0 else op_.inputs
        return places

    @cached_property
    def _left_to_numpy(self) -> bool:
        """Whether NumPy computes the chain outside recorded runs: it is small, and NumPy has the same results."""
        exact = (*range(Opcode.MOD), Opcode.ACTIVATION + ActivationKind.CLAMP)
        return self.small and all(op_.code in exact for op_ in self.ops)

    def prepare(self) -> Kernel:
        """Return the kernel; for a small tensor, one with less call overhead."""
        if not self._left_to_numpy:
            return Kernel(self._compute, accepts=any_lengths, replay=replayed())
        if len(self.ops) > 1 or self.ops[0].paired or self.ops[0].planes:
            return self._small_kernel(self._run_in_numpy)
        (only,) = self.ops
        key = type(only.op), only.code, only.parameters, self.arity
        if key not in _SHARED:
            if len(_SHARED) >= MAX_SHARED:
                _SHARED.clear()
            _SHARED[key] = self._small_kernel(numpy_function(only.op))
        return _SHARED[key]

    def _small_kernel(self, run: Callable[..., Array]) -> Kernel:
        """Return a kernel that calls ``run``, but runs the task while a run is recorded."""

        def kernel(*arrays: Array) -> Array:
            return self._compute(*arrays) if is_recording() else run(*arrays)

        return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))

    def _compute(self, *arrays: Array) -> Array:
        read = [arrays[place] for place in self._read]
        key = tuple((array.shape, array.strides) for array in read)
        try:
            plan = self._plans[key]
        except KeyError:
            plan = self._add_plan(key, read)
        if plan is None:
            whole = None if RECORD.get() is None else self._expand_data(*arrays)
            return self._run_in_numpy(*arrays) if whole is None else self._compute(*whole)
        out = empty(plan.shape, BF16 if self.rounds else F32)
        source, first, second = (*plan.read(read), UNUSED, UNUSED)[:3]
        parallel_for(plan.task.address, plan.job, out, source, first, second, threads() if plan.large else 1)
        return out.transpose(plan.back)

    def _add_plan(self, key: _LayoutKey, read: Sequence[Array]) -> Plan | None:
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        plan = self._plans[key] = make_plan(self.ops, read, self.rounds)
        return plan

    def _expand_data(self, *arrays: Array) -> list[Array] | None:
        """Broadcast the data to the shape of a small result in a recorded run; running NumPy would end the replay."""
        first, place = arrays[: self.arity], self.ops[0].place
        shapes = [array.shape for array in first]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            return None  # the operation raises a better error
        if shape == shapes[place] or not 0 < math.prod(shape) <= MAX_SIZE or not is_recording():
            return None
        whole = broadcast_copy(first[place], shape) if first[place].dtype == F32 else None
        return None if whole is None else [*arrays[:place], whole, *arrays[place + 1 :]]

    def _run_in_numpy(self, *arrays: Array) -> Array:
        """Evaluate the operations one by one, for inputs without a plan."""
        first = self.ops[0]
        result: Array = numpy_function(first.op)(
            *(array.astype(F32) if array.dtype == BF16 else array for array in arrays[: self.arity])
        )
        start = self.arity
        for op_ in self.ops[1:]:
            inputs = list(arrays[start : start + op_.inputs])
            inputs.insert(op_.place, result)
            result, start = numpy_function(op_.op)(*inputs), start + op_.inputs
        return np.asarray(result, BF16 if self.rounds else None)


@backend.accelerates(*ELEMENTWISE_TYPES)
def elementwise(op: Operation, *inputs: Value) -> KernelTemplate | None:
    """Return an element-wise kernel for f32 whose result has the shape of an input, or of two broadcast inputs.

    Returns ``None`` if no such kernel computes the operation.
    """
    for place in range(min(len(inputs), 3)):
        shape = inputs[place].shape
        if inputs[place].known() is not None or shape.rank == 0:
            continue
        small = shape.is_static and math.prod(shape.static) < MIN_SIZE
        if small and isinstance(op, FakeQuantize) and math.prod(shape.static) < MIN_QUANTIZED_SIZE:
            continue
        if (op_ := elementwise_op(op, inputs, place)) is not None:
            is_map = shape.rank == MAP_RANK and not small
            return ElementwiseChain(
                (op_,), len(inputs), is_map and requested_products().is_faster, small=small
            )
    return _outer(op, inputs)


def _outer(op: Operation, inputs: Sequence[Value]) -> KernelTemplate | None:
    """Return a kernel for two inputs that may both broadcast, such as positions and frequencies; else ``None``."""
    if len(inputs) != 2 or any(not x.shape.rank for x in inputs):
        return None
    op_ = outer_op(op, inputs)
    if op_ is None:
        return None
    shapes = [x.shape.static for x in inputs if x.shape.is_static]
    small = len(shapes) == 2 and math.prod(np.broadcast_shapes(*shapes)) < MIN_SIZE
    return ElementwiseChain((op_,), 2, small=small)
