"""bf16 in vectors: how f32 is rounded to it, and sums of products of pairs.

A 32-bit lane has two numbers. With AVX512_BF16, `vdpbf16ps` adds both of their products to a lane of f32. Without it, they
are widened to f32: products of bf16 are exact there, so the sums differ from those of the instruction only by their order.
"""

from __future__ import annotations

from . import ir
from .target import TARGET, VENDOR
from .vectors import INTS, LANES, VECTOR, Emit, Value, splat_bits

__all__ = [
    "HAS_BF16", "IS_FASTER", "add_pairs", "add_pairs_of_word", "as_bf16", "high_of_pairs", "load_bf16", "low_of_pairs",
    "rounded_bf16", "store_bf16",
]  # fmt: skip

HAS_BF16 = TARGET.vectors.name == "avx512" and TARGET.has("avx512bf16")
"""Whether this processor has instructions for bf16."""

IS_FASTER = HAS_BF16 and VENDOR == "AuthenticAMD"
"""Whether this processor multiplies bf16 faster than f32.

AMD's begin a `vdpbf16ps` in every cycle, as an FMA. Intel's take four times as long for it as for an FMA, so twice as long for
a product: what is fast there is AMX, which no kernel uses.
"""

_HALVES = ir.VectorType(ir.IntType(16), LANES)


_BF16, _PAIRS = ir.VectorType(ir.BFLOAT, LANES), ir.VectorType(ir.BFLOAT, 2 * LANES)


def add_pairs(emit: Emit, total: Value, a: Value, b: Value) -> Value:
    """Add to each lane of f32 the products of its two bf16 in ``a`` and ``b``, which are vectors of i32."""
    if HAS_BF16:
        function = emit.function(f"llvm.x86.avx512bf16.dpbf16ps.{32 * LANES}", VECTOR, VECTOR, _PAIRS, _PAIRS)
        return emit.builder.call(function, [total, *(emit.builder.bitcast(x, _PAIRS) for x in (a, b))])
    for half in (low_of_pairs, high_of_pairs):
        total = emit.fma(half(emit, a), half(emit, b), total)
    return total


def add_pairs_of_word(emit: Emit, total: Value, line: Value, along: Value, offset: int, b: Value) -> Value:
    """Add to each lane of f32 the products of two bf16 in memory with those of the lane of ``b``.

    The operand of the instruction is in memory, which needs `HAS_BF16`, and which nothing may write meanwhile: LLVM does not
    know that it is read. LLVM itself would load it by another instruction, which takes time of the units
    that multiply.

    Args:
        emit: the emitter.
        total: the sums.
        line: an address; the word is at the sum of this and the next two.
        along: a byte offset.
        offset: a constant byte offset.
        b: a vector of i32.
    """
    code = f"vdpbf16ps {offset}($3,$4){{1to{LANES}}}, $2, $0"
    return emit.builder.call(ir.InlineAsm(VECTOR, code, "=v,0,v,r,r"), [total, b, line, along])


def low_of_pairs(emit: Emit, pairs: Value) -> Value:
    """Widen the first bf16 of each lane of 32 bits to f32."""
    return emit.builder.bitcast(emit.builder.shl(pairs, splat_bits(16)), VECTOR)


def high_of_pairs(emit: Emit, pairs: Value) -> Value:
    """Widen the second bf16 of each lane of 32 bits to f32."""
    return emit.builder.bitcast(emit.builder.and_(pairs, splat_bits(0xFFFF0000)), VECTOR)


def as_bf16(emit: Emit, value: Value) -> Value:
    """Round f32 to the nearest bf16, halves to even; return the bits in lanes of 16. NaN stays NaN."""
    builder = emit.builder
    if HAS_BF16:
        function = emit.function(f"llvm.x86.avx512bf16.cvtneps2bf16.{32 * LANES}", _BF16, VECTOR)
        return builder.bitcast(builder.call(function, [value]), _HALVES)
    return rounded_bf16(emit, value)


def rounded_bf16(emit: Emit, value: Value) -> Value:
    """Compute `as_bf16` by integers, also of subnormal numbers, which the instruction takes for 0."""
    builder = emit.builder
    bits = builder.bitcast(value, INTS)
    odd = builder.and_(builder.lshr(bits, splat_bits(16)), splat_bits(1))
    rounded = builder.add(builder.add(bits, splat_bits(0x7FFF)), odd)
    is_nan = builder.fcmp_unordered("uno", value, value)
    rounded = builder.select(is_nan, builder.or_(bits, splat_bits(0x400000)), rounded)
    return builder.trunc(builder.lshr(rounded, splat_bits(16)), _HALVES)


def load_bf16(emit: Emit, address: Value, count: Value | None = None) -> Value:
    """Load a vector of bf16 as f32, or its first ``count`` lanes and zeros."""
    if count is None:
        halves = emit.load(address, _HALVES, 2)
    else:
        halves = emit.masked_load(address, emit.lane_mask(count), _HALVES, 2)
    return low_of_pairs(emit, emit.builder.zext(halves, INTS))


def store_bf16(emit: Emit, halves: Value, address: Value, count: Value | None = None) -> None:
    """Store a vector of `as_bf16`, or its first ``count`` lanes."""
    if count is None:
        emit.store(halves, address, 2)
    else:
        emit.masked_store(halves, address, emit.lane_mask(count), 2)
