"""Programs of element-wise operations on data or to results of bf16; operands are f32."""

from __future__ import annotations

import numpy as np

from ..codegen.bf16 import as_bf16, load_bf16, store_bf16
from ..codegen.language import device, instruction, types
from ..codegen.memory import scratch_memory
from ..codegen.vectors import LANES, Emit, Value
from ._bf16_tile import load_lanes, round_row, widen_row
from ._elementwise_program import Instruction, ProgramJob, execute
from ._nest import BLOCK, Addresses, Place, nest_task

__all__ = ["RUN_BF16_PROGRAM"]

# Operations of an affine program before it clamps.
AFFINE = 2


@instruction(*[types.int64] * 6, types.float32, types.float32)
def _affine_rows(  # noqa: PLR0913 (values in registers)
    emit: Emit,
    x: Value,
    scale: Value,
    shift: Value,
    rows: Value,
    count: Value,
    out: Value,
    low: Value,
    high: Value,
) -> None:
    """Multiply rows of bf16 with a row of f32, add another one, clamp, and store bf16."""
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
def _run_block(job: ProgramJob, operands: Addresses, place: Place, rows: int, count: int, room: int) -> None:
    """Execute all operations on contiguous rows of which the data or the result are bf16."""
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


RUN_BF16_PROGRAM = nest_task("_run_bf16_program", _run_block)
"""Run a program, as `RUN_PROGRAM`, where the data or the result are bf16."""
