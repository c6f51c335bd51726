"""Programs of element-wise operations, which one kernel interprets block by block.

A block stays in the L1 cache from the first operation to the last. Each operation is a loop over vectors; nothing is
compiled for a program.
"""

from __future__ import annotations

from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import device, routine, types
from ._activation_code import apply_activation
from ._elementwise_code import ABSOLUTE, ACTIVATION, BATCH_NORM, COPY, QUANTIZE, apply_unary, combine
from ._expand_rows import expand_rows
from ._nest import Addresses, NestJob, Place, nest_task, row_stride
from ._quantize_code import fake_quantize
from ._row_functions import normalize_rows

__all__ = [
    "RUN_PROGRAM",
    "SHORT",
    "Instruction",
    "ProgramJob",
    "execute",
]

# Rows of fewer elements are expanded: a loop of its own for each of them takes longer.
SHORT = 64


class ProgramJob(NestJob):
    """The job of `RUN_PROGRAM`: the number of operations, and whether data and result are bf16.

    Operands B and C have no strides: instructions say where they are. If the data ``is_expanded``, its rows do not follow one another
    or, if ``is_single``, are one number each: it is copied to the result first. If data and result are bf16, ``is_affine``
    programs multiply with a constant row, add one, and may clamp.
    """

    operations: i64
    rounded_data: i64
    rounded_result: i64
    is_affine: i64
    is_expanded: i64
    is_single: i64


class Instruction(Descriptor):
    """An operation and the parameters of an activation.

    ``operand`` is the index of the operand, 0 for a constant; ``address`` is its byte offset, or that of the constant;
    strides are in bytes, as is ``plane``, from one constant of several to the next.
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
    """Execute all operations on rows of ``count`` elements; short rows of operands are expanded in ``room``."""
    step = Instruction.at(job + 8 * ProgramJob.words)
    for _ in range(job.operations):
        code = step.opcode
        if code >= ABSOLUTE:
            if code < ACTIVATION or x != out:  # activations work in place
                apply_unary(min(code, COPY), out, x, rows * count)
            if code >= ACTIVATION:
                apply_activation(
                    out,
                    0,
                    1,
                    rows * count,
                    code - ACTIVATION,
                    step.a,
                    step.b,
                )
        else:
            slot, down, along = (
                step.operand,
                step.row_stride,
                step.column_stride,
            )
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
"""Run a program on images of rows of f32: A is the data, B and C are operands. The job is followed by `Instruction`s."""
