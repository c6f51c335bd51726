"""Rounding of dequantization in the floating-point type of the file, and whether it happens in a single step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.element import ElementType as E
from ...ir.quantized_weights import QuantizedWeights
from ...ir.tensor import Array, Value
from ...ops.conversion import convert
from ...ops.matrix import MatMul

__all__ = ["ROUNDINGS", "Rounding", "dequantized_table", "is_exact", "quantized_operand"]


@dataclass(frozen=True)
class Rounding:
    """How a floating-point type rounds.

    Args:
        min_normal: the smallest normal value.
        dropped_bits: how many fewer mantissa bits it has than f32.
        max_exact_integer: all integers up to this are exact.
        limit: magnitudes below this do not overflow.
    """

    min_normal: float
    dropped_bits: int
    max_exact_integer: float
    limit: float


ROUNDINGS = {
    E.f16: Rounding(2.0**-14, 13, 2048, 65504),
    E.bf16: Rounding(2.0**-126, 16, 256, 2.0**100),
    E.f32: Rounding(0, 0, np.inf, np.inf),
}


def is_exact(values: tuple[float, float], scale: Array, zero: Array | None, rounding: Rounding) -> bool:
    """Return whether ``(value - zero) * scale`` is rounded only in the product, and never overflows.

    Args:
        values: the lowest and the highest ``value``.
        scale: the scales.
        zero: the zero points, or ``None`` for 0.
        rounding: the type in which differences and products are computed.
    """
    lowest, highest = values
    if zero is not None:
        lowest, highest = lowest - float(zero.max()), highest - float(zero.min())
    reach = max(-lowest, highest)
    if (
        zero is not None
        and rounding.dropped_bits
        and not (reach <= rounding.max_exact_integer and np.array_equal(zero, np.rint(zero)))
    ):
        return False
    largest = reach * float(np.abs(scale).max())
    return bool(np.isfinite(largest) and largest < rounding.limit)


def dequantized_table(element: E, arithmetic: E) -> Array:
    """Return the f32 values of the 4-bit patterns 0 to 15, converted by way of ``arithmetic``, the type of the file.

    For shorter types, only the low bits of a pattern count.
    """
    values = np.arange(16, dtype=np.uint8) & np.uint8(2**element.bits - 1)
    return convert(convert(values.view(element.dtype), arithmetic, element), E.f32, arithmetic)


def quantized_operand(op: MatMul, a: Value, b: Value) -> QuantizedWeights | None:
    """Return the quantized right operand of a MatMul whose left operand is f32 and not transposed, else ``None``."""
    if a.quantized is not None or a.element is not E.f32 or op.transpose_a or not a.shape.rank:
        return None
    return b.quantized
