"""bf16 vectors: rounding from f32, and dot products of pairs.

A 32-bit lane holds two bf16. With AVX512_BF16, `vdpbf16ps` adds both products to an f32 lane. Without it, operands are
widened to f32, where products of bf16 are exact, so only the order of the additions differs.
"""

from __future__ import annotations

from . import ir
from .target import TARGET, VENDOR
from .vectors import INTS, LANES, VECTOR, Emit, Value, splat_bits

__all__ = [
    "HAS_BF16", "IS_FASTER", "add_pairs", "add_pairs_of_word", "as_bf16", "high_of_pairs", "load_bf16", "low_of_pairs",
    "round_bf16", "store_bf16",
]  # fmt: skip

HAS_BF16 = TARGET.vectors.name == "avx512" and TARGET.has("avx512bf16")
"""Whether the target has bf16 instructions."""

IS_FASTER = HAS_BF16 and VENDOR == "AuthenticAMD"
"""Whether this processor multiplies bf16 faster than f32. AMD processors start one `vdpbf16ps` per cycle, as they do an FMA.
Intel processors take four times as long as for an FMA, twice as long per product. (They have AMX, which no kernel uses.)"""

_HALVES = ir.VectorType(ir.I16, LANES)


_BF16, _PAIRS = ir.VectorType(ir.BFLOAT, LANES), ir.VectorType(ir.BFLOAT, 2 * LANES)


def add_pairs(emit: Emit, total: Value, a: Value, b: Value) -> Value:
    """Add the two bf16 products of each lane of ``a`` and ``b``, vectors of i32, to the f32 lanes of ``total``."""
    if HAS_BF16:
        function = emit.function(f"llvm.x86.avx512bf16.dpbf16ps.{32 * LANES}", VECTOR, VECTOR, _PAIRS, _PAIRS)
        return emit.builder.call(function, [total, *(emit.builder.bitcast(x, _PAIRS) for x in (a, b))])
    for half in (low_of_pairs, high_of_pairs):
        total = emit.fma(half(emit, a), half(emit, b), total)
    return total


def add_pairs_of_word(emit: Emit, total: Value, line: Value, along: Value, offset: int, b: Value) -> Value:
    """Multiply the two bf16 at ``line + along + offset`` by those in each lane of ``b``, and add the products to ``total``.

    This is one `vdpbf16ps` with a memory operand: a separate load, as LLVM would emit, competes with multiplications for
    ports. It needs `HAS_BF16`. LLVM does not know of the read, so the function must not write the word.

    Args:
        emit: the code emitter.
        total: the sums, a vector of f32.
        line: the base address.
        along: a byte offset.
        offset: a constant byte offset.
        b: a vector of i32, each lane a pair of bf16.
    """
    code = f"vdpbf16ps {offset}($3,$4){{1to{LANES}}}, $2, $0"
    return emit.builder.call(ir.InlineAsm(VECTOR, code, "=v,0,v,r,r"), [total, b, line, along])


def low_of_pairs(emit: Emit, pairs: Value) -> Value:
    """Widen the low bf16 of each 32-bit lane to f32."""
    return emit.builder.bitcast(emit.builder.shl(pairs, splat_bits(16)), VECTOR)


def high_of_pairs(emit: Emit, pairs: Value) -> Value:
    """Widen the high bf16 of each 32-bit lane to f32."""
    return emit.builder.bitcast(emit.builder.and_(pairs, splat_bits(0xFFFF0000)), VECTOR)


def as_bf16(emit: Emit, value: Value) -> Value:
    """Round f32 to the nearest bf16, ties to even, and return the bits in 16-bit lanes; NaN stays NaN."""
    builder = emit.builder
    if HAS_BF16:
        function = emit.function(f"llvm.x86.avx512bf16.cvtneps2bf16.{32 * LANES}", _BF16, VECTOR)
        return builder.bitcast(builder.call(function, [value]), _HALVES)
    return round_bf16(emit, value)


def round_bf16(emit: Emit, value: Value) -> Value:
    """Do the same as `as_bf16` with integer instructions, which keep subnormal numbers, unlike the bf16 instruction."""
    builder = emit.builder
    bits = builder.bitcast(value, INTS)
    odd = builder.and_(builder.lshr(bits, splat_bits(16)), splat_bits(1))
    rounded = builder.add(builder.add(bits, splat_bits(0x7FFF)), odd)
    is_nan = builder.fcmp_unordered("uno", value, value)
    rounded = builder.select(is_nan, builder.or_(bits, splat_bits(0x400000)), rounded)
    return builder.trunc(builder.lshr(rounded, splat_bits(16)), _HALVES)


def load_bf16(emit: Emit, address: Value, count: Value | None = None) -> Value:
    """Load a vector of bf16 as f32; if ``count`` is not ``None``, only its first ``count`` lanes, with zeros in the others."""
    if count is None:
        halves = emit.load(address, _HALVES, 2)
    else:
        halves = emit.masked_load(address, emit.lane_mask(count), _HALVES, 2)
    return low_of_pairs(emit, emit.builder.zext(halves, INTS))


def store_bf16(emit: Emit, halves: Value, address: Value, count: Value | None = None) -> None:
    """Store a vector of bf16 from `as_bf16`; if ``count`` is not ``None``, only its first ``count`` lanes."""
    if count is None:
        emit.store(halves, address, 2)
    else:
        emit.masked_store(halves, address, emit.lane_mask(count), 2)
