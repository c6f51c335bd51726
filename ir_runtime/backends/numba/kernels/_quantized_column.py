"""A column of weights of a few bits each: its codes, and the numbers they stand for in each group.

The numbers are ``(code - zero) * scale``, exactly as the file's own arithmetic rounds them. Groups have 16
different ones if codes have 4 bits; these are made once for the group, and looked up.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..codegen.target import TARGET
from ..codegen.vectors import F32, I32, I64, INTS, LANES, VECTOR, Emit
from ._quantized import (
    CODES,
    CODES_NEXT,
    GAIN,
    LAST,
    ROUNDING,
    SCALE,
    SCALE_GROUP,
    SCALE_NEXT,
    TABLE,
    ZERO,
    ZERO_GROUP,
    ZERO_NEXT,
    Storage,
    load_quantized,
    round_mantissa,
    round_to_f16,
    splat_bits,
)  # fmt: skip

__all__ = ["Column", "load_word"]

Value = Any


def load_word(emit: Emit, words: Value, index: int) -> Value:
    """One of the words about a matrix."""
    return emit.load(emit.at(words, 8 * index), I64)


def _broadcast(emit: Emit, address: Value) -> Value:
    return emit.splat(emit.load(address, F32))


class Column:
    """What is known of a column: where its codes, scales and zero points are, and what they stand for in a group."""

    def __init__(self, emit: Emit, kind: Storage, words: Value, column: Value) -> None:
        self._emit, self._kind, self._words = emit, kind, words
        last = load_word(emit, words, LAST)
        real = emit.builder.select(emit.builder.icmp_signed("<", column, last), column, last)
        self._column = real
        self.codes = self._from(CODES, real, CODES_NEXT)
        self._scales = self._from(SCALE, real, SCALE_NEXT)
        self._zeros = self._from(ZERO, real, ZERO_NEXT)
        self.column_scale = emit.at(load_word(emit, words, GAIN), emit.builder.mul(column, emit.i64(4)))
        self._scratch = emit.stack_words(8) if kind is Storage.LUT4 and LANES < 8 else None
        self._table: list[Value] = []

    def _from(self, start: int, index: Value, step: int, base: Value | None = None) -> Value:
        base = load_word(self._emit, self._words, start) if base is None else base
        return self._emit.at(base, self._emit.builder.mul(index, load_word(self._emit, self._words, step)))

    def load_group(self, group: Value) -> None:
        """Make what is the same in a group."""
        emit = self._emit
        self._scale = _broadcast(emit, self._from(SCALE, group, SCALE_GROUP, self._scales))
        self._zero = _broadcast(emit, self._from(ZERO, group, ZERO_GROUP, self._zeros))
        if self._kind is not Storage.LUT4:
            return
        rounding = load_word(emit, self._words, ROUNDING)
        least = emit.builder.bitcast(_broadcast(emit, rounding), INTS)
        factor = _broadcast(emit, emit.at(rounding, 4))
        table = load_word(emit, self._words, TABLE)
        offsets = range(0, 64, 4 * LANES)
        scaled = [self._scaled(emit.load(emit.at(table, offset))) for offset in offsets]
        self._table = [round_mantissa(emit, dequantize, least, factor) for dequantize in scaled]
        if self._scratch is not None:
            for vector, offset in zip(self._table, offsets, strict=True):
                emit.store(vector, emit.at(self._scratch, offset))

    def dequantize(self, address: Value) -> Value:
        """The numbers of the codes at an address."""
        stored = load_quantized(self._emit, self._kind, address)
        if self._kind is Storage.LUT4:
            return self._lookup(stored)
        if self._kind in (Storage.F16, Storage.BF16):
            return self._emit.multiply(stored, self._scale)
        scaled = self._scaled(stored)
        return round_to_f16(self._emit, scaled) if self._kind > Storage.BF16 else scaled

    def _scaled(self, codes: Value) -> Value:
        return self._emit.multiply(self._emit.subtract(codes, self._zero), self._scale)

    def _lookup(self, indices: Value) -> Value:
        """Numbers of the table; only the low 4 bits of an index count."""
        emit, builder = self._emit, self._emit.builder
        if TARGET.name == "avx512":
            return _permute(emit, "llvm.x86.avx512.permvar.sf.512", self._table[0], indices)
        if TARGET.name == "avx2":
            low, high = (_permute(emit, "llvm.x86.avx2.permps", part, indices) for part in self._table)
            upper = builder.icmp_signed("<", builder.shl(indices, splat_bits(28)), splat_bits(0))
            return builder.select(upper, high, low)
        return self._gather(builder.and_(indices, splat_bits(15)))

    def _gather(self, indices: Value) -> Value:
        """The same from memory, one by one."""
        emit, builder = self._emit, self._emit.builder
        found: Value = ir.Constant(VECTOR, ir.Undefined)
        for lane in range(LANES):
            place = ir.Constant(I32, lane)
            index = builder.zext(builder.extract_element(indices, place), I64)
            number = emit.load(emit.at(self._scratch, builder.mul(index, emit.i64(4))), F32)
            found = builder.insert_element(found, number, place)
        return found


def _permute(emit: Emit, name: str, table: Value, indices: Value) -> Value:
    return emit.builder.call(emit.function(name, VECTOR, VECTOR, INTS), [table, indices])
