"""Rows of an operand, one after the other: element-wise loops over short rows then are one."""

from __future__ import annotations

from functools import partial

from ..codegen.language import instruction, types
from ..codegen.vectors import F32, LANES, Emit, Value

__all__ = ["expand_rows"]


@instruction(*[types.int64] * 6)
def expand_rows(
    emit: Emit, out: Value, x: Value, rows: Value, count: Value, apart: Value, single: Value
) -> None:  # fmt: skip
    """Copy rows of ``count`` elements that are ``apart`` bytes from each other, or, if ``single``, repeat one number for each.

    Whole vectors are stored where the next row, which is written later, has room for what is beyond the end of one.
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
