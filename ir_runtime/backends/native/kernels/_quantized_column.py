"""A column of quantized weights: dequantizes vectors of values of a group.

Numbers are ``(value - zero) * scale``, rounded exactly as by the arithmetic of the model. 4-bit values are looked up in a
table of 16 numbers that is computed once for a group.
"""

from __future__ import annotations

from ..codegen import ir
from ..codegen.target import TARGET
from ..codegen.vectors import F32, I32, I64, INTS, LANES, VECTOR, Emit, Value, splat_bits
from ._quantized import MatrixRecord, Storage, load_quantized, round_mantissa, round_to_f16

__all__ = ["Column", "load_word"]


def load_word(emit: Emit, words: Value, index: int) -> Value:
    """Load a field of a `MatrixRecord`."""
    return emit.load(emit.at(words, 8 * index), I64)


def _broadcast(emit: Emit, address: Value) -> Value:
    return emit.splat(emit.load(address, F32))


class Column:
    """Addresses of the values, scales and zero points of a column, and the scale of the current group."""

    def __init__(self, emit: Emit, kind: Storage, words: Value, column: Value) -> None:
        self._emit, self._kind, self._words = emit, kind, words
        last = load_word(emit, words, MatrixRecord.last_column)
        real = emit.builder.select(emit.builder.icmp_signed("<", column, last), column, last)
        self.values = self._from(MatrixRecord.values, real, MatrixRecord.column_stride)
        self._scales = self._from(MatrixRecord.scale, real, MatrixRecord.scale_column)
        self._zeros = self._from(MatrixRecord.zero, real, MatrixRecord.zero_column)
        self.column_scale = emit.at(
            load_word(emit, words, MatrixRecord.column_scale), emit.builder.mul(column, emit.i64(4))
        )
        self._scratch = [emit.stack_words(8)] if kind is Storage.LUT4 and LANES < 8 else []
        self._table: list[Value] = []

    def _from(self, start: int, index: Value, step: int, base: Value | None = None) -> Value:
        base = load_word(self._emit, self._words, start) if base is None else base
        return self._emit.at(base, self._emit.builder.mul(index, load_word(self._emit, self._words, step)))

    def load_group(self, group: Value) -> None:
        """Load scale and zero point of a group, and compute its lookup table."""
        emit = self._emit
        self._scale = _broadcast(
            emit, self._from(MatrixRecord.scale, group, MatrixRecord.scale_group, self._scales)
        )
        self._zero = _broadcast(
            emit, self._from(MatrixRecord.zero, group, MatrixRecord.zero_group, self._zeros)
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
        scaled = [self._scaled(emit.load(emit.at(table, offset))) for offset in offsets]
        self._table = [round_mantissa(emit, numbers, least, factor) for numbers in scaled]
        for scratch in self._scratch:
            for vector, offset in zip(self._table, offsets, strict=True):
                emit.store(vector, emit.at(scratch, offset))

    def dequantize(self, address: Value) -> Value:
        """Dequantize the vector of values at an address."""
        stored = load_quantized(self._emit, self._kind, address)
        if self._kind is Storage.LUT4:
            return self._lookup(stored)
        if self._kind in (Storage.F16, Storage.BF16):
            return self._emit.multiply(stored, self._scale)
        if (
            self._kind > Storage.BF16
        ):  # differences and products are exact in f32, so they may be one instruction
            return round_to_f16(self._emit, self._emit.fma(stored, self._scale, self._shift))
        return self._scaled(stored)

    def _scaled(self, values: Value) -> Value:
        return self._emit.multiply(self._emit.subtract(values, self._zero), self._scale)

    def _lookup(self, indices: Value) -> Value:
        """Look up numbers in the table by the low 4 bits of indices."""
        emit, builder = self._emit, self._emit.builder
        if TARGET.vectors.name == "avx512":
            return _permute(emit, "llvm.x86.avx512.permvar.sf.512", self._table[0], indices)
        if TARGET.vectors.name == "avx2":
            low, high = (_permute(emit, "llvm.x86.avx2.permps", part, indices) for part in self._table)
            upper = builder.icmp_signed("<", builder.shl(indices, splat_bits(28)), splat_bits(0))
            return builder.select(upper, high, low)
        return self._gather(builder.and_(indices, splat_bits(15)))

    def _gather(self, indices: Value) -> Value:
        """Look up numbers in memory one by one."""
        emit, builder = self._emit, self._emit.builder
        found: Value = ir.Constant(VECTOR, ir.UNDEFINED)
        for lane in range(LANES):
            place = ir.Constant(I32, lane)
            index = builder.zext(builder.extract_element(indices, place), I64)
            number = emit.load(emit.at(self._scratch[0], builder.mul(index, emit.i64(4))), F32)
            found = builder.insert_element(found, number, place)
        return found


def _permute(emit: Emit, name: str, table: Value, indices: Value) -> Value:
    return emit.builder.call(emit.function(name, VECTOR, VECTOR, INTS), [table, indices])
