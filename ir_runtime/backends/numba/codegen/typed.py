"""Vectors of `LANES` elements of any type of one to eight bytes, as operations on other types than f32 need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from llvmlite import ir

from .vectors import I32, I64, LANES, Emit, Value

__all__ = [
    "F64S",
    "I8S",
    "I64S",
    "constant_lanes",
    "load_lanes",
    "load_typed",
    "splat",
    "store_typed",
    "typed_loop",
]

I8S, I64S, F64S = (ir.VectorType(kind, LANES) for kind in (ir.IntType(8), I64, ir.DoubleType()))
_LABELS = {ir.FloatType(): "f32", ir.DoubleType(): "f64", ir.HalfType(): "f16"}

Body: TypeAlias = Callable[[Value, "Value | None"], None]
"""Takes the index of the first element, and a mask of the lanes that there are; ``None`` for all."""


def constant_lanes(kind: ir.Type, x: float) -> Value:
    """Return a vector constant with the same number in every lane."""
    return ir.Constant(kind, [x] * LANES)


def splat(emit: Emit, x: Value) -> Value:
    """Broadcast a number to every lane."""
    none = ir.Constant(ir.VectorType(x.type, LANES), ir.Undefined)
    lane = emit.builder.insert_element(none, x, ir.Constant(I32, 0))
    return emit.builder.shuffle_vector(lane, none, ir.Constant(ir.VectorType(I32, LANES), [0] * LANES))


def typed_loop(emit: Emit, count: Value, body: Body) -> None:
    """Loop over ``count`` elements, a vector at a time, and the rest with a mask."""
    builder, lanes = emit.builder, emit.i64(LANES)
    whole = builder.sdiv(count, lanes)
    with emit.loop(whole) as (i, _, _following):
        body(builder.mul(i, lanes), None)
    done = builder.mul(whole, lanes)
    rest = builder.sub(count, done)
    with builder.if_then(builder.icmp_signed(">", rest, emit.i64(0))):
        body(done, emit.lane_mask(rest))


def load_typed(emit: Emit, kind: ir.VectorType, address: Value, index: Value, mask: Value | None) -> Value:
    """Load the vector from element ``index`` on; lanes beyond the mask are not read, and 0."""
    pointer, size = _place(emit, kind, address, index)
    if mask is None:
        found = emit.builder.load(pointer, typ=kind)
        found.align = size
        return found
    name = f"llvm.masked.load.v{LANES}{_label(kind)}.p0"
    function = emit.function(name, kind, pointer.type, I32, mask.type, kind)
    return emit.builder.call(function, [pointer, ir.Constant(I32, size), mask, ir.Constant(kind, None)])


def load_lanes(
    emit: Emit, kind: ir.VectorType, address: Value, index: Value, mask: Value | None, single: bool
) -> Value:
    """Load as `load_typed`, or, if ``single``, the one number at the address into every lane."""
    if not single:
        return load_typed(emit, kind, address, index, mask)
    number = emit.builder.load(emit.builder.inttoptr(address, ir.PointerType(kind.element)), typ=kind.element)
    number.align = _bits(kind) // 8
    return splat(emit, number)


def store_typed(emit: Emit, value: Value, address: Value, index: Value, mask: Value | None) -> None:
    """Store the vector from element ``index`` on, or the lanes of the mask."""
    pointer, size = _place(emit, value.type, address, index)
    if mask is None:
        emit.builder.store(value, pointer).align = size
        return
    name = f"llvm.masked.store.v{LANES}{_label(value.type)}.p0"
    function = emit.function(name, None, value.type, pointer.type, I32, mask.type)
    emit.builder.call(function, [value, pointer, ir.Constant(I32, size), mask])


def _place(emit: Emit, kind: ir.VectorType, address: Value, index: Value) -> tuple[Value, int]:
    """Return the pointer to an element, and its bytes."""
    size = _bits(kind) // 8
    at = emit.at(address, emit.builder.mul(index, emit.i64(size)))
    return emit.builder.inttoptr(at, ir.PointerType(kind)), size


def _bits(kind: ir.VectorType) -> int:
    label = _label(kind)
    return int(label[1:])


def _label(kind: ir.VectorType) -> str:
    element = kind.element
    return f"i{element.width}" if isinstance(element, ir.IntType) else _LABELS[element]
