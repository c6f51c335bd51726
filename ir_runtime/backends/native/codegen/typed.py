"""Vectors of `LANES` elements of any type of one to eight bytes, as operations on other types than f32 need."""

from __future__ import annotations

from . import ir
from .vectors import I64, LANES, Emit, Value

__all__ = ["F64S", "I8S", "I64S", "constant_lanes", "load_lanes", "load_typed", "store_typed"]

I8S, I64S, F64S = (ir.VectorType(kind, LANES) for kind in (ir.I8, I64, ir.F64))


def constant_lanes(kind: ir.Type, x: float) -> Value:
    """Return a vector constant with the same number in every lane."""
    return ir.Constant(kind, [x] * LANES)


def load_typed(emit: Emit, kind: ir.VectorType, address: Value, index: Value, mask: Value | None) -> Value:
    """Load the vector from element ``index`` on; lanes beyond the mask are not read, and 0."""
    place, size = _place(emit, kind, address, index)
    return emit.load(place, kind, size) if mask is None else emit.masked_load(place, mask, kind, size)


def load_lanes(
    emit: Emit, kind: ir.VectorType, address: Value, index: Value, mask: Value | None, single: bool
) -> Value:
    """Load as `load_typed`, or, if ``single``, the one number at the address into every lane."""
    if not single:
        return load_typed(emit, kind, address, index, mask)
    return emit.splat(emit.load(address, kind.element, kind.element.size))


def store_typed(emit: Emit, value: Value, address: Value, index: Value, mask: Value | None) -> None:
    """Store the vector from element ``index`` on, or the lanes of the mask."""
    place, size = _place(emit, value.type, address, index)
    if mask is None:
        emit.store(value, place, size)
    else:
        emit.masked_store(value, place, mask, size)


def _place(emit: Emit, kind: ir.VectorType, address: Value, index: Value) -> tuple[Value, int]:
    """Return the address of an element, and its bytes."""
    size = kind.element.size
    return emit.at(address, emit.builder.mul(index, emit.i64(size))), size
