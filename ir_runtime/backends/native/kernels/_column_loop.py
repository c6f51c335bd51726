"""Loops over columns: several vectors of them at a time, so that whole cache lines are read and no addition waits for another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..codegen.vectors import LANES, Emit, Load, Store, Value

__all__ = ["column_loop"]

# Vectors at a time.
ABREAST = 4


def column_loop(
    emit: Emit, count: Value, body: Callable[[Value, Sequence[tuple[Load, Store]]], None]
) -> None:  # fmt: skip
    """Loop over ``count`` columns of f32.

    ``body`` takes a byte offset, and for each of the vectors that follow one another there, functions to load and store.
    """
    builder, plain, wide = emit.builder, (emit.load, emit.store), ABREAST * LANES
    many = builder.sdiv(count, emit.i64(wide))
    with emit.loop(many, [emit.i64(0)]) as (_, (offset,), following):
        body(offset, [plain] * ABREAST)
        following.append(emit.at(offset, 4 * wide))
    left = builder.sub(count, builder.mul(many, emit.i64(wide)))
    whole = builder.sdiv(left, emit.i64(LANES))
    with emit.loop(whole, [following[0]]) as (_, (offset,), after):
        body(offset, [plain])
        after.append(emit.at(offset, 4 * LANES))
    rest = builder.sub(left, builder.mul(whole, emit.i64(LANES)))
    with builder.if_then(builder.icmp_signed(">", rest, emit.i64(0))):
        body(after[0], [emit.masked_access(rest)])
