"""Quantized weights: storage formats, dequantization in vector registers, and packed matrices.

A stored value is dequantized to ``(value - zero) * scale``, rounded exactly as in the model's arithmetic. 4-bit values are
indices to a table of 16 numbers that is computed once per group. A packed matrix is the bytes of the file, if whole vectors
can be read from them; otherwise its groups are padded.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import ClassVar

import numpy as np

from ....ir.array import Packed
from ....ir.element import ElementType as E
from ....ir.pages import held
from ....ir.quantized_weights import QuantizedWeights
from ....ir.tensor import Array
from ... import Kernel
from ...common.kept_memory import empty
from ...common.rounding import ROUNDINGS, dequantized_table, is_exact
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.target import TARGET
from ..codegen.vectors import F32, I32, I64, INTS, LANES, VECTOR, Emit, Value, splat_bits
from ..threading.capture import replayed
from ..threading.parallel import threads
from ._epilogue import Epilogue, PackedEpilogue
from ._rows import copy_row, transpose_vectors

__all__ = [
    "BITS",
    "Column",
    "copy_columns",
    "dequantize_columns",
    "dot_column",
    "load_word",
    "MatrixRecord",
    "pack",
    "PackedMatrix",
    "PANEL_COLUMNS",
    "panel_count",
    "permute_row",
    "permuted_size",
    "QuantizedProduct",
]

PANEL_VECTORS = TARGET.vectors.wide[1]
PANEL_COLUMNS = PANEL_VECTORS * LANES
# 4-bit values are loaded as a word that is repeated across the vector; each lane shifts its nibble to the low bits.
NIBBLES_PER_LANE = max(LANES // 8, 1)
LANE_ORDER = [lane % NIBBLES_PER_LANE * 8 + lane // NIBBLES_PER_LANE for lane in range(LANES)]


def panel_count(columns: int) -> int:
    """Return the number of panels of `PANEL_COLUMNS` columns that hold ``columns`` columns."""
    return -(-columns // PANEL_COLUMNS)


class MatrixRecord(Descriptor):
    """A quantized matrix in the layout that kernels read; strides are in bytes.

    ``storage`` is a `Storage`. ``group_size`` is a multiple of `LANES`. Columns past ``last_column`` are read as copies of
    it. ``column_scale`` is the address of a factor per column, applied to the products after all rounding; ``rounding`` is
    the address of the arguments ``least`` and ``factor`` of `round_mantissa`.
    """

    storage: i64
    values: i64
    column_stride: i64
    table: i64
    groups: i64
    group_size: i64
    last_column: i64
    scale: i64
    scale_column: i64
    scale_group: i64
    zero: i64
    zero_column: i64
    zero_group: i64
    column_scale: i64
    rounding: i64


class Storage(IntEnum):
    """Storage formats of quantized values; in the formats with ``_ROUNDED``, dequantized values are rounded to f16."""

    LUT4 = 0
    """4 bits: an index to a lookup table of 16 numbers."""
    I8 = 1
    """Signed 8-bit integers."""
    U8 = 2
    """Unsigned 8-bit integers."""
    F16 = 3
    """Half precision."""
    BF16 = 4
    """bfloat16, the upper half of f32."""
    I8_ROUNDED = 5
    U8_ROUNDED = 6
    F16_ROUNDED = 7


BITS = dict(zip(Storage, (4, 8, 8, 16, 16, 8, 8, 16), strict=True))
"""The bits of a value."""


def _load_u4(emit: Emit, address: Value) -> Value:
    """Load a vector of 4-bit indices in `LANE_ORDER`; bits 4 and above of each lane are arbitrary."""
    builder = emit.builder
    codes = emit.load(address, ir.IntType(4 * LANES), 1)
    if 4 * LANES < 32:
        codes = builder.zext(codes, I32)
    count = LANES * 32 // codes.type.width
    wide = ir.VectorType(codes.type, count)
    one = builder.insert_element(ir.Constant(wide, ir.UNDEFINED), codes, ir.Constant(I32, 0))
    first = ir.Constant(ir.VectorType(I32, count), [0] * count)
    spread = builder.shuffle_vector(one, ir.Constant(wide, ir.UNDEFINED), first)
    shifts = ir.Constant(INTS, [4 * (lane // NIBBLES_PER_LANE) for lane in range(LANES)])
    return builder.lshr(builder.bitcast(spread, INTS), shifts)


def _load_i8(emit: Emit, address: Value) -> Value:
    codes = emit.load(address, ir.VectorType(ir.I8, LANES), 1)
    return emit.builder.sitofp(emit.builder.sext(codes, INTS), VECTOR)


def _load_u8(emit: Emit, address: Value) -> Value:
    codes = emit.load(address, ir.VectorType(ir.I8, LANES), 1)
    return emit.builder.sitofp(emit.builder.zext(codes, INTS), VECTOR)


def _load_f16(emit: Emit, address: Value) -> Value:
    """Load f16 as f32, by integer instructions if the target has no conversion."""
    builder = emit.builder
    if TARGET.vectors.name != "plain":
        return builder.fpext(emit.load(address, ir.VectorType(ir.F16, LANES), 1), VECTOR)
    bits = builder.zext(emit.load(address, ir.VectorType(ir.I16, LANES), 1), INTS)
    rest = builder.and_(bits, splat_bits(0x7FFF))
    moved = builder.bitcast(builder.shl(rest, splat_bits(13)), VECTOR)
    finite = builder.bitcast(emit.multiply(moved, emit.constant(2.0**112)), INTS)
    is_special = builder.icmp_unsigned(">=", rest, splat_bits(0x7C00))  # infinity or NaN
    magnitude = builder.select(is_special, builder.or_(finite, splat_bits(0x7F800000)), finite)
    sign = builder.shl(builder.and_(bits, splat_bits(0x8000)), splat_bits(16))
    return builder.bitcast(builder.or_(magnitude, sign), VECTOR)


def _load_bf16(emit: Emit, address: Value) -> Value:
    bits = emit.builder.zext(emit.load(address, ir.VectorType(ir.I16, LANES), 1), INTS)
    return emit.builder.bitcast(emit.builder.shl(bits, splat_bits(16)), VECTOR)


_LOADERS: dict[Storage, Callable[[Emit, Value], Value]] = {
    Storage.LUT4: _load_u4, Storage.I8: _load_i8, Storage.U8: _load_u8, Storage.F16: _load_f16, Storage.BF16: _load_bf16,
    Storage.I8_ROUNDED: _load_i8, Storage.U8_ROUNDED: _load_u8, Storage.F16_ROUNDED: _load_f16,
}  # fmt: skip


def load_quantized(emit: Emit, kind: Storage, address: Value) -> Value:
    """Load a vector of quantized values, converted to f32; for `LUT4`, a vector of i32 indices in `LANE_ORDER`."""
    return _LOADERS[kind](emit, address)


def round_mantissa(emit: Emit, numbers: Value, least: Value, factor: Value) -> Value:
    """Round f32 numbers to fewer mantissa bits by adding and subtracting a large number.

    The large number is ``factor`` times the power of two of each number, so that its last mantissa bit is the last bit
    to keep. A factor of 0 disables rounding. ``least`` has the bits of the smallest normal number of the target format:
    smaller numbers are rounded to multiples of its smallest subnormal.
    """
    builder = emit.builder
    power = builder.and_(builder.bitcast(numbers, INTS), splat_bits(0x7F800000))
    power = builder.select(builder.icmp_signed(">", power, least), power, least)
    large = emit.multiply(builder.bitcast(power, VECTOR), factor)
    return emit.subtract(emit.add(numbers, large), large)


def round_to_f16(emit: Emit, numbers: Value) -> Value:
    """Round f32 numbers to the nearest f16, as f32."""
    builder = emit.builder
    if TARGET.vectors.name == "plain":
        return round_mantissa(emit, numbers, splat_bits(0x38800000), emit.constant(1.5 * 2.0**13))
    return builder.fpext(builder.fptrunc(numbers, ir.VectorType(ir.F16, LANES)), VECTOR)


def load_word(emit: Emit, words: Value, index: int) -> Value:
    """Load field ``index`` of a `MatrixRecord`."""
    return emit.load(emit.at(words, 8 * index), I64)


def _broadcast(emit: Emit, address: Value) -> Value:
    return emit.splat(emit.load(address, F32))


class Column:
    """Emits the dequantization of one column of a matrix, group by group.

    Call `load_group` first, then `dequantize` for the values of this group.
    """

    def __init__(self, emit: Emit, kind: Storage, words: Value, column: Value) -> None:
        self._emit, self._kind, self._words = emit, kind, words
        last = load_word(emit, words, MatrixRecord.last_column)
        real = emit.builder.select(emit.builder.icmp_signed("<", column, last), column, last)
        self.values = self._element(MatrixRecord.values, real, MatrixRecord.column_stride)
        self._scales = self._element(MatrixRecord.scale, real, MatrixRecord.scale_column)
        self._zeros = self._element(MatrixRecord.zero, real, MatrixRecord.zero_column)
        self.column_scale = emit.at(
            load_word(emit, words, MatrixRecord.column_scale), emit.builder.mul(column, emit.i64(4))
        )
        self._scratch = [emit.stack_words(8)] if kind is Storage.LUT4 and LANES < 8 else []
        self._table: list[Value] = []

    def _element(self, start: int, index: Value, step: int, base: Value | None = None) -> Value:
        """Return the address of element ``index`` of an array whose start and stride are fields of the record."""
        base = load_word(self._emit, self._words, start) if base is None else base
        return self._emit.at(base, self._emit.builder.mul(index, load_word(self._emit, self._words, step)))

    def load_group(self, group: Value) -> None:
        """Load the scale and the zero point of a group; for 4-bit values, compute its lookup table."""
        emit = self._emit
        self._scale = _broadcast(
            emit, self._element(MatrixRecord.scale, group, MatrixRecord.scale_group, self._scales)
        )
        self._zero = _broadcast(
            emit, self._element(MatrixRecord.zero, group, MatrixRecord.zero_group, self._zeros)
        )
        if self._kind > Storage.BF16:
            self._shift = emit.builder.fneg(emit.multiply(self._zero, self._scale))
        if self._kind is not Storage.LUT4:
            return
        rounding = load_word(emit, self._words, MatrixRecord.rounding)
        least = emit.builder.bitcast(_broadcast(emit, rounding), INTS)
        factor = _broadcast(emit, emit.at(rounding, 4))
        table = load_word(emit, self._words, MatrixRecord.table)
        offsets = range(0, 64, 4 * LANES)
        scaled = [self._scale_values(emit.load(emit.at(table, offset))) for offset in offsets]
        self._table = [round_mantissa(emit, numbers, least, factor) for numbers in scaled]
        for scratch in self._scratch:
            for vector, offset in zip(self._table, offsets, strict=True):
                emit.store(vector, emit.at(scratch, offset))

    def dequantize(self, address: Value) -> Value:
        """Load the vector of values at an address, and dequantize it."""
        stored = load_quantized(self._emit, self._kind, address)
        if self._kind is Storage.LUT4:
            return self._lookup(stored)
        if self._kind in (Storage.F16, Storage.BF16):
            return self._emit.multiply(stored, self._scale)
        if self._kind > Storage.BF16:
            # The difference and the product are exact in f32, so FMA gives the same.
            return round_to_f16(self._emit, self._emit.fma(stored, self._scale, self._shift))
        return self._scale_values(stored)

    def _scale_values(self, values: Value) -> Value:
        return self._emit.multiply(self._emit.subtract(values, self._zero), self._scale)

    def _lookup(self, indices: Value) -> Value:
        """Return the table entries selected by the low 4 bits of each index."""
        emit, builder = self._emit, self._emit.builder
        if TARGET.vectors.name == "avx512":
            return _permute(emit, "llvm.x86.avx512.permvar.sf.512", self._table[0], indices)
        if TARGET.vectors.name == "avx2":
            low, high = (_permute(emit, "llvm.x86.avx2.permps", part, indices) for part in self._table)
            upper = builder.icmp_signed("<", builder.shl(indices, splat_bits(28)), splat_bits(0))
            return builder.select(upper, high, low)
        return self._gather(builder.and_(indices, splat_bits(15)))

    def _gather(self, indices: Value) -> Value:
        """Return the table entries selected by each index, loaded one by one from a copy of the table in memory."""
        emit, builder = self._emit, self._emit.builder
        entries: Value = ir.Constant(VECTOR, ir.UNDEFINED)
        for lane in range(LANES):
            place = ir.Constant(I32, lane)
            index = builder.zext(builder.extract_element(indices, place), I64)
            number = emit.load(emit.at(self._scratch[0], builder.mul(index, emit.i64(4))), F32)
            entries = builder.insert_element(entries, number, place)
        return entries


def _permute(emit: Emit, name: str, table: Value, indices: Value) -> Value:
    return emit.builder.call(emit.function(name, VECTOR, VECTOR, INTS), [table, indices])


_STORAGE = {
    E.u4: Storage.LUT4, E.i4: Storage.LUT4, E.u2: Storage.LUT4, E.nf4: Storage.LUT4, E.f4e2m1: Storage.LUT4,
    E.u8: Storage.U8, E.i8: Storage.I8, E.f16: Storage.F16, E.bf16: Storage.BF16, E.f8e4m3: Storage.F16,
    E.f8e5m2: Storage.F16,
}  # fmt: skip
_SMALL_FLOATS = E.f8e4m3, E.f8e5m2
_ROUNDED_STORAGE = {
    Storage.I8: Storage.I8_ROUNDED, Storage.U8: Storage.U8_ROUNDED, Storage.F16: Storage.F16_ROUNDED,
}  # fmt: skip
_RANGES = {E.u8: (0.0, 255.0), E.i8: (-128.0, 127.0)}
# Columns that are packed at a time.
_BLOCK_COLUMNS = 512


@dataclass(frozen=True)
class PackedMatrix:
    """A quantized matrix in the layout that kernels read.

    Args:
        kind: the storage format.
        record: the fields of its `MatrixRecord` except ``column_scale``.
        columns: the number of columns of the product.
        groups: the number of groups of a column.
        size: the rows of a group.
        padded: the stored rows of a group; the rows of padding must be multiplied by zeros.
        kept: the arrays that ``record`` points to, which this object keeps alive.
    """

    kind: Storage
    record: dict[str, int]
    columns: int
    groups: int
    size: int
    padded: int
    kept: tuple[object, ...]

    @property
    def panels(self) -> int:
        """The number of panels that hold all columns."""
        return panel_count(self.columns)

    @property
    def depth(self) -> int:
        """The number of stored rows, with the padding of groups."""
        return self.groups * self.padded

    def pad_rows(self, x: Array) -> Array:
        """Return rows of the left operand, contiguous, with zeros inserted where the groups of the matrix are padded."""
        if self.padded == self.size:
            return np.ascontiguousarray(x)
        wide = np.zeros((len(x), self.groups, self.padded), np.float32)
        wide[:, :, : self.size] = x.reshape(len(x), self.groups, self.size)
        return wide.reshape(len(x), -1)


def pack(weights: QuantizedWeights, rows: bool) -> PackedMatrix | None:
    """Pack a quantized matrix, or return ``None`` if kernels cannot dequantize it exactly.

    Args:
        weights: the matrix.
        rows: whether its rows are the outputs of the product, as with ``transpose_b``; otherwise its columns are.
    """
    kind, groups, rounding = (
        _STORAGE.get(weights.element),
        weights.groups(rows),
        ROUNDINGS[weights.arithmetic],
    )
    if kind is None or groups is None:
        return None
    if rounding.dropped_bits and weights.scale is not None and kind is not Storage.LUT4:
        if weights.arithmetic is not E.f16 or kind not in _ROUNDED_STORAGE:
            return None
        kind = _ROUNDED_STORAGE[kind]
    scale, zero = weights.scales(rows)
    outputs, depth = weights.shape if rows else weights.shape[::-1]
    size = depth // groups
    padded = -(-size // LANES) * LANES
    values = _pack_values(weights, rows, kind, groups, padded)
    table = _table(weights.element, weights.arithmetic)
    if kind not in (Storage.F16, Storage.BF16) and not is_exact(
        _range(weights.element, values, table), scale, zero, rounding
    ):
        return None
    zeros = np.zeros((1, 1), np.float32) if zero is None else zero
    zeros = np.broadcast_to(zeros, (outputs, groups))
    factor = 1.5 * 2.0**rounding.dropped_bits if rounding.dropped_bits else 0
    steps = np.array([rounding.min_normal, factor], np.float32)  # arguments of `round_mantissa`
    record = {
        "storage": kind, "values": values.ctypes.data, "column_stride": values.strides[0], "table": table.ctypes.data,
        "groups": groups, "group_size": padded, "last_column": outputs - 1, "scale": scale.ctypes.data,
        "scale_column": scale.strides[0], "scale_group": scale.strides[1], "zero": zeros.ctypes.data,
        "zero_column": zeros.strides[0], "zero_group": zeros.strides[1], "rounding": steps.ctypes.data,
    }  # fmt: skip
    return PackedMatrix(kind, record, outputs, groups, size, padded, (values, table, scale, zeros, steps))


def _range(element: E, codes: Array, table: Array) -> tuple[float, float]:
    if element in _RANGES:
        return _RANGES[element]
    numbers = table if _STORAGE[element] is Storage.LUT4 else codes.view(np.float16)
    return float(numbers.min()), float(numbers.max())


def _pack_values(weights: QuantizedWeights, rows: bool, kind: Storage, groups: int, padded: int) -> Array:
    """Return the quantized values as ``[outputs, bytes]``: the bytes of the file if possible, else a padded copy."""
    outputs, depth = weights.shape if rows else weights.shape[::-1]
    if rows and groups * padded == depth and weights.element.bits == BITS[kind]:
        if isinstance(weights.codes, Packed):
            return held(weights.codes.raw[: outputs * depth // 2]).reshape(outputs, -1)
        if weights.element.bits >= 8:  # an array holds sub-byte values in a byte each; they are packed below
            return held(np.ascontiguousarray(weights.codes.reshape(outputs, depth))).view(np.uint8)
    values = np.zeros((outputs, groups * padded * BITS[kind] // 8), np.uint8)
    for first, block in weights.blocks(rows, _BLOCK_COLUMNS):
        values[first : first + len(block)] = _pad_groups(
            _as_bits(weights.element, block), groups, padded, kind is Storage.LUT4
        )
    return values


def _as_bits(element: E, codes: Array) -> Array:
    """Reinterpret quantized values as u8 or u16; f8 values are first converted to f16."""
    if element in _SMALL_FLOATS:
        codes = codes.astype(np.float16)
    codes = np.ascontiguousarray(codes)
    return codes.view(np.uint16 if codes.itemsize == 2 else np.uint8)


def _pad_groups(codes: Array, groups: int, padded: int, four: bool) -> Array:
    """Pad each group of values ``[outputs, depth]`` with zeros, and return the bytes; if ``four``, two values per byte."""
    outputs, depth = codes.shape
    wide = np.zeros((outputs, groups, padded), codes.dtype)
    wide[:, :, : depth // groups] = codes.reshape(outputs, groups, -1)
    flat = wide.reshape(outputs, -1)
    return (flat[:, ::2] & 15) | (flat[:, 1::2] << 4) if four else flat.view(np.uint8)


def _table(element: E, arithmetic: E) -> Array:
    """Return the numbers that the 16 codes of a 4-bit format stand for; zeros for other formats."""
    if _STORAGE[element] is not Storage.LUT4:
        return np.zeros(16, np.float32)
    return dequantized_table(element, arithmetic)


@device
def copy_columns(block: int, rows: int, columns: int, out: int, stride: int) -> None:
    """Copy the first ``columns`` of each row of a panel-wide block to rows that are ``stride`` bytes apart."""
    for row in range(rows):
        copy_row(block + 4 * PANEL_COLUMNS * row, columns, out + stride * row)


class QuantizedProduct(ABC):
    """A product of f32 rows with a quantized matrix, followed by an epilogue.

    Args:
        columns: the number of columns of the matrix.
        epilogue: the fused layers.
    """

    name: ClassVar[str] = ""
    """The name of the kernel in profiles."""
    min_parallel_work: ClassVar[int] = 1 << 17
    """The number of multiplications from which several threads are faster than one."""

    def __init__(self, columns: int, epilogue: Epilogue) -> None:
        self._columns, self._panels = columns, panel_count(columns)
        self._scale, self._bias = (
            self._expand_row(np.full(1, default, np.float32) if row is None else row)
            for row, default in ((epilogue.scale, 1), (epilogue.shift, 0))
        )
        self._epilogue = PackedEpilogue.of(epilogue)
        self._has_epilogue = epilogue.shift is not None or bool(epilogue.post_ops)

    @property
    def fields(self) -> dict[str, int]:
        """The fields of a job that describe the columns and the epilogue."""
        return {
            "column_scale": _address(self._scale), "bias": _address(self._bias),
            "epilogue": _address(self._epilogue.record) if self._has_epilogue else 0, "columns": self._columns,
        }  # fmt: skip

    def _expand_row(self, row: Array) -> Array:
        """Broadcast one element or one per column to all columns, padded with zeros to whole panels."""
        full = np.zeros(self._panels * PANEL_COLUMNS, np.float32)
        full[: self._columns] = row
        return full

    @property
    def block(self) -> int:
        """The columns of the buffer for the products of the last panel; 0 if that panel is full and needs none."""
        return PANEL_COLUMNS if self._columns % PANEL_COLUMNS else 0

    @abstractmethod
    def multiply(self, x: Array, y: Array, first: Array, second: Array) -> None:
        """Multiply rows ``x`` by the matrix, apply the epilogue, and store the result in ``y``.

        Args:
            x: the rows, at least one.
            y: the result.
            first: the first extra tensor of the epilogue, of the result's shape, or a placeholder.
            second: the second extra tensor.
        """

    @property
    def kernel(self) -> Kernel:
        """A kernel that computes the product for its first input, and whose calls can be recorded."""
        return Kernel(self._compute, name=self.name, replay=replayed())

    def _compute(self, x: Array, _: Array, *extras: Array) -> Array:
        y = empty((*x.shape[:-1], self._columns), np.float32)
        if rows := math.prod(x.shape[:-1]):
            first, second = self._epilogue.extra_arrays(extras, -1)
            self.multiply(x.reshape(rows, -1), y, first, second)
        return y

    def threads(self, size: int, units: int) -> int:
        """Return the number of threads to use for ``size`` multiplications in ``units`` units of work."""
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
    emit.switch(
        kind, {storage: partial(_emit_dot, emit, words, x, column, out, storage) for storage in Storage}
    )


@device
def dot_column(kind: int, words: int, x: int, column: int, out: int) -> None:
    """Compute the dot product of an f32 row and a quantized column, times the factor of the column.

    Args:
        kind: a `Storage`.
        words: the `MatrixRecord`.
        x: the row, permuted by `permute_row` if `permuted_size` is not 0.
        column: the index of the column.
        out: the address of the result.
    """
    _dot(kind, words, x, column, out)


@instruction(types.int64, types.int64, types.int64)
def _permute_row(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Permute the elements of each vector of a row by `LANE_ORDER`."""
    with emit.loop(emit.builder.sdiv(count, emit.i64(LANES)), [x, out]) as (_, (at, target), following):
        numbers = emit.load(at)
        places = ir.Constant(INTS, LANE_ORDER)
        emit.store(emit.builder.shuffle_vector(numbers, ir.Constant(VECTOR, ir.UNDEFINED), places), target)
        following += [emit.at(at, 4 * LANES), emit.at(target, 4 * LANES)]


@device
def permuted_size(kind: int, words: MatrixRecord) -> int:
    """Return the size in bytes of a permuted row for `dot_column`; 0 if `dot_column` reads rows unpermuted."""
    if kind != 0 or NIBBLES_PER_LANE == 1:
        return 0
    size: int = 4 * words.groups * words.group_size
    return size


@device
def permute_row(size: int, x: int, out: int) -> None:
    """Permute a row for `dot_column`; ``size`` is that from `permuted_size`."""
    _permute_row(x, size // 4, out)


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
        values = [column.dequantize(emit.at(column.values, at)) for column in columns]
        order = LANE_ORDER if kind is Storage.LUT4 else range(LANES)
        for k, row in zip(order, transpose_vectors(emit, values), strict=True):
            emit.store(emit.multiply(row, gains), emit.at(target, 4 * PANEL_COLUMNS * k))
        following += [emit.at(at, LANES * bits // 8), emit.at(target, 4 * PANEL_COLUMNS * LANES)]


@instruction(*[types.int64] * 6)
def _dequantize(
    emit: Emit, kind: Value, words: Value, first: Value, start: Value, rows: Value, out: Value
) -> None:
    emit.switch(
        kind,
        {
            storage: partial(_emit_dequantize, emit, words, first, start, rows, out, storage)
            for storage in Storage
        },
    )


@device
def dequantize_columns(kind: int, words: int, first: int, start: int, rows: int, out: int) -> None:
    """Dequantize `LANES` columns to the rows of a panel of `PANEL_COLUMNS` columns, times the factors of the columns.

    Args:
        kind: a `Storage`.
        words: the `MatrixRecord`.
        first: the first column.
        start: the first row.
        rows: the number of rows, a multiple of `LANES`, all in one group.
        out: the address of the first column in the panel.
    """
    _dequantize(kind, words, first, start, rows, out)
