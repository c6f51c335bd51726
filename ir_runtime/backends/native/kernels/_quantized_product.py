"""Products of f32 rows with a packed matrix of quantized weights, dequantized in vector registers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import ClassVar

import numpy as np

from ....ir.tensor import Array
from ... import Kernel
from ...common.kept_memory import empty
from ..codegen import ir
from ..codegen.language import device, instruction, types
from ..codegen.vectors import F32, INTS, LANES, VECTOR, Emit, Value
from ..threading.parallel import replayed, threads
from ._epilogue import Epilogue
from ._packed_epilogue import PackedEpilogue
from ._quantized import (
    BITS,
    LANE_ORDER,
    NIBBLES_PER_LANE,
    PANEL_COLUMNS,
    Column,
    MatrixRecord,
    Storage,
    load_word,
    panel_count,
)
from ._rows import copy_row, transpose_vectors

__all__ = [
    "QuantizedProduct",
    "copy_columns",
    "permute_row",
    "permuted_size",
    "dot_column",
    "dequantize_columns",
]


@device
def copy_columns(block: int, rows: int, columns: int, out: int, stride: int) -> None:
    """Copy columns from a block of whole panels to rows that are ``stride`` bytes apart."""
    for row in range(rows):
        copy_row(block + 4 * PANEL_COLUMNS * row, columns, out + stride * row)


class QuantizedProduct(ABC):
    """A product with a packed matrix, and its epilogue; its calls can be recorded.

    Args:
        columns: the number of columns of the matrix.
        epilogue: the fused layers.
    """

    name: ClassVar[str] = ""
    """The name shown in profiles, as `name` of a `Kernel`."""
    min_parallel_work: ClassVar[int] = 1 << 17
    """The number of multiplications from which several threads are faster."""

    def __init__(self, columns: int, epilogue: Epilogue) -> None:
        self._columns, self._panels = columns, panel_count(columns)
        self._scale, self._bias = (
            self._per_column(np.full(1, usual, np.float32) if row is None else row)
            for row, usual in ((epilogue.scale, 1), (epilogue.shift, 0))
        )
        self._epilogue = PackedEpilogue.of(epilogue)
        self._has_epilogue = epilogue.shift is not None or bool(epilogue.post_ops)

    @property
    def fields(self) -> dict[str, int]:
        """The job fields that describe the epilogue."""
        return {
            "column_scale": _address(self._scale), "bias": _address(self._bias),
            "epilogue": _address(self._epilogue.record) if self._has_epilogue else 0, "columns": self._columns,
        }  # fmt: skip

    def _per_column(self, row: Array) -> Array:
        """Expand a number or a row to one number per column, padded to whole panels."""
        full = np.zeros(self._panels * PANEL_COLUMNS, np.float32)
        full[: self._columns] = row
        return full

    @property
    def block(self) -> int:
        """The row length of the buffer for a panel's products; 0 if the last panel is full and needs no buffer."""
        return PANEL_COLUMNS if self._columns % PANEL_COLUMNS else 0

    @abstractmethod
    def multiply(self, x: Array, y: Array, first: Array, second: Array) -> None:
        """Multiply at least one row and store the products; additional epilogue inputs have the result's shape."""

    @property
    def kernel(self) -> Kernel:
        """The kernel of the product."""
        return Kernel(self._compute, name=self.name, replay=replayed())

    def _compute(self, x: Array, _: Array, *extras: Array) -> Array:
        y = empty((*x.shape[:-1], self._columns), np.float32)
        if rows := math.prod(x.shape[:-1]):
            first, second = self._epilogue.extra_arrays(extras, -1)
            self.multiply(x.reshape(rows, -1), y, first, second)
        return y

    def threads(self, size: int, units: int) -> int:
        """Return the number of threads that share ``size`` multiplications in ``units`` units."""
        return min(threads(), max(units, 1)) if size >= self.min_parallel_work else 1


def _address(array: Array) -> int:
    return int(array.ctypes.data) if array.size else 0


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
        x: the row, as permuted by `permute_row`.
        column: the column's index.
        out: the address of the result.
    """
    _dot(kind, words, x, column, out)


@instruction(types.int64, types.int64, types.int64)
def _permute(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Permute the numbers of each vector by `LANE_ORDER`."""
    with emit.loop(emit.builder.sdiv(count, emit.i64(LANES)), [x, out]) as (_, (at, target), following):
        numbers = emit.load(at)
        places = ir.Constant(INTS, LANE_ORDER)
        emit.store(emit.builder.shuffle_vector(numbers, ir.Constant(VECTOR, ir.UNDEFINED), places), target)
        following += [emit.at(at, 4 * LANES), emit.at(target, 4 * LANES)]


@device
def permuted_size(kind: int, words: MatrixRecord) -> int:
    """Return the size in bytes of a row as `dot_column` reads it; 0 if that is the row itself."""
    if kind != 0 or NIBBLES_PER_LANE == 1:
        return 0
    size: int = 4 * words.groups * words.group_size
    return size


@device
def permute_row(size: int, x: int, out: int) -> None:
    """Permute a row for `dot_column`, with the size from `permuted_size`."""
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
        rows: the number of rows, all of one group.
        out: the address of the result.
    """
    _dequantize(kind, words, first, start, rows, out)
