"""Operations of `_elementwise_program` on rows of f32."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial

from ..codegen.language import instruction, types
from ..codegen.vectors import F32, Emit, Load, Store, Value
from ._remainder_code import floor_mod, mod

__all__ = ["ABSOLUTE", "ACTIVATION", "BATCH_NORM", "COPY", "QUANTIZE", "Opcode", "apply_unary", "combine"]

# Added to an opcode whose operand is one number for a row.
_SINGLE = 50


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
    MOD = 11
    MOD_OF = 12
    FLOOR_MOD = 13
    FLOOR_MOD_OF = 14
    SLOPE = 15
    QUANTIZE = 16
    BATCH_NORM = 17
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
QUANTIZE, BATCH_NORM = int(Opcode.QUANTIZE), int(Opcode.BATCH_NORM)


def _maximum(emit: Emit, x: Value, y: Value) -> Value:
    """Return ``y`` if it is greater, else ``x``, also if one is NaN."""
    return emit.builder.select(emit.builder.fcmp_ordered("<", x, y), y, x)


def _minimum(emit: Emit, x: Value, y: Value) -> Value:
    return emit.builder.select(emit.builder.fcmp_ordered("<", y, x), y, x)


def _squared_difference(emit: Emit, x: Value, y: Value) -> Value:
    difference = emit.subtract(x, y)
    return emit.multiply(difference, difference)


def _slope(emit: Emit, x: Value, y: Value) -> Value:
    """Return ``x``, times ``y`` below 0."""
    return emit.builder.select(emit.builder.fcmp_ordered("<", x, emit.constant(0)), emit.multiply(x, y), x)


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
    Opcode.MOD: mod,
    Opcode.MOD_OF: lambda emit, x, y: mod(emit, y, x),
    Opcode.FLOOR_MOD: floor_mod,
    Opcode.FLOOR_MOD_OF: lambda emit, x, y: floor_mod(emit, y, x),
    Opcode.SLOPE: _slope,
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
def combine(  # noqa: PLR0913 (values in registers)
    emit: Emit, code: Value, single: Value, out: Value, x: Value, y: Value, rows: Value, count: Value,
    apart: Value,
) -> None:  # fmt: skip
    """Combine rows of ``count`` elements with rows of an operand, or, if ``single``, with one number for each row.

    Rows of the operand are ``apart`` bytes from each other.
    """
    step = emit.builder.mul(count, emit.i64(4))

    def go(code: Opcode, single: bool) -> None:
        with emit.loop(rows, [out, x, y]) as (_, (target, source, other), following):
            same = [emit.splat(emit.load(other, F32))] if single else []

            def body(offset: Value, load: Load, store: Store) -> None:
                first = load(emit.at(source, offset))
                second = same[0] if single else load(emit.at(other, offset))
                store(_BINARY[code](emit, first, second), emit.at(target, offset))

            emit.vector_loop(count, body)
            following += [emit.at(target, step), emit.at(source, step), emit.at(other, apart)]

    number = emit.builder.add(code, emit.builder.mul(single, emit.i64(_SINGLE)))
    emit.switch(number, {c + s * _SINGLE: partial(go, c, bool(s)) for c in _BINARY for s in (0, 1)})


@instruction(*[types.int64] * 4)
def apply_unary(emit: Emit, code: Value, out: Value, x: Value, count: Value) -> None:
    """Apply a unary operation to ``count`` elements."""

    def go(code: Opcode) -> None:
        def body(offset: Value, load: Load, store: Store) -> None:
            store(_UNARY[code](emit, load(emit.at(x, offset))), emit.at(out, offset))

        emit.vector_loop(count, body)

    emit.switch(code, {c: partial(go, c) for c in _UNARY})
