"""Functions of rows of f32 and of some parameters, each of which is a row or one number for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..codegen.language import instruction, types
from ..codegen.vectors import F32, Emit, Load, Store, Value

__all__ = ["RowArguments", "emit_rows", "normalize_rows"]

RowArguments: TypeAlias = "tuple[Value, Value, Value, Value, Value, Value, Value, Value, Value]"
"""Addresses of the result and the data, bytes between rows of both; the address of the parameters, bytes from one to the next,
and between those of two rows; whether each is one number for a row; the number of rows, and of elements of a row."""

# Parameters of a batch normalization.
MEAN, DEVIATION, FACTOR, SHIFT = range(4)


def emit_rows(
    emit: Emit, arguments: RowArguments, count: int, formula: Callable[[Emit, Value, list[Value]], Value]
) -> None:
    """Store what a formula makes of each element of rows and ``count`` parameters."""
    out, x, stride, parameters, plane, apart, single, rows, length = arguments

    def go(single: bool) -> None:
        with emit.loop(rows, [out, x, parameters]) as (_, (target, source, numbers), following):
            planes = [emit.at(numbers, emit.builder.mul(plane, emit.i64(p))) for p in range(count)]
            same = [emit.splat(emit.load(place, F32)) for place in planes] if single else []

            def body(offset: Value, load: Load, store: Store) -> None:
                found = same or [load(emit.at(place, offset)) for place in planes]
                store(formula(emit, load(emit.at(source, offset)), found), emit.at(target, offset))

            emit.vector_loop(length, body)
            following += [emit.at(target, stride), emit.at(source, stride), emit.at(numbers, apart)]

    with emit.builder.if_else(emit.builder.icmp_signed("!=", single, emit.i64(0))) as (then, otherwise):
        with then:
            go(True)
        with otherwise:
            go(False)


def _normalized(emit: Emit, x: Value, p: list[Value]) -> Value:
    """Return the result of a BatchNormInference, by the operations of the reference in its order."""
    quotient = emit.divide(emit.subtract(x, p[MEAN]), p[DEVIATION])
    return emit.add(emit.fence(emit.multiply(quotient, p[FACTOR])), p[SHIFT])


@instruction(*[types.int64] * 9)
def normalize_rows(  # noqa: PLR0913 (values in registers)
    emit: Emit, out: Value, x: Value, stride: Value, parameters: Value, plane: Value, apart: Value, single: Value,
    rows: Value, count: Value,
) -> None:  # fmt: skip
    """Normalize rows by the mean, deviation, factor and shift of each channel; arguments as of `emit_rows`."""
    emit_rows(emit, (out, x, stride, parameters, plane, apart, single, rows, count), 4, _normalized)
