"""Vectors of 8-bit quantization levels: loads, stores, and dot products with integer weights.

With VNNI (`vpdpbusd`), levels are bytes, and a 32-bit lane accumulates four products of u8 by i8. Without it, levels are
stored in 16 bits, and a lane accumulates two products, by `pmaddwd`, whose sums never saturate, or two `smlal`. The integer
sums are the same on all targets.
"""

from __future__ import annotations

import numpy as np

from ...._util.arrays import DType
from . import ir
from .target import TARGET
from .vectors import I32, INTS, LANES, VECTOR, Emit, Value, splat_bits

__all__ = [
    "GROUP", "IS_FAST", "LEVEL_DTYPE", "LEVEL_SIZE", "WEIGHT_DTYPE", "at_least", "at_most", "dot", "dot_pairs", "load_levels", "max_levels", "no_levels", "store_levels", "to_levels",
]  # fmt: skip

_HAS_VNNI = TARGET.has("avx512vnni") and TARGET.has("avx512vl") if LANES == 16 else TARGET.has("avxvnni")
# A target with vectors wider than its registers emulates AVX-512 for tests: VNNI by multiplications of bit fields.
_EMULATES_VNNI = TARGET.vectors.name == "avx512" and not TARGET.has("avx512f")

GROUP = 4 if TARGET.vectors.name in ("avx512", "avx2") and (_HAS_VNNI or _EMULATES_VNNI) else 2
"""The number of levels in a 32-bit lane."""
LEVEL_DTYPE: DType = np.dtype(np.uint8 if GROUP == 4 else np.uint16)
WEIGHT_DTYPE: DType = np.dtype(np.int8 if GROUP == 4 else np.int16)
LEVEL_SIZE = LEVEL_DTYPE.itemsize

_BITS = 8 * LEVEL_SIZE
_LEVELS = ir.VectorType(ir.IntType(_BITS), LANES)
# The widest instruction that adds two 16-bit products per 32-bit lane, with its vector size in bits.
_MADD = next(
    (
        (bits, name)
        for feature, bits, name in (
            ("avx512bw", 512, "llvm.x86.avx512.pmaddw.d.512"),
            ("avx2", 256, "llvm.x86.avx2.pmadd.wd"),
            ("sse2", 128, "llvm.x86.sse2.pmadd.wd"),
        )
        if TARGET.has(feature) and bits <= 32 * LANES
    ),
    None,
)
# AArch64 multiplies four 16-bit elements and adds the 32-bit products in one instruction.
_HAS_SMLAL = TARGET.is_arm and LANES == 4

IS_FAST = GROUP == 4 or _MADD is not None
"""Whether the processor multiplies levels faster than f32, so that quantizing data only for a product pays off."""


def dot(emit: Emit, total: Value, levels: Value, weights: Value) -> Value:
    """Add the dot product of the `GROUP` levels and weights in each lane to ``total``; all are vectors of i32."""
    if GROUP == 2:
        return _add_pairs(emit, total, levels, weights)
    if _HAS_VNNI:
        function = emit.function(f"llvm.x86.avx512.vpdpbusd.{32 * LANES}", INTS, INTS, INTS, INTS)
        return emit.builder.call(function, [total, levels, weights])
    for place in range(GROUP):
        level, weight = (
            _field(emit, x, 8, place, signed) for x, signed in ((levels, False), (weights, True))
        )
        total = emit.builder.add(total, emit.builder.mul(level, weight))
    return total


def dot_pairs(emit: Emit, total: Value, a: Value, b: Value) -> Value:
    """Add the dot product of the two i16 in each lane of ``a`` and ``b`` to ``total``, modulo 2^32; all are vectors of i32."""
    if GROUP == 2 or not _HAS_VNNI:
        return _add_pairs(emit, total, a, b)
    function = emit.function(f"llvm.x86.avx512.vpdpwssd.{32 * LANES}", INTS, INTS, INTS, INTS)
    return emit.builder.call(function, [total, a, b])


def _add_pairs(emit: Emit, total: Value, a: Value, b: Value) -> Value:
    """Do the same as `dot_pairs`, without VNNI."""
    if _MADD is not None:
        return emit.builder.add(total, _pairs(emit, a, b, *_MADD))
    for place in range(2):
        total = emit.builder.add(total, _product(emit, a, b, place))
    return total


def _product(emit: Emit, a: Value, b: Value, place: int) -> Value:
    """Return the i32 product of the low (``place`` 0) or high (1) i16 in each lane."""
    if not _HAS_SMLAL:
        return emit.builder.mul(*(_field(emit, x, 16, place, True) for x in (a, b)))
    narrow = ir.VectorType(ir.I16, LANES)
    numbers = [
        emit.builder.trunc(emit.builder.lshr(x, splat_bits(16)) if place else x, narrow) for x in (a, b)
    ]
    multiply = emit.function("llvm.aarch64.neon.smull.v4i32", INTS, narrow, narrow)
    return emit.builder.call(multiply, numbers)


def _pairs(emit: Emit, levels: Value, weights: Value, bits: int, name: str) -> Value:
    """Return the sum of the two i16 products in each lane, computed by instruction ``name`` on parts of ``bits`` bits."""
    builder = emit.builder
    lanes = bits // 32
    narrow, wide = ir.VectorType(ir.I16, 2 * lanes), ir.VectorType(I32, lanes)
    function, parts = emit.function(name, wide, narrow, narrow), []
    for start in range(0, LANES, lanes):
        operands = [
            builder.bitcast(_lanes(emit, x, range(start, start + lanes)), narrow) for x in (levels, weights)
        ]
        parts.append(builder.call(function, operands))
    while len(parts) > 1:
        count = 2 * parts[0].type.count
        order = ir.Constant(ir.VectorType(I32, count), list(range(count)))
        parts = [builder.shuffle_vector(parts[i], parts[i + 1], order) for i in range(0, len(parts), 2)]
    return parts[0]


def _lanes(emit: Emit, x: Value, lanes: range) -> Value:
    if len(lanes) == LANES:
        return x
    order = ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes))
    return emit.builder.shuffle_vector(x, ir.Constant(INTS, ir.UNDEFINED), order)


def _field(emit: Emit, x: Value, bits: int, place: int, signed: bool) -> Value:
    """Extract ``bits`` bits of each lane, from bit ``place * bits`` on, as an i32 that is sign-extended if ``signed``."""
    above = splat_bits(32 - bits * (place + 1))
    shift = splat_bits(32 - bits)
    moved = emit.builder.shl(x, above)
    return emit.builder.ashr(moved, shift) if signed else emit.builder.lshr(moved, shift)


def load_levels(emit: Emit, address: Value) -> Value:
    """Load a vector of levels, converted to f32."""
    return emit.builder.uitofp(emit.load(address, _LEVELS), VECTOR)


def store_levels(emit: Emit, value: Value, address: Value) -> None:
    """Store a vector of f32 that holds integers from 0 to 255 as levels."""
    emit.store(emit.builder.trunc(emit.builder.fptosi(value, INTS), _LEVELS), address)


def to_levels(emit: Emit, value: Value, low: Value, high: Value) -> Value:
    """Round f32 to the nearest integer, ties to even, and clamp it to ``low`` and ``high``; the result is f32."""
    return at_most(emit, at_least(emit, emit.round(value), low), high)


def at_least(emit: Emit, value: Value, low: Value) -> Value:
    """Compute ``max(value, low)`` in one instruction; if either is NaN, the result is ``low``."""
    return emit.builder.select(emit.builder.fcmp_ordered(">", value, low), value, low)


def at_most(emit: Emit, value: Value, high: Value) -> Value:
    """Compute ``min(value, high)`` in one instruction; if either is NaN, the result is ``high``."""
    return emit.builder.select(emit.builder.fcmp_ordered("<", value, high), value, high)


def no_levels(vectors: int) -> Value:
    """Return ``vectors * LANES`` levels that are all 0, as a vector constant."""
    return ir.Constant(ir.VectorType(ir.IntType(_BITS), vectors * LANES), None)


def max_levels(emit: Emit, levels: Value, address: Value) -> Value:
    """Return the lane-wise maximum of ``levels`` and the levels at an address."""
    others = emit.load(address, levels.type)
    return emit.builder.select(emit.builder.icmp_unsigned(">", levels, others), levels, others)
