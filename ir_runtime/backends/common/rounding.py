"""The rounding of dequantization in file types, and whether a kernel can do it in one step."""

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
        min_normal: the smallest normal number.
        dropped_bits: how many bits its mantissa is shorter than that of f32.
        max_exact_integer: integers up to this are exact.
        limit: numbers below this are finite.
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
    """Return whether only the product with the scale is rounded, and finite.

    Args:
        values: the lowest and the highest dequantized value, without zero point and scale.
        scale: the scales.
        zero: the zero points.
        rounding: the rounding of differences and products.
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
    """Return the values of the bit patterns 0 to 15, in the arithmetic of the file, as f32; higher bits are ignored."""
    values = np.arange(16, dtype=np.uint8) & np.uint8(2**element.bits - 1)
    return convert(convert(values.view(element.dtype), arithmetic, element), E.f32, arithmetic)


def quantized_operand(op: MatMul, a: Value, b: Value) -> QuantizedWeights | None:
    """Return the quantized matrix by which f32 rows, of any batch, are multiplied, or ``None``."""
    if a.quantized is not None or a.element is not E.f32 or op.transpose_a or not a.shape.rank:
        return None
    return b.quantized
