"""Dot products with quantized weights, and dequantizing them, in vector registers."""

from __future__ import annotations

from functools import partial

from ..codegen import ir
from ..codegen.language import device, instruction, types
from ..codegen.vectors import F32, INTS, LANES, VECTOR, Emit, Value
from ._quantized import BITS, LANE_ORDER, NIBBLES_PER_LANE, PANEL_COLUMNS, MatrixRecord, Storage
from ._quantized_column import Column, load_word
from ._rows import transpose_vectors

__all__ = ["permute_row", "permuted_size", "dot_column", "dequantize_columns"]

# Independent accumulators.
ACCUMULATORS = 4


def _emit_dot(emit: Emit, words: Value, x: Value, place: Value, out: Value, kind: Storage) -> None:
    size = LANES * BITS[kind] // 8
    builder, column = emit.builder, Column(emit, kind, words, place)
    steps = builder.sdiv(load_word(emit, words, MatrixRecord.group_size), emit.i64(LANES))
    many = builder.sdiv(steps, emit.i64(ACCUMULATORS))
    rest = builder.sub(steps, builder.mul(many, emit.i64(ACCUMULATORS)))
    start = [column.values, x, *[emit.constant(0)] * ACCUMULATORS]
    with emit.loop(load_word(emit, words, MatrixRecord.groups), start) as (group, now, following):
        column.load_group(group)
        with emit.loop(many, now) as (_, (codes, at, *totals), after):
            after += [emit.at(codes, size * ACCUMULATORS), emit.at(at, 4 * LANES * ACCUMULATORS)]
            for step, total in enumerate(totals):
                numbers = column.dequantize(emit.at(codes, size * step))
                after.append(emit.fma(numbers, emit.load(emit.at(at, 4 * LANES * step)), total))
        with emit.loop(rest, after[:3]) as (_, (codes, at, total), last):
            total = emit.fma(column.dequantize(codes), emit.load(at), total)
            last += [emit.at(codes, size), emit.at(at, 4 * LANES), total]
        following += [*last, *after[3:]]
    total = following[2]
    for other in following[3:]:
        total = emit.add(total, other)
    emit.store(builder.fmul(emit.reduce_add(total), emit.load(column.column_scale, F32)), out)


@instruction(*[types.int64] * 5)
def _dot(emit: Emit, kind: Value, words: Value, x: Value, column: Value, out: Value) -> None:
    emit.switch(kind, {one: partial(_emit_dot, emit, words, x, column, out, one) for one in Storage})


@device
def dot_column(kind: int, words: int, x: int, column: int, out: int) -> None:
    """Compute the dot product of a row and a column.

    Args:
        kind: a `Storage`.
        words: the `MatrixRecord`.
        x: the row, permuted by `permute_row`.
        column: the index of the column.
        out: address of the result.
    """
    _dot(kind, words, x, column, out)


@instruction(types.int64, types.int64, types.int64)
def _permute(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Permute each vector of numbers by `LANE_ORDER`."""
    with emit.loop(emit.builder.sdiv(count, emit.i64(LANES)), [x, out]) as (_, (at, target), following):
        numbers = emit.load(at)
        places = ir.Constant(INTS, LANE_ORDER)
        emit.store(emit.builder.shuffle_vector(numbers, ir.Constant(VECTOR, ir.UNDEFINED), places), target)
        following += [emit.at(at, 4 * LANES), emit.at(target, 4 * LANES)]


@device
def permuted_size(kind: int, words: MatrixRecord) -> int:
    """Return the bytes of a row as `dot_column` reads it; 0 if that is the row itself."""
    if kind != 0 or NIBBLES_PER_LANE == 1:
        return 0
    size: int = 4 * words.groups * words.group_size
    return size


@device
def permute_row(size: int, x: int, out: int) -> None:
    """Store a row as `dot_column` reads it, which has so many bytes."""
    _permute(x, size // 4, out)


def _emit_dequantize(
    emit: Emit, words: Value, first: Value, start: Value, rows: Value, out: Value, kind: Storage
) -> None:
    bits = BITS[kind]
    builder = emit.builder
    columns = [Column(emit, kind, words, emit.at(first, j)) for j in range(LANES)]
    group = builder.sdiv(start, load_word(emit, words, MatrixRecord.group_size))
    for column in columns:
        column.load_group(group)
    gains = emit.load(columns[0].column_scale)
    steps = builder.sdiv(rows, emit.i64(LANES))
    offset = builder.sdiv(builder.mul(start, emit.i64(bits)), emit.i64(8))
    with emit.loop(steps, [offset, out]) as (_, (at, target), following):
        read = [column.dequantize(emit.at(column.values, at)) for column in columns]
        order = LANE_ORDER if kind is Storage.LUT4 else range(LANES)
        for k, row in zip(order, transpose_vectors(emit, read), strict=True):
            emit.store(emit.multiply(row, gains), emit.at(target, 4 * PANEL_COLUMNS * k))
        following += [emit.at(at, LANES * bits // 8), emit.at(target, 4 * PANEL_COLUMNS * LANES)]


@instruction(*[types.int64] * 6)
def _dequantize(
    emit: Emit, kind: Value, words: Value, first: Value, start: Value, rows: Value, out: Value
) -> None:
    emit.switch(
        kind, {one: partial(_emit_dequantize, emit, words, first, start, rows, out, one) for one in Storage}
    )


@device
def dequantize_columns(kind: int, words: int, first: int, start: int, rows: int, out: int) -> None:
    """Dequantize `LANES` columns to f32, row by row.

    Args:
        kind: a `Storage`.
        words: the `MatrixRecord`.
        first: the first column.
        start: the first row.
        rows: their number, all of one group.
        out: address of the result.
    """
    _dequantize(kind, words, first, start, rows, out)
