"""Programs of element-wise operations, interpreted block by block by one kernel, on f32 or bf16 data.

A block stays in the L1 cache from the first operation to the last. Each operation is a loop over vectors;
programs need no compilation.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..codegen.bf16 import as_bf16, load_bf16, store_bf16
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import device, instruction, routine, types
from ..codegen.memory import scratch_memory
from ..codegen.vectors import F32, LANES, Emit, Value
from ._activation_code import apply_activation
from ._elementwise_code import (
    ABSOLUTE,
    ACTIVATION,
    BATCH_NORM,
    COPY,
    QUANTIZE,
    apply_unary,
    combine,
    fake_quantize,
    normalize_rows,
)
from ._gemm_tile import load_lanes, round_row, widen_row
from ._nest import BLOCK, Addresses, NestJob, Place, nest_task, row_stride

__all__ = ["RUN_PROGRAM", "SHORT", "Instruction", "ProgramJob", "RUN_BF16_PROGRAM"]


@instruction(*[types.int64] * 6)
def expand_rows(
    emit: Emit, out: Value, x: Value, rows: Value, count: Value, apart: Value, single: Value
) -> None:  # fmt: skip
    """Copy rows of ``count`` elements, ``apart`` bytes apart; if ``single``, repeat one number per row instead.

    Stores are whole vectors if the excess is overwritten by the next row.
    """
    builder, lanes = emit.builder, emit.i64(LANES)
    step = builder.mul(count, emit.i64(4))
    before = builder.sdiv(builder.sub(count, emit.i64(1)), lanes)  # vectors before the last one of a row
    done = builder.mul(before, lanes)
    last = builder.sub(count, done)
    tail, mask = builder.mul(done, emit.i64(4)), emit.lane_mask(last)
    # Rows at the end of which less than a vector follows.
    ends = builder.sdiv(builder.add(builder.sub(emit.i64(LANES - 1), last), count), count)
    whole = builder.sub(rows, ends)
    whole = builder.select(builder.icmp_signed(">", whole, emit.i64(0)), whole, emit.i64(0))

    def write(number: Value, places: list[Value], masked: bool, same: bool) -> list[Value]:
        with emit.loop(number, places) as (_, (target, source), following):
            splat = emit.splat(emit.load(source, F32)) if same else None
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


# Rows of fewer elements are expanded: a loop of its own for each of them takes longer.
SHORT = 64


class ProgramJob(NestJob):
    """The job of `RUN_PROGRAM`: the number of operations, and whether data and result are bf16.

    Operands B and C have no strides; instructions locate them. Data that ``is_expanded``, whose rows are not
    contiguous, or one number each if ``is_single``, is copied to the result first. On bf16 data and results,
    ``is_affine`` programs multiply by a constant row, add another, and optionally clamp.
    """

    operations: i64
    rounded_data: i64
    rounded_result: i64
    is_affine: i64
    is_expanded: i64
    is_single: i64


class Instruction(Descriptor):
    """An operation with the parameters of an activation.

    ``operand`` is the operand's index, 0 for a constant; ``address`` is the operand's byte offset, or the
    constant's address. Strides are in bytes, as is ``plane``, the distance between several constants.
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
    """Execute all operations on rows of ``count`` elements; short operand rows are expanded in ``room``."""
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
    """Execute all operations on rows of ``count`` elements of f32."""
    (out, x, first, second), (image, row, column) = operands, place
    if job.is_expanded != 0:
        expand_rows(out, x, rows, count, row_stride(job, 1), job.is_single)
        x = out
    execute(job, first, second, out, x, image, row, column, rows, count, room)


RUN_PROGRAM = nest_task("_run_program", _run_block)
"""Run a program on f32 rows: A is the data, B and C are operands. The job is followed by `Instruction`s."""


# Operations of an affine program before it clamps.
AFFINE = 2


@instruction(*[types.int64] * 6, types.float32, types.float32)
def _affine_rows(  # noqa: PLR0913 (values in registers)
    emit: Emit, x: Value, scale: Value, shift: Value, rows: Value, count: Value, out: Value, low: Value, high:
    Value,
) -> None:  # fmt: skip
    """Multiply bf16 rows by an f32 row, add another, clamp, and store bf16."""
    builder, bounds = emit.builder, (emit.splat(low), emit.splat(high))
    step, whole = builder.mul(count, emit.i64(2)), builder.sdiv(count, emit.i64(LANES))
    done = builder.mul(whole, emit.i64(LANES))
    rest = builder.sub(count, done)

    def compute(source: Value, target: Value, start: Value, length: Value | None) -> None:
        here, there = (builder.mul(start, emit.i64(size)) for size in (2, 4))
        factor, term = (load_lanes(emit, emit.at(row, there), length) for row in (scale, shift))
        # The product is rounded before the sum, as by the two operations.
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
    """Execute all operations on contiguous rows with bf16 data or result."""
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
