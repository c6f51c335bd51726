"""Weights of a few bits each, in panels: products with them, and unpacking them, in vector registers.

A panel has the columns of a product, as many as a tile is wide, row behind row. Codes of 4 bits lie so that
the low halves of the bytes of a vector are one vector of columns, and the high halves the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from llvmlite import ir

from ._language import device, instruction, types
from ._target import TARGET
from ._vectors import I32, INTS, LANES, VECTOR, Emit

__all__ = ["COLUMNS", "Kind", "bytes_of_row", "dot", "sums", "unpack"]

Value = Any

VECTORS = TARGET.wide[1]
COLUMNS = VECTORS * LANES
# Accumulators that hide how long a product takes.
CHAINS = 8
UNROLLED = max(CHAINS // VECTORS, 1)


class Kind(IntEnum):
    """How numbers are stored."""

    NIBBLE = 0
    """4 bits, the number plus 8."""
    TABLE = 1
    """4 bits, an index into 16 numbers."""
    BYTE = 2
    """8 bits, with a sign."""
    HALF = 3
    """f16."""
    BRAIN = 4
    """bf16, the upper half of f32."""


_BITS = {Kind.NIBBLE: 4, Kind.TABLE: 4, Kind.BYTE: 8, Kind.HALF: 16, Kind.BRAIN: 16}


def bytes_of_row(kind: Kind) -> int:
    """Bytes of a row of a panel."""
    return COLUMNS * _BITS[kind] // 8


def _integers(emit: Emit, values: Sequence[int]) -> Value:
    return ir.Constant(INTS, list(values))


def _same(emit: Emit, value: int) -> Value:
    return ir.Constant(INTS, [value] * LANES)


def _row(emit: Emit, kind: Kind, address: Value, table: Value) -> list[Value]:
    """The numbers of a row of a panel, as vectors."""
    if kind in (Kind.NIBBLE, Kind.TABLE):
        halves = [_halves(emit, kind, emit.at(address, LANES * pair), table) for pair in range(VECTORS // 2)]
        return [vector for pair in halves for vector in pair]
    size = LANES * _BITS[kind] // 8
    return [_DECODE[kind](emit, emit.at(address, size * j)) for j in range(VECTORS)]


def _halves(emit: Emit, kind: Kind, address: Value, table: Value) -> list[Value]:
    builder = emit.builder
    codes = builder.zext(emit.load(address, ir.VectorType(ir.IntType(8), LANES)), INTS)
    high = builder.lshr(codes, _same(emit, 4))
    if TARGET.name == "avx512":  # where 16 numbers are one register, and only the low bits of an index count
        return [_permuted(emit, table, codes), _permuted(emit, table, high)]
    low = builder.and_(codes, _same(emit, 15))
    if kind is Kind.NIBBLE:
        return [builder.sitofp(builder.sub(half, _same(emit, 8)), VECTOR) for half in (low, high)]
    return [_gathered(emit, table, half) for half in (low, high)]


def _permuted(emit: Emit, table: Value, indices: Value) -> Value:
    kind = ir.FunctionType(VECTOR, [VECTOR, INTS])
    function = emit._declared("llvm.x86.avx512.permvar.sf.512", kind)
    return emit.builder.call(function, [table, indices])


def _gathered(emit: Emit, table: Value, indices: Value) -> Value:
    """Numbers of a table in memory, one by one."""
    builder = emit.builder
    found: Value = ir.Constant(VECTOR, ir.Undefined)
    for lane in range(LANES):
        place = ir.Constant(I32, lane)
        index = builder.zext(builder.extract_element(indices, place), ir.IntType(64))
        number = emit.load(emit.at(table, builder.mul(index, emit.number(4))), ir.FloatType())
        found = builder.insert_element(found, number, place)
    return found


def _byte(emit: Emit, address: Value) -> Value:
    codes = emit.load(address, ir.VectorType(ir.IntType(8), LANES))
    return emit.builder.sitofp(emit.builder.sext(codes, INTS), VECTOR)


def _half(emit: Emit, address: Value) -> Value:
    """f16 as f32. Not every machine has an instruction for it; there, the bits are moved."""
    builder = emit.builder
    if TARGET.name != "plain":
        return builder.fpext(emit.load(address, ir.VectorType(ir.HalfType(), LANES)), VECTOR)
    bits = builder.zext(emit.load(address, ir.VectorType(ir.IntType(16), LANES)), INTS)
    rest = builder.and_(bits, _same(emit, 0x7FFF))
    scaled = builder.fmul(
        builder.bitcast(builder.shl(rest, _same(emit, 13)), VECTOR), emit.constant(2.0**112)
    )
    endless = builder.icmp_unsigned(">=", rest, _same(emit, 0x7C00))
    found = builder.bitcast(scaled, INTS)
    found = builder.select(endless, builder.or_(found, _same(emit, 0x7F800000)), found)
    sign = builder.shl(builder.and_(bits, _same(emit, 0x8000)), _same(emit, 16))
    return builder.bitcast(builder.or_(found, sign), VECTOR)


def _brain(emit: Emit, address: Value) -> Value:
    bits = emit.builder.zext(emit.load(address, ir.VectorType(ir.IntType(16), LANES)), INTS)
    return emit.builder.bitcast(emit.builder.shl(bits, _same(emit, 16)), VECTOR)


_DECODE = {Kind.BYTE: _byte, Kind.HALF: _half, Kind.BRAIN: _brain}


def _table(emit: Emit, kind: Kind, address: Value) -> Value:
    return emit.load(address) if TARGET.name == "avx512" else address


def _product(kind: Kind) -> Any:
    """One row times one panel.

    Arguments: codes; their table; numbers of the row; groups, rows of each; sums of the row's numbers by
    group; scales; zero points as f32, or 0 for none; where to put the columns.
    """
    size = bytes_of_row(kind)

    def write(
        emit: Emit, codes: Value, table: Value, x: Value, groups: Value, rows: Value, sums: Value, scale: Value,
        zero: Value, out: Value,
    ) -> None:  # fmt: skip
        builder = emit.builder
        known = _table(emit, kind, table)
        none = [emit.constant(0)] * VECTORS
        many = builder.sdiv(rows, emit.number(UNROLLED))
        rest = builder.sub(rows, builder.mul(many, emit.number(UNROLLED)))
        has_zero = builder.icmp_unsigned("!=", zero, emit.number(0))
        with emit.loop(groups, [codes, x, scale, zero, *none]) as (group, now, following):
            address, number, factor, point, *totals = now
            with emit.loop(many, [address, number, *none * UNROLLED]) as (_, inner, after):
                place, at, *chains = inner
                for step in range(UNROLLED):
                    weights = _row(emit, kind, emit.at(place, size * step), known)
                    splat = emit.splat(emit.load(emit.at(at, 4 * step), ir.FloatType()))
                    for j in range(VECTORS):
                        chain = step * VECTORS + j
                        chains[chain] = emit.fma(weights[j], splat, chains[chain])
                after += [emit.at(place, size * UNROLLED), emit.at(at, 4 * UNROLLED), *chains]
            place, at, *chains = after
            sums_of = [_added(emit, chains[j::VECTORS]) for j in range(VECTORS)]
            with emit.loop(rest, [place, at, *sums_of]) as (_, inner, after):
                place, at, *chains = inner
                weights = _row(emit, kind, place, known)
                splat = emit.splat(emit.load(at, ir.FloatType()))
                chains = [emit.fma(w, splat, c) for w, c in zip(weights, chains, strict=True)]
                after += [emit.at(place, size), emit.at(at, 4), *chains]
            place, at, *found = after
            total = emit.splat(emit.load(emit.at(sums, builder.mul(group, emit.number(4))), ir.FloatType()))
            lowered = _if(
                emit, has_zero, found,
                lambda: [
                    emit.subtract(f, emit.multiply(emit.load(emit.at(point, 4 * LANES * j)), total))
                    for j, f in enumerate(found)
                ],
            )  # fmt: skip
            next_point = builder.select(has_zero, emit.at(point, 4 * COLUMNS), point)
            totals = [
                emit.fma(lowered[j], emit.load(emit.at(factor, 4 * LANES * j)), totals[j])
                for j in range(VECTORS)
            ]
            following += [place, at, emit.at(factor, 4 * COLUMNS), next_point, *totals]
        for j, total in enumerate(following[4:]):
            emit.store(total, emit.at(out, 4 * LANES * j))

    write.__name__ = f"product_{kind.name.lower()}"
    return instruction(*[types.int64] * 9)(write)


def _added(emit: Emit, vectors: list[Value]) -> Value:
    total = vectors[0]
    for vector in vectors[1:]:
        total = emit.add(total, vector)
    return total


def _if(emit: Emit, condition: Value, otherwise: list[Value], then: Any) -> list[Value]:
    """What ``then`` makes where a condition holds, else ``otherwise``."""
    builder = emit.builder
    before = builder.block
    with builder.if_then(condition):
        made = then()
        inside = builder.block
    found = []
    for a, b in zip(made, otherwise, strict=True):
        phi = builder.phi(a.type)
        phi.add_incoming(a, inside)
        phi.add_incoming(b, before)
        found.append(phi)
    return found


def _unpacking(kind: Kind) -> Any:
    """Rows of a panel as f32. Arguments: codes; their table; rows; scales; zero points or 0; where to put them."""
    size = bytes_of_row(kind)

    def write(
        emit: Emit, codes: Value, table: Value, rows: Value, scale: Value, zero: Value, out: Value
    ) -> None:
        builder = emit.builder
        known = _table(emit, kind, table)
        factors = [emit.load(emit.at(scale, 4 * LANES * j)) for j in range(VECTORS)]
        has_zero = builder.icmp_unsigned("!=", zero, emit.number(0))
        none = [emit.constant(0)] * VECTORS
        points = _if(
            emit, has_zero, none, lambda: [emit.load(emit.at(zero, 4 * LANES * j)) for j in range(VECTORS)]
        )
        with emit.loop(rows, [codes, out]) as (_, (address, target), following):
            for j, vector in enumerate(_row(emit, kind, address, known)):
                number = emit.multiply(emit.subtract(vector, points[j]), factors[j])
                emit.store(number, emit.at(target, 4 * LANES * j))
            following += [emit.at(address, size), emit.at(target, 4 * COLUMNS)]

    write.__name__ = f"unpack_{kind.name.lower()}"
    return instruction(*[types.int64] * 6)(write)


_nibbles, _tables, _bytes, _halfs, _brains = map(_product, Kind)
_unpack_nibbles, _unpack_tables, _unpack_bytes, _unpack_halfs, _unpack_brains = map(_unpacking, Kind)


@device
def dot(
    kind: int,
    codes: int,
    table: int,
    x: int,
    groups: int,
    rows: int,
    sums: int,
    scale: int,
    zero: int,
    out: int,
) -> None:
    """One row times one panel: `_product` has the arguments."""
    if kind == 0:
        _nibbles(codes, table, x, groups, rows, sums, scale, zero, out)
    elif kind == 1:
        _tables(codes, table, x, groups, rows, sums, scale, zero, out)
    elif kind == 2:
        _bytes(codes, table, x, groups, rows, sums, scale, zero, out)
    elif kind == 3:
        _halfs(codes, table, x, groups, rows, sums, scale, zero, out)
    else:
        _brains(codes, table, x, groups, rows, sums, scale, zero, out)


@device
def unpack(kind: int, codes: int, table: int, rows: int, scale: int, zero: int, out: int) -> None:
    """Rows of a panel as f32: `_unpacking` has the arguments."""
    if kind == 0:
        _unpack_nibbles(codes, table, rows, scale, zero, out)
    elif kind == 1:
        _unpack_tables(codes, table, rows, scale, zero, out)
    elif kind == 2:
        _unpack_bytes(codes, table, rows, scale, zero, out)
    elif kind == 3:
        _unpack_halfs(codes, table, rows, scale, zero, out)
    else:
        _unpack_brains(codes, table, rows, scale, zero, out)


@instruction(types.int64, types.int64, types.int64, types.int64)
def sums(emit: Emit, x: Value, groups: Value, rows: Value, out: Value) -> None:
    """Add up each of the groups of numbers that lie in a row."""
    builder = emit.builder
    with emit.loop(groups, [x, out]) as (_, (start, target), following):
        whole = builder.sdiv(rows, emit.number(LANES))
        with emit.loop(whole, [emit.constant(0), start]) as (_, (total, at), after):
            after += [emit.add(total, emit.load(at)), emit.at(at, 4 * LANES)]
        total, at = after
        rest = builder.sub(rows, builder.mul(whole, emit.number(LANES)))
        with emit.loop(rest, [emit.sum(total), at]) as (_, (one, single), after):
            after += [builder.fadd(one, emit.load(single, ir.FloatType())), emit.at(single, 4)]
        emit.store(after[0], target)
        following += [after[1], emit.at(target, 4)]


TABLES = np.arange(-8, 8, dtype=np.float32)
