"""Products with weights of a few bits each, and unpacking them, in vector registers."""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir

from ..codegen.language import device, instruction, types
from ..codegen.memory import alloc, load_i64
from ..codegen.vectors import F32, INTS, LANES, VECTOR, Emit
from ._quantized import BITS, COLUMNS, GROUPS, ORDER, PARTS, SIZE, Kind
from ._quantized_column import Column, word_of
from ._rows import transposed

__all__ = ["arrange", "dot", "unpack"]

Value = Any

# Sums that do not wait for each other.
CHAINS = 4


def _product(emit: Emit, words: Value, x: Value, place: Value, out: Value, kind: Kind) -> None:
    size = LANES * BITS[kind] // 8
    builder, column = emit.builder, Column(emit, kind, words, place)
    steps = builder.sdiv(word_of(emit, words, SIZE), emit.i64(LANES))
    many = builder.sdiv(steps, emit.i64(CHAINS))
    rest = builder.sub(steps, builder.mul(many, emit.i64(CHAINS)))
    start = [column.codes, x, *[emit.constant(0)] * CHAINS]
    with emit.loop(word_of(emit, words, GROUPS), start) as (group, now, following):
        column.enter(group)
        with emit.loop(many, now) as (_, (codes, at, *totals), after):
            after += [emit.at(codes, size * CHAINS), emit.at(at, 4 * LANES * CHAINS)]
            for step, total in enumerate(totals):
                numbers = column.numbers(emit.at(codes, size * step))
                after.append(emit.fma(numbers, emit.load(emit.at(at, 4 * LANES * step)), total))
        with emit.loop(rest, after[:3]) as (_, (codes, at, total), last):
            total = emit.fma(column.numbers(codes), emit.load(at), total)
            last += [emit.at(codes, size), emit.at(at, 4 * LANES), total]
        following += [*last, *after[3:]]
    total = following[2]
    for other in following[3:]:
        total = emit.add(total, other)
    emit.store(builder.fmul(emit.reduce_add(total), emit.load(column.gain, F32)), out)


@instruction(*[types.int64] * 5)
def _dot(emit: Emit, kind: Value, words: Value, x: Value, column: Value, out: Value) -> None:
    emit.switch(kind, {one: partial(_product, emit, words, x, column, out, one) for one in Kind})


@device
def dot(kind: int, words: int, x: int, column: int, out: int) -> None:
    """One row times one column. One column after the other, codes are read as they lie, which caches foresee.

    Args:
        kind: how codes are stored.
        words: those of the matrix.
        x: the row, as `arrange` puts it.
        column: which one.
        out: where to put the number.
    """
    _dot(kind, words, x, column, out)


@instruction(types.int64, types.int64, types.int64)
def _reorder(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Numbers in vectors, those of each in the order of `ORDER`."""
    with emit.loop(emit.builder.sdiv(count, emit.i64(LANES)), [x, out]) as (_, (at, target), following):
        numbers = emit.load(at)
        places = ir.Constant(INTS, ORDER)
        emit.store(emit.builder.shuffle_vector(numbers, ir.Constant(VECTOR, ir.Undefined), places), target)
        following += [emit.at(at, 4 * LANES), emit.at(target, 4 * LANES)]


@device
def arrange(kind: int, words: int, x: int) -> int:
    """A row as `dot` wants it: the same, or in `alloc`."""
    if kind != 0 or PARTS == 1:
        return x
    count = load_i64(words, GROUPS) * load_i64(words, SIZE)
    out: int = alloc(4 * count)
    _reorder(x, count, out)
    return out


def _columns(
    emit: Emit, words: Value, first: Value, start: Value, rows: Value, out: Value, kind: Kind
) -> None:
    bits = BITS[kind]
    builder = emit.builder
    columns = [Column(emit, kind, words, emit.at(first, j)) for j in range(LANES)]
    group = builder.sdiv(start, word_of(emit, words, SIZE))
    for column in columns:
        column.enter(group)
    gains = emit.load(columns[0].gain)
    steps = builder.sdiv(rows, emit.i64(LANES))
    offset = builder.sdiv(builder.mul(start, emit.i64(bits)), emit.i64(8))
    with emit.loop(steps, [offset, out]) as (_, (at, target), following):
        read = [column.numbers(emit.at(column.codes, at)) for column in columns]
        order = ORDER if kind is Kind.FOUR else range(LANES)
        for k, row in zip(order, transposed(emit, read), strict=True):
            emit.store(emit.multiply(row, gains), emit.at(target, 4 * COLUMNS * k))
        following += [emit.at(at, LANES * bits // 8), emit.at(target, 4 * COLUMNS * LANES)]


@instruction(*[types.int64] * 6)
def _unpack(
    emit: Emit, kind: Value, words: Value, first: Value, start: Value, rows: Value, out: Value
) -> None:
    emit.switch(kind, {one: partial(_columns, emit, words, first, start, rows, out, one) for one in Kind})


@device
def unpack(kind: int, words: int, first: int, start: int, rows: int, out: int) -> None:
    """As many columns as a vector is long, as f32, row behind row.

    Args:
        kind: how codes are stored.
        words: those of the matrix.
        first: the first column.
        start: the first row.
        rows: how many, all of one group.
        out: where to put them.
    """
    _unpack(kind, words, first, start, rows, out)
