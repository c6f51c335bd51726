"""Indices in memory, i32 or i64, and booleans."""

from __future__ import annotations

from ..codegen import ir
from ..codegen.language import device, instruction, types
from ..codegen.memory import load_i64, store_i64
from ..codegen.vectors import I32, I64, Emit

__all__ = ["load_boolean", "load_index", "store_boolean", "store_index"]

_I8 = ir.I8


@instruction(types.int64, types.int64, returns=types.int64)
def _load_i32(emit: Emit, address: ir.Value, place: ir.Value) -> ir.Value:
    builder = emit.builder
    return builder.sext(emit.load(emit.at(address, builder.mul(place, emit.i64(4))), I32), I64)


@instruction(types.int64, types.int64, types.int64)
def _store_i32(emit: Emit, address: ir.Value, place: ir.Value, index: ir.Value) -> None:
    builder = emit.builder
    emit.store(builder.trunc(index, I32), emit.at(address, builder.mul(place, emit.i64(4))))


@instruction(types.int64, types.int64, returns=types.int64)
def load_boolean(emit: Emit, address: ir.Value, place: ir.Value) -> ir.Value:
    """Load a byte that is 0 or 1."""
    return emit.builder.zext(emit.load(emit.at(address, place), _I8, 1), I64)


@instruction(types.int64, types.int64, types.int64)
def store_boolean(emit: Emit, address: ir.Value, place: ir.Value, number: ir.Value) -> None:
    """Store whether a number is not 0 as a byte."""
    builder = emit.builder
    is_set = builder.zext(builder.icmp_signed("!=", number, emit.i64(0)), _I8)
    emit.store(is_set, emit.at(address, place), 1)


@device
def load_index(address: int, place: int, size: int) -> int:
    """Load an index of 4 or 8 bytes."""
    found: int = load_i64(address, place) if size == 8 else _load_i32(address, place)
    return found


@device
def store_index(address: int, place: int, index: int, size: int) -> None:
    """Store an index as 4 or 8 bytes."""
    if size == 8:
        store_i64(address, place, index)
    else:
        _store_i32(address, place, index)
