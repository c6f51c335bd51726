"""Programs of element-wise operations, which one kernel interprets block by block.

A block stays in the L1 cache from the first operation to the last. Each operation is a loop over vectors; nothing is
compiled for a program.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial

from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import Device, device, instruction, types
from ..codegen.memory import load_f32, load_i64
from ..codegen.vectors import F32, Emit, Load, Store, Value
from ..threading.task import Task, load_args, next_unit
from ._activation_code import apply_activation
from ._quantize_code import fake_quantize

__all__ = [
    "BLOCK",
    "RUN_PROGRAM",
    "Instruction",
    "Opcode",
    "ProgramJob",
    "element_index",
    "execute",
    "program_task",
]

# Elements of a block.
BLOCK = 4096
# Added to an opcode whose operand is one number for a row.
_SINGLE = 50


class ProgramJob(Descriptor):
    """The job of `RUN_PROGRAM`: sizes of images and blocks, the number of operations, and whether data and result are bf16.

    If both are, ``is_affine`` programs multiply with a constant row, add one, and may clamp.
    """

    blocks: i64
    height: i64
    width: i64
    block_height: i64
    block_width: i64
    operations: i64
    rounded_data: i64
    rounded_result: i64
    is_affine: i64


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


class Opcode(IntEnum):
    """The operations on the result so far and an operand; those from `ABSOLUTE` on are unary."""

    ADD = 0
    SUBTRACT = 1
    SUBTRACT_FROM = 2
    MULTIPLY = 3
    DIVIDE = 4
    DIVIDE_INTO = 5
    MAXIMUM = 6
    MAXIMUM_OF = 7
    MINIMUM = 8
    MINIMUM_OF = 9
    SQUARED_DIFFERENCE = 10
    QUANTIZE = 11
    ABSOLUTE = 20
    NEGATIVE = 21
    SQUARE = 22
    ROOT = 23
    FLOOR = 24
    CEILING = 25
    ROUND = 26
    COPY = 27
    ACTIVATION = 100
    """Added to an `ActivationKind`."""


# Integers, as kernels cannot use enumerations.
ABSOLUTE, COPY, ACTIVATION = int(Opcode.ABSOLUTE), int(Opcode.COPY), int(Opcode.ACTIVATION)
QUANTIZE = int(Opcode.QUANTIZE)


def _maximum(emit: Emit, x: Value, y: Value) -> Value:
    """Return ``y`` if it is greater, else ``x``, also if one is NaN."""
    return emit.builder.select(emit.builder.fcmp_ordered("<", x, y), y, x)


def _minimum(emit: Emit, x: Value, y: Value) -> Value:
    return emit.builder.select(emit.builder.fcmp_ordered("<", y, x), y, x)


def _squared_difference(emit: Emit, x: Value, y: Value) -> Value:
    difference = emit.subtract(x, y)
    return emit.multiply(difference, difference)


_BINARY: dict[Opcode, Callable[[Emit, Value, Value], Value]] = {
    Opcode.ADD: lambda emit, x, y: emit.add(x, y),
    Opcode.SUBTRACT: lambda emit, x, y: emit.subtract(x, y),
    Opcode.SUBTRACT_FROM: lambda emit, x, y: emit.subtract(y, x),
    Opcode.MULTIPLY: lambda emit, x, y: emit.multiply(x, y),
    Opcode.DIVIDE: lambda emit, x, y: emit.divide(x, y),
    Opcode.DIVIDE_INTO: lambda emit, x, y: emit.divide(y, x),
    Opcode.MAXIMUM: _maximum,
    Opcode.MAXIMUM_OF: lambda emit, x, y: _maximum(emit, y, x),
    Opcode.MINIMUM: _minimum,
    Opcode.MINIMUM_OF: lambda emit, x, y: _minimum(emit, y, x),
    Opcode.SQUARED_DIFFERENCE: _squared_difference,
}

_UNARY: dict[Opcode, Callable[[Emit, Value], Value]] = {
    Opcode.ABSOLUTE: lambda emit, x: emit.absolute(x),
    Opcode.NEGATIVE: lambda emit, x: emit.builder.fneg(x),
    Opcode.SQUARE: lambda emit, x: emit.multiply(x, x),
    Opcode.ROOT: lambda emit, x: emit.sqrt(x),
    Opcode.FLOOR: lambda emit, x: emit.intrinsic("llvm.floor", x),
    Opcode.CEILING: lambda emit, x: emit.intrinsic("llvm.ceil", x),
    Opcode.ROUND: lambda emit, x: emit.round(x),
    Opcode.COPY: lambda emit, x: x,
}


@instruction(*[types.int64] * 8)
def _binary(  # noqa: PLR0913 (values in registers)
    emit: Emit, code: Value, single: Value, out: Value, x: Value, y: Value, rows: Value, count: Value,
    apart: Value,
) -> None:  # fmt: skip
    """Combine rows of ``count`` elements with rows of an operand, or, if ``single``, with one number for each row.

    Rows of the operand are ``apart`` bytes from each other.
    """
    step = emit.builder.mul(count, emit.i64(4))

    def go(code: Opcode, single: bool) -> None:
        with emit.loop(rows, [out, x, y]) as (_, (target, source, other), following):
            same = emit.splat(emit.load(other, F32)) if single else None

            def body(offset: Value, load: Load, store: Store) -> None:
                first = load(emit.at(source, offset))
                second = same if single else load(emit.at(other, offset))
                store(_BINARY[code](emit, first, second), emit.at(target, offset))

            emit.vector_loop(count, body)
            following += [emit.at(target, step), emit.at(source, step), emit.at(other, apart)]

    number = emit.builder.add(code, emit.builder.mul(single, emit.i64(_SINGLE)))
    emit.switch(number, {c + s * _SINGLE: partial(go, c, bool(s)) for c in _BINARY for s in (0, 1)})


@instruction(*[types.int64] * 4)
def _unary(emit: Emit, code: Value, out: Value, x: Value, count: Value) -> None:
    """Apply a unary operation to ``count`` elements."""

    def go(code: Opcode) -> None:
        def body(offset: Value, load: Load, store: Store) -> None:
            store(_UNARY[code](emit, load(emit.at(x, offset))), emit.at(out, offset))

        emit.vector_loop(count, body)

    emit.switch(code, {c: partial(go, c) for c in _UNARY})


@device
def execute(  # noqa: PLR0913 (values in registers)
    job: int, first: int, second: int, out: int, x: int, image: int, row: int, column: int, rows: int, count: int
) -> None:  # fmt: skip
    """Execute all operations on rows of ``count`` elements."""
    step = job + 8 * ProgramJob.words
    for _ in range(load_i64(job, ProgramJob.operations)):
        code = load_i64(step, Instruction.opcode)
        if code >= ABSOLUTE:
            if code < ACTIVATION or x != out:  # activations work in place
                _unary(min(code, COPY), out, x, rows * count)
            if code >= ACTIVATION:
                apply_activation(
                    out,
                    0,
                    1,
                    rows * count,
                    code - ACTIVATION,
                    load_f32(step, Instruction.a),
                    load_f32(step, Instruction.b),
                )
        else:
            slot, down, along = (
                load_i64(step, Instruction.operand),
                load_i64(step, Instruction.row_stride),
                load_i64(step, Instruction.column_stride),
            )
            base = first if slot == 1 else second if slot == 2 else 0
            y = (
                base
                + load_i64(step, Instruction.address)
                + image * load_i64(step, Instruction.image_stride)
                + row * down
                + column * along
            )
            joined = rows == 1 or down == along * count  # rows of the operand are contiguous
            lines = 1 if joined else rows
            if code == QUANTIZE:
                length = rows * count // lines
                fake_quantize(
                    out, x, 4 * length, y, load_i64(step, Instruction.plane), down, along == 0, lines, length
                )
            else:
                _binary(code, along == 0, out, x, y, lines, rows * count // lines, down)
        step += 8 * Instruction.words
        x = out


@device
def _run_block(
    job: int, first: int, second: int, out: int, x: int, place: tuple[int, int, int, int, int]
) -> None:
    """Execute all operations on rows of ``count`` elements of f32."""
    image, row, column, rows, count = place
    at = element_index(job, image, row, column)
    execute(job, first, second, out + 4 * at, x + 4 * at, image, row, column, rows, count)


@device
def element_index(job: int, image: int, row: int, column: int) -> int:
    """Return the index of an element."""
    height, width = load_i64(job, ProgramJob.height), load_i64(job, ProgramJob.width)
    at: int = (image * height + row) * width + column
    return at


def program_task(name: str, run_block: Device[..., None]) -> Task:
    """Return the task that runs a program block by block."""

    def run_program(call: int) -> None:
        job, out, x, first, second, _ = load_args(call)
        height, width, tall, wide = (
            load_i64(job, ProgramJob.height),
            load_i64(job, ProgramJob.width),
            load_i64(job, ProgramJob.block_height),
            load_i64(job, ProgramJob.block_width),
        )
        across = (width + wide - 1) // wide
        per_image = (height + tall - 1) // tall * across
        blocks = load_i64(job, ProgramJob.blocks)
        index = next_unit(call, blocks)
        while index < blocks:
            image = index // per_image
            rest = index - image * per_image
            row, column = rest // across * tall, rest % across * wide
            place = image, row, column, min(tall, height - row), min(wide, width - column)
            run_block(job, first, second, out, x, place)
            index = next_unit(call, blocks)

    run_program.__qualname__ = name
    return Task(run_program)


RUN_PROGRAM = program_task("_run_program", _run_block)
"""Run a program on images of rows of f32: A is the data, B and C are operands. The job is followed by `Instruction`s."""
