"""Programs of element-wise operations, which one kernel interprets block by block.

A block stays in the L1 cache from the first operation to the last. Each operation is a loop over vectors; nothing is
compiled for a program.
"""

from __future__ import annotations

from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import Device, device, routine, types
from ..codegen.memory import scratch_memory
from ..threading.task import Task, each_chunk, load_args
from ._activation_code import apply_activation
from ._elementwise_code import ABSOLUTE, ACTIVATION, BATCH_NORM, COPY, QUANTIZE, apply_unary, combine
from ._expand_rows import expand_rows
from ._quantize_code import fake_quantize
from ._row_functions import normalize_rows

__all__ = [
    "BLOCK",
    "RUN_PROGRAM",
    "SHORT",
    "Instruction",
    "ProgramJob",
    "element_index",
    "execute",
    "program_task",
]

# Elements of a block.
BLOCK = 4096
# Rows of fewer elements are expanded: a loop of its own for each of them takes longer.
SHORT = 64


class ProgramJob(Descriptor):
    """The job of `RUN_PROGRAM`: sizes of images and blocks, the number of operations, and whether data and result are bf16.

    A unit is ``unit_blocks`` blocks. If the data ``is_expanded``, it has strides of its own, in bytes, by which it is copied
    to the result first. ``expands`` says whether operands need scratch memory, in which their rows follow one another.
    If data and result are bf16, ``is_affine`` programs multiply with a constant row, add one, and may clamp.
    """

    blocks: i64
    unit_blocks: i64
    height: i64
    width: i64
    block_height: i64
    block_width: i64
    operations: i64
    rounded_data: i64
    rounded_result: i64
    is_affine: i64
    is_expanded: i64
    image_stride: i64
    row_stride: i64
    column_stride: i64
    expands: i64


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
def _run_block(
    job: ProgramJob,
    first: int,
    second: int,
    out: int,
    x: int,
    room: int,
    place: tuple[int, int, int, int, int],
) -> None:
    """Execute all operations on rows of ``count`` elements of f32."""
    image, row, column, rows, count = place
    target = out + 4 * element_index(job, image, row, column)
    source = x + target - out
    if job.is_expanded != 0:
        down, along = job.row_stride, job.column_stride
        source = x + image * job.image_stride + row * down + column * along
        expand_rows(target, source, rows, count, down, along == 0)
        source = target
    execute(job, first, second, target, source, image, row, column, rows, count, room)


@device
def element_index(job: ProgramJob, image: int, row: int, column: int) -> int:
    """Return the index of an element."""
    height, width = job.height, job.width
    at: int = (image * height + row) * width + column
    return at


def program_task(name: str, run_block: Device[..., None]) -> Task:
    """Return the task that runs a program block by block."""

    def run_program(call: int) -> None:
        address, out, x, first, second, _ = load_args(call)
        job = ProgramJob.at(address)
        height, width, tall, wide = (
            job.height,
            job.width,
            job.block_height,
            job.block_width,
        )
        across = (width + wide - 1) // wide
        per_image = (height + tall - 1) // tall * across
        blocks, some = job.blocks, job.unit_blocks
        room = scratch_memory(4 * BLOCK) if job.expands != 0 else 0
        for start, end in each_chunk(call, blocks, some):
            for index in range(start, end):
                image = index // per_image
                rest = index - image * per_image
                row, column = rest // across * tall, rest % across * wide
                place = image, row, column, min(tall, height - row), min(wide, width - column)
                run_block(job, first, second, out, x, room, place)

    run_program.__qualname__ = name
    return Task(run_program)


RUN_PROGRAM = program_task("_run_program", _run_block)
"""Run a program on images of rows of f32: A is the data, B and C are operands. The job is followed by `Instruction`s."""
