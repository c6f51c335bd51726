"""Indices in memory, i32 or i64."""

from __future__ import annotations

from ..codegen import ir
from ..codegen.language import device, instruction, types
from ..codegen.memory import load_i64, store_i64
from ..codegen.vectors import I32, I64, Emit

__all__ = ["load_index", "store_index"]


@instruction(types.int64, types.int64, returns=types.int64)
def _load_i32(emit: Emit, address: ir.Value, place: ir.Value) -> ir.Value:
    builder = emit.builder
    return builder.sext(emit.load(emit.at(address, builder.mul(place, emit.i64(4))), I32), I64)


@instruction(types.int64, types.int64, types.int64)
def _store_i32(emit: Emit, address: ir.Value, place: ir.Value, index: ir.Value) -> None:
    builder = emit.builder
    emit.store(builder.trunc(index, I32), emit.at(address, builder.mul(place, emit.i64(4))))


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
