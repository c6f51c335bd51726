"""Weights of a few bits each, as they are stored: products with them, and unpacking them, in vector registers.

A vector is some numbers of one column of the product, which lie one behind the other. The numbers are
``(code - zero) * scale``, exactly as the file's own arithmetic rounds them. Groups have 16 different ones if
codes have 4 bits; these are made once for the group, and looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from llvmlite import ir

from ._language import device, instruction, types
from ._target import TARGET
from ._vectors import F32, I32, I64, INTS, LANES, VECTOR, Emit
from ._work import room, word

__all__ = ["BITS", "COLUMNS", "MATRIX", "Kind", "arrange", "dot", "unpack"]

Value = Any

VECTORS = TARGET.wide[1]
COLUMNS = VECTORS * LANES
# Numbers of 4 bits come into a vector as 32-bit words, repeated, lie there: one of each in turn.
_PARTS = max(LANES // 8, 1)
ORDER = [lane % _PARTS * 8 + lane // _PARTS for lane in range(LANES)]
# Sums that do not wait for each other.
CHAINS = 4

# Words about a matrix. Scales and zero points go on by so many bytes from a column, and from a group, to the
# next; a group has so many codes, of which whole vectors can be read. Of columns behind the last one, the
# last stands in. Gains are one more factor for each column, behind all rounding.
(
    KIND, CODES, CODES_NEXT, TABLE, GROUPS, SIZE, LAST, SCALE, SCALE_NEXT, SCALE_GROUP, ZERO, ZERO_NEXT,
    ZERO_GROUP, GAIN, ROUNDING, MATRIX,
) = range(16)  # fmt: skip


class Kind(IntEnum):
    """How numbers are stored, and whether their products with scales are rounded to f16."""

    FOUR = 0
    """4 bits, an index into 16 numbers; rounded as the words say."""
    SIGNED = 1
    """8 bits, with a sign."""
    UNSIGNED = 2
    """8 bits, without."""
    HALF = 3
    """f16."""
    BRAIN = 4
    """bf16, the upper half of f32."""
    SIGNED_ROUNDED = 5
    UNSIGNED_ROUNDED = 6
    HALF_ROUNDED = 7


BITS = dict(zip(Kind, (4, 8, 8, 16, 16, 8, 8, 16), strict=True))


def _same(value: int) -> Value:
    return ir.Constant(INTS, [value] * LANES)


def _read(emit: Emit, address: Value, kind: Any) -> Value:
    """What lies at an address, wherever that is."""
    found = emit.load(address, kind)
    found.align = 1
    return found


def _word(emit: Emit, words: Value, index: int) -> Value:
    return emit.load(emit.at(words, 8 * index), I64)


def _one(emit: Emit, address: Value) -> Value:
    return emit.splat(emit.load(address, F32))


def _four(emit: Emit, address: Value) -> Value:
    """Indices of 4 bits, in the order of `ORDER`; higher bits may be anything."""
    builder = emit.builder
    codes = _read(emit, address, ir.IntType(4 * LANES))
    if 4 * LANES < 32:
        codes = builder.zext(codes, I32)
    count = LANES * 32 // codes.type.width
    wide = ir.VectorType(codes.type, count)
    one = builder.insert_element(ir.Constant(wide, ir.Undefined), codes, ir.Constant(I32, 0))
    first = ir.Constant(ir.VectorType(I32, count), [0] * count)
    spread = builder.shuffle_vector(one, ir.Constant(wide, ir.Undefined), first)
    shifts = ir.Constant(INTS, [4 * (lane // _PARTS) for lane in range(LANES)])
    return builder.lshr(builder.bitcast(spread, INTS), shifts)


def _signed(emit: Emit, address: Value) -> Value:
    codes = _read(emit, address, ir.VectorType(ir.IntType(8), LANES))
    return emit.builder.sitofp(emit.builder.sext(codes, INTS), VECTOR)


def _unsigned(emit: Emit, address: Value) -> Value:
    codes = _read(emit, address, ir.VectorType(ir.IntType(8), LANES))
    return emit.builder.sitofp(emit.builder.zext(codes, INTS), VECTOR)


def _half(emit: Emit, address: Value) -> Value:
    """f16 as f32. Not every machine has an instruction for it; there, the bits are moved."""
    builder = emit.builder
    if TARGET.name != "plain":
        return builder.fpext(_read(emit, address, ir.VectorType(ir.HalfType(), LANES)), VECTOR)
    bits = builder.zext(_read(emit, address, ir.VectorType(ir.IntType(16), LANES)), INTS)
    rest = builder.and_(bits, _same(0x7FFF))
    moved = builder.bitcast(builder.shl(rest, _same(13)), VECTOR)
    found = builder.bitcast(emit.multiply(moved, emit.constant(2.0**112)), INTS)
    endless = builder.icmp_unsigned(">=", rest, _same(0x7C00))
    found = builder.select(endless, builder.or_(found, _same(0x7F800000)), found)
    sign = builder.shl(builder.and_(bits, _same(0x8000)), _same(16))
    return builder.bitcast(builder.or_(found, sign), VECTOR)


def _brain(emit: Emit, address: Value) -> Value:
    bits = emit.builder.zext(_read(emit, address, ir.VectorType(ir.IntType(16), LANES)), INTS)
    return emit.builder.bitcast(emit.builder.shl(bits, _same(16)), VECTOR)


_DECODE: dict[Kind, Callable[[Emit, Value], Value]] = {
    Kind.SIGNED: _signed, Kind.UNSIGNED: _unsigned, Kind.HALF: _half, Kind.BRAIN: _brain,
    Kind.SIGNED_ROUNDED: _signed, Kind.UNSIGNED_ROUNDED: _unsigned, Kind.HALF_ROUNDED: _half,
}  # fmt: skip


def _rounded(emit: Emit, numbers: Value, least: Value, factor: Value) -> Value:
    """Numbers with fewer digits: those below go where a large number is added, and taken away again.

    The large number lies so much above the power of two that is in a number that its last digit is the
    last one that stays. ``least`` has the bits of the lowest power that counts; with a factor of 0 nothing
    is rounded.
    """
    builder = emit.builder
    power = builder.and_(builder.bitcast(numbers, INTS), _same(0x7F800000))
    power = builder.select(builder.icmp_signed(">", power, least), power, least)
    large = emit.multiply(builder.bitcast(power, VECTOR), factor)
    return emit.subtract(emit.add(numbers, large), large)


def _as_half(emit: Emit, numbers: Value) -> Value:
    """Numbers rounded to f16."""
    builder = emit.builder
    if TARGET.name == "plain":
        return _rounded(emit, numbers, _same(0x38800000), emit.constant(1.5 * 2.0**13))
    return builder.fpext(builder.fptrunc(numbers, ir.VectorType(ir.HalfType(), LANES)), VECTOR)


class _Column:
    """What is known of a column: where its codes, scales and zero points are, and what they stand for in a group."""

    def __init__(self, emit: Emit, kind: Kind, words: Value, column: Value) -> None:
        self._emit, self._kind, self._words = emit, kind, words
        last = _word(emit, words, LAST)
        real = emit.builder.select(emit.builder.icmp_signed("<", column, last), column, last)
        self._column = real
        self.codes = self._from(CODES, real, CODES_NEXT)
        self._scales = self._from(SCALE, real, SCALE_NEXT)
        self._zeros = self._from(ZERO, real, ZERO_NEXT)
        self.gain = emit.at(_word(emit, words, GAIN), emit.builder.mul(column, emit.number(4)))
        self._room = emit.zeros(8) if kind is Kind.FOUR and LANES < 8 else None
        self._table: list[Value] = []

    def _from(self, start: int, index: Value, step: int, base: Value | None = None) -> Value:
        base = _word(self._emit, self._words, start) if base is None else base
        return self._emit.at(base, self._emit.builder.mul(index, _word(self._emit, self._words, step)))

    def enter(self, group: Value) -> None:
        """Make what is the same in a group."""
        emit = self._emit
        self._scale = _one(emit, self._from(SCALE, group, SCALE_GROUP, self._scales))
        self._zero = _one(emit, self._from(ZERO, group, ZERO_GROUP, self._zeros))
        if self._kind is not Kind.FOUR:
            return
        rounding = _word(emit, self._words, ROUNDING)
        least = emit.builder.bitcast(_one(emit, rounding), INTS)
        factor = _one(emit, emit.at(rounding, 4))
        table = _word(emit, self._words, TABLE)
        offsets = range(0, 64, 4 * LANES)
        scaled = [self._scaled(emit.load(emit.at(table, offset))) for offset in offsets]
        self._table = [_rounded(emit, numbers, least, factor) for numbers in scaled]
        if self._room is not None:
            for vector, offset in zip(self._table, offsets, strict=True):
                emit.store(vector, emit.at(self._room, offset))

    def numbers(self, address: Value) -> Value:
        """The numbers of the codes at an address."""
        if self._kind is Kind.FOUR:
            return self._found(_four(self._emit, address))
        stored = _DECODE[self._kind](self._emit, address)
        if self._kind in (Kind.HALF, Kind.BRAIN):
            return self._emit.multiply(stored, self._scale)
        scaled = self._scaled(stored)
        return _as_half(self._emit, scaled) if self._kind > Kind.BRAIN else scaled

    def _scaled(self, codes: Value) -> Value:
        return self._emit.multiply(self._emit.subtract(codes, self._zero), self._scale)

    def _found(self, indices: Value) -> Value:
        """Numbers of the table; only the low 4 bits of an index count."""
        emit, builder = self._emit, self._emit.builder
        if TARGET.name == "avx512":
            return _permuted(emit, "llvm.x86.avx512.permvar.sf.512", self._table[0], indices)
        if TARGET.name == "avx2":
            low, high = (_permuted(emit, "llvm.x86.avx2.permps", part, indices) for part in self._table)
            upper = builder.icmp_signed("<", builder.shl(indices, _same(28)), _same(0))
            return builder.select(upper, high, low)
        return self._gathered(builder.and_(indices, _same(15)))

    def _gathered(self, indices: Value) -> Value:
        """The same from memory, one by one."""
        emit, builder = self._emit, self._emit.builder
        found: Value = ir.Constant(VECTOR, ir.Undefined)
        for lane in range(LANES):
            place = ir.Constant(I32, lane)
            index = builder.zext(builder.extract_element(indices, place), I64)
            number = emit.load(emit.at(self._room, builder.mul(index, emit.number(4))), F32)
            found = builder.insert_element(found, number, place)
        return found


def _permuted(emit: Emit, name: str, table: Value, indices: Value) -> Value:
    function = emit._declared(name, ir.FunctionType(VECTOR, [VECTOR, INTS]))
    return emit.builder.call(function, [table, indices])


def _sum(emit: Emit, vector: Value) -> Value:
    """The sum of the lanes, halves by halves in registers."""
    count, builder = LANES, emit.builder
    while count > 1:
        count //= 2
        low, high = (
            ir.Constant(ir.VectorType(I32, count), list(range(first, first + count))) for first in (0, count)
        )
        none = ir.Constant(vector.type, ir.Undefined)
        vector = builder.fadd(
            builder.shuffle_vector(vector, none, low), builder.shuffle_vector(vector, none, high)
        )
    return builder.extract_element(vector, ir.Constant(I32, 0))


def _product(kind: Kind) -> Any:
    """One row times one column.

    Arguments: words of the matrix; the row, as `arrange` puts it; the column; where to put the number. One column after the other, codes are read as they lie, which caches foresee.
    """
    size = LANES * BITS[kind] // 8

    def write(emit: Emit, words: Value, x: Value, place: Value, out: Value) -> None:
        builder, column = emit.builder, _Column(emit, kind, words, place)
        steps = builder.sdiv(_word(emit, words, SIZE), emit.number(LANES))
        many = builder.sdiv(steps, emit.number(CHAINS))
        rest = builder.sub(steps, builder.mul(many, emit.number(CHAINS)))
        start = [column.codes, x, *[emit.constant(0)] * CHAINS]
        with emit.loop(_word(emit, words, GROUPS), start) as (group, now, following):
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
        emit.store(builder.fmul(_sum(emit, total), emit.load(column.gain, F32)), out)

    write.__name__ = f"product_{kind.name.lower()}"
    return instruction(*[types.int64] * 4)(write)


def _unpacking(kind: Kind) -> Any:
    """As many columns as a vector is long, as f32, row behind row.

    Arguments: words of the matrix; the first column; the first row, how many, all of one group; where to put them.
    """
    bits = BITS[kind]

    def write(emit: Emit, words: Value, first: Value, start: Value, rows: Value, out: Value) -> None:
        builder = emit.builder
        columns = [_Column(emit, kind, words, emit.at(first, j)) for j in range(LANES)]
        group = builder.sdiv(start, _word(emit, words, SIZE))
        for column in columns:
            column.enter(group)
        gains = emit.load(columns[0].gain)
        steps = builder.sdiv(rows, emit.number(LANES))
        offset = builder.sdiv(builder.mul(start, emit.number(bits)), emit.number(8))
        with emit.loop(steps, [offset, out]) as (_, (at, target), following):
            read = [column.numbers(emit.at(column.codes, at)) for column in columns]
            order = ORDER if kind is Kind.FOUR else range(LANES)
            for k, row in zip(order, _turned(emit, read), strict=True):
                emit.store(emit.multiply(row, gains), emit.at(target, 4 * COLUMNS * k))
            following += [emit.at(at, LANES * bits // 8), emit.at(target, 4 * COLUMNS * LANES)]

    write.__name__ = f"unpack_{kind.name.lower()}"
    return instruction(*[types.int64] * 5)(write)


def _turned(emit: Emit, rows: list[Value]) -> list[Value]:
    """A square of numbers, its rows as columns: the first half is dealt into the second, again and again."""
    half = LANES // 2
    low, high = (
        ir.Constant(INTS, [lane // 2 + start + LANES * (lane % 2) for lane in range(LANES)])
        for start in (0, half)
    )
    for _ in range(LANES.bit_length() - 1):
        pairs = zip(rows[:half], rows[half:], strict=True)
        rows = [emit.builder.shuffle_vector(a, b, mask) for a, b in pairs for mask in (low, high)]
    return rows


(
    _dot_four, _dot_signed, _dot_unsigned, _dot_half, _dot_brain, _dot_signed_rounded, _dot_unsigned_rounded,
    _dot_half_rounded,
) = map(_product, Kind)  # fmt: skip
(
    _four_out, _signed_out, _unsigned_out, _half_out, _brain_out, _signed_rounded_out, _unsigned_rounded_out,
    _half_rounded_out,
) = map(_unpacking, Kind)  # fmt: skip


@device
def dot(kind: int, words: int, x: int, column: int, out: int) -> None:
    """One row times one column: `_product` has the arguments."""
    if kind == 0:
        _dot_four(words, x, column, out)
    elif kind == 1:
        _dot_signed(words, x, column, out)
    elif kind == 2:
        _dot_unsigned(words, x, column, out)
    elif kind == 3:
        _dot_half(words, x, column, out)
    elif kind == 4:
        _dot_brain(words, x, column, out)
    elif kind == 5:
        _dot_signed_rounded(words, x, column, out)
    elif kind == 6:
        _dot_unsigned_rounded(words, x, column, out)
    else:
        _dot_half_rounded(words, x, column, out)


@instruction(types.int64, types.int64, types.int64)
def _reorder(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Numbers in vectors, those of each in the order of `ORDER`."""
    with emit.loop(emit.builder.sdiv(count, emit.number(LANES)), [x, out]) as (_, (at, target), following):
        numbers = emit.load(at)
        places = ir.Constant(INTS, ORDER)
        emit.store(emit.builder.shuffle_vector(numbers, ir.Constant(VECTOR, ir.Undefined), places), target)
        following += [emit.at(at, 4 * LANES), emit.at(target, 4 * LANES)]


@device
def arrange(kind: int, words: int, x: int) -> int:
    """A row as `dot` wants it: the same, or in `room`."""
    if kind != 0 or _PARTS == 1:
        return x
    count = word(words, GROUPS) * word(words, SIZE)
    out: int = room(4 * count)
    _reorder(x, count, out)
    return out


@device
def unpack(kind: int, words: int, first: int, start: int, rows: int, out: int) -> None:
    """Rows of some columns as f32: `_unpacking` has the arguments."""
    if kind == 0:
        _four_out(words, first, start, rows, out)
    elif kind == 1:
        _signed_out(words, first, start, rows, out)
    elif kind == 2:
        _unsigned_out(words, first, start, rows, out)
    elif kind == 3:
        _half_out(words, first, start, rows, out)
    elif kind == 4:
        _brain_out(words, first, start, rows, out)
    elif kind == 5:
        _signed_rounded_out(words, first, start, rows, out)
    elif kind == 6:
        _unsigned_rounded_out(words, first, start, rows, out)
    else:
        _half_rounded_out(words, first, start, rows, out)
