"""Quantized weights as they are stored: storage formats, and loading them into vectors of one column."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.target import TARGET
from ..codegen.vectors import I32, INTS, LANES, VECTOR, Emit, Value, splat_bits

__all__ = [
    "BITS",
    "PANEL_COLUMNS",
    "MatrixRecord",
    "LANE_ORDER",
    "Storage",
    "round_to_f16",
    "load_quantized",
    "panel_count",
    "splat_bits",
    "round_mantissa",
]

PANEL_VECTORS = TARGET.vectors.wide[1]
PANEL_COLUMNS = PANEL_VECTORS * LANES
# 4-bit values are loaded as repeated 32-bit words; a lane takes one nibble of each word in turn.
NIBBLES_PER_LANE = max(LANES // 8, 1)
LANE_ORDER = [lane % NIBBLES_PER_LANE * 8 + lane // NIBBLES_PER_LANE for lane in range(LANES)]


def panel_count(columns: int) -> int:
    """Return the number of panels of `PANEL_COLUMNS` columns, the last of which may have fewer."""
    return -(-columns // PANEL_COLUMNS)


class MatrixRecord(Descriptor):
    """A quantized matrix; strides are in bytes.

    A group has a multiple of `LANES` values. Columns after ``last_column`` repeat it. ``column_scale`` multiplies the
    products, after all rounding; ``rounding`` is the address of the two numbers of `round_mantissa`.
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
    """How values are stored, and whether their products with scales are rounded to f16."""

    LUT4 = 0
    """4 bits: an index to a lookup table of 16 numbers."""
    I8 = 1
    """Signed 8-bit integers."""
    U8 = 2
    """Unsigned 8-bit integers."""
    F16 = 3
    """f16."""
    BF16 = 4
    """bf16, the upper half of f32."""
    I8_ROUNDED = 5
    U8_ROUNDED = 6
    F16_ROUNDED = 7


BITS = dict(zip(Storage, (4, 8, 8, 16, 16, 8, 8, 16), strict=True))


def _load_u4(emit: Emit, address: Value) -> Value:
    """Load 4-bit indices in the order of `LANE_ORDER`; higher bits are arbitrary."""
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
    """Load f16 as f32; without an instruction for it, by shifting bits."""
    builder = emit.builder
    if TARGET.vectors.name != "plain":
        return builder.fpext(emit.load(address, ir.VectorType(ir.F16, LANES), 1), VECTOR)
    bits = builder.zext(emit.load(address, ir.VectorType(ir.IntType(16), LANES), 1), INTS)
    rest = builder.and_(bits, splat_bits(0x7FFF))
    moved = builder.bitcast(builder.shl(rest, splat_bits(13)), VECTOR)
    found = builder.bitcast(emit.multiply(moved, emit.constant(2.0**112)), INTS)
    endless = builder.icmp_unsigned(">=", rest, splat_bits(0x7C00))
    found = builder.select(endless, builder.or_(found, splat_bits(0x7F800000)), found)
    sign = builder.shl(builder.and_(bits, splat_bits(0x8000)), splat_bits(16))
    return builder.bitcast(builder.or_(found, sign), VECTOR)


def _load_bf16(emit: Emit, address: Value) -> Value:
    bits = emit.builder.zext(emit.load(address, ir.VectorType(ir.IntType(16), LANES), 1), INTS)
    return emit.builder.bitcast(emit.builder.shl(bits, splat_bits(16)), VECTOR)


_LOADERS: dict[Storage, Callable[[Emit, Value], Value]] = {
    Storage.LUT4: _load_u4, Storage.I8: _load_i8, Storage.U8: _load_u8, Storage.F16: _load_f16, Storage.BF16: _load_bf16,
    Storage.I8_ROUNDED: _load_i8, Storage.U8_ROUNDED: _load_u8, Storage.F16_ROUNDED: _load_f16,
}  # fmt: skip


def load_quantized(emit: Emit, kind: Storage, address: Value) -> Value:
    """Load quantized values as f32; those of 4 bits as indices."""
    return _LOADERS[kind](emit, address)


def round_mantissa(emit: Emit, numbers: Value, least: Value, factor: Value) -> Value:
    """Round mantissas to fewer bits by adding and subtracting a large number.

    The last bit of the large number, ``factor`` times the power of two of a number, is the last bit that stays.
    ``least`` has the bits of the smallest normal power of two; with a factor of 0, nothing is rounded.
    """
    builder = emit.builder
    power = builder.and_(builder.bitcast(numbers, INTS), splat_bits(0x7F800000))
    power = builder.select(builder.icmp_signed(">", power, least), power, least)
    large = emit.multiply(builder.bitcast(power, VECTOR), factor)
    return emit.subtract(emit.add(numbers, large), large)


def round_to_f16(emit: Emit, numbers: Value) -> Value:
    """Round numbers to f16."""
    builder = emit.builder
    if TARGET.vectors.name == "plain":
        return round_mantissa(emit, numbers, splat_bits(0x38800000), emit.constant(1.5 * 2.0**13))
    return builder.fpext(builder.fptrunc(numbers, ir.VectorType(ir.F16, LANES)), VECTOR)
