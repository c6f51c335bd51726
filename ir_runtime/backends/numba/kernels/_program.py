"""Chains of element-wise operations as programs, which one kernel reads and carries out block by block.

A block stays in the first cache from the first operation to the last. Each operation is a loop over
vectors; nothing is compiled for a chain.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any

from ..codegen.language import device, instruction, types
from ..codegen.memory import fetch_add, load_f32, load_i64
from ..codegen.vectors import F32, Emit, Load, Store
from ..threading.task import Task, load_args
from ._activation_code import apply

__all__ = ["BLOCK", "HEAD", "OPERATIONS", "STEP", "WORKER", "Code"]

Value = Any

# Numbers in a block.
BLOCK = 4096
# Added to a code whose operand is one number for a row.
_SINGLE = 50
# Words of a job: where the number of operations is, before the first of them, and in each.
OPERATIONS, HEAD, STEP = 5, 8, 8


class Code(IntEnum):
    """What is done with the numbers so far and an operand; those from `ABSOLUTE` on have none."""

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
    ABSOLUTE = 20
    NEGATIVE = 21
    SQUARE = 22
    ROOT = 23
    FLOOR = 24
    CEILING = 25
    ROUND = 26
    SAME = 27
    CURVE = 100
    """Added to the number of a curve."""


# As numbers, since numba knows no enumerations here.
ABSOLUTE, SAME, CURVE = int(Code.ABSOLUTE), int(Code.SAME), int(Code.CURVE)


def _larger(emit: Emit, x: Value, y: Value) -> Value:
    """``y`` if it is larger for certain."""
    return emit.builder.select(emit.builder.fcmp_ordered("<", x, y), y, x)


def _smaller(emit: Emit, x: Value, y: Value) -> Value:
    return emit.builder.select(emit.builder.fcmp_ordered("<", y, x), y, x)


def _squared_difference(emit: Emit, x: Value, y: Value) -> Value:
    difference = emit.subtract(x, y)
    return emit.multiply(difference, difference)


_PAIRS: dict[Code, Callable[[Emit, Value, Value], Value]] = {
    Code.ADD: lambda emit, x, y: emit.add(x, y),
    Code.SUBTRACT: lambda emit, x, y: emit.subtract(x, y),
    Code.SUBTRACT_FROM: lambda emit, x, y: emit.subtract(y, x),
    Code.MULTIPLY: lambda emit, x, y: emit.multiply(x, y),
    Code.DIVIDE: lambda emit, x, y: emit.divide(x, y),
    Code.DIVIDE_INTO: lambda emit, x, y: emit.divide(y, x),
    Code.MAXIMUM: _larger,
    Code.MAXIMUM_OF: lambda emit, x, y: _larger(emit, y, x),
    Code.MINIMUM: _smaller,
    Code.MINIMUM_OF: lambda emit, x, y: _smaller(emit, y, x),
    Code.SQUARED_DIFFERENCE: _squared_difference,
}

_SINGLES: dict[Code, Callable[[Emit, Value], Value]] = {
    Code.ABSOLUTE: lambda emit, x: emit.absolute(x),
    Code.NEGATIVE: lambda emit, x: emit.builder.fneg(x),
    Code.SQUARE: lambda emit, x: emit.multiply(x, x),
    Code.ROOT: lambda emit, x: emit.sqrt(x),
    Code.FLOOR: lambda emit, x: emit.intrinsic("llvm.floor", x),
    Code.CEILING: lambda emit, x: emit.intrinsic("llvm.ceil", x),
    Code.ROUND: lambda emit, x: emit.round(x),
    Code.SAME: lambda emit, x: x,
}


@instruction(*[types.int64] * 8)
def _pairs(
    emit: Emit, code: Value, single: Value, out: Value, x: Value, y: Value, rows: Value, count: Value,
    apart: Value,
) -> None:  # fmt: skip
    """Rows of ``count`` numbers with rows of an operand, or, if ``single``, with one number of it each.

    Those of the operand lie ``apart`` bytes from each other.
    """
    step = emit.builder.mul(count, emit.i64(4))

    def go(code: Code, single: bool) -> None:
        with emit.loop(rows, [out, x, y]) as (_, (target, source, other), following):
            same = emit.splat(emit.load(other, F32)) if single else None

            def body(offset: Value, load: Load, store: Store) -> None:
                first = load(emit.at(source, offset))
                second = same if single else load(emit.at(other, offset))
                store(_PAIRS[code](emit, first, second), emit.at(target, offset))

            emit.vector_loop(count, body)
            following += [emit.at(target, step), emit.at(source, step), emit.at(other, apart)]

    number = emit.builder.add(code, emit.builder.mul(single, emit.i64(_SINGLE)))
    emit.switch(number, {c + s * _SINGLE: partial(go, c, bool(s)) for c in _PAIRS for s in (0, 1)})


@instruction(*[types.int64] * 4)
def _singles(emit: Emit, code: Value, out: Value, x: Value, count: Value) -> None:
    """``count`` numbers by themselves."""

    def go(code: Code) -> None:
        def body(offset: Value, load: Load, store: Store) -> None:
            store(_SINGLES[code](emit, load(emit.at(x, offset))), emit.at(out, offset))

        emit.vector_loop(count, body)

    emit.switch(code, {c: partial(go, c) for c in _SINGLES})


@device
def _carry_out(
    job: int, first: int, second: int, out: int, x: int, image: int, row: int, column: int, rows: int, count: int
) -> None:  # fmt: skip
    """All operations, on rows of ``count`` numbers."""
    step = job + 8 * HEAD
    for _ in range(load_i64(job, OPERATIONS)):
        code = load_i64(step, 0)
        if code >= ABSOLUTE:
            if code < CURVE or x != out:  # curves work in place
                _singles(min(code, SAME), out, x, rows * count)
            if code >= CURVE:
                apply(out, rows * count, code - CURVE, load_f32(step, 12), load_f32(step, 13))
        else:
            slot, down, along = load_i64(step, 1), load_i64(step, 4), load_i64(step, 5)
            base = first if slot == 1 else second if slot == 2 else 0
            y = base + load_i64(step, 2) + image * load_i64(step, 3) + row * down + column * along
            joined = rows == 1 or down == along * count  # rows of the operand follow each other
            lines = 1 if joined else rows
            _pairs(code, along == 0, out, x, y, lines, rows * count // lines, down)
        step += 8 * STEP
        x = out


def _work(call: int) -> None:
    job, out, x, first, second, counter = load_args(call)
    height, width, tall, wide = load_i64(job, 1), load_i64(job, 2), load_i64(job, 3), load_i64(job, 4)
    across = (width + wide - 1) // wide
    per_image = (height + tall - 1) // tall * across
    blocks = load_i64(job, 0)
    index = fetch_add(counter)
    while index < blocks:
        image = index // per_image
        rest = index - image * per_image
        row, column = rest // across * tall, rest % across * wide
        rows, count = min(tall, height - row), min(wide, width - column)
        at = 4 * ((image * height + row) * width + column)
        _carry_out(job, first, second, out + at, x + at, image, row, column, rows, count)
        index = fetch_add(counter)


WORKER = Task(_work)
"""Carries out a program on images of rows of f32 numbers: reads them as A, operands as B and C.

Its job: how many blocks; rows and numbers in a row; rows and numbers in a block; operations. Then for each: its
`Code`; its operand, 1 or 2, 0 for a constant; where that begins, in bytes, or the address of a constant; how many bytes
on it is for the next image, row, number; and two f32, the settings of a curve.
"""
