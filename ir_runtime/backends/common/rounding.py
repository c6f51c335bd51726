"""What the arithmetic of a file makes of compressed weights, and whether a kernel may do it in one step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.compressed import Compressed
from ...ir.element import ElementType as E
from ...ir.tensor import Array, Value
from ...ops.conversion import convert
from ...ops.matrix.matmul import MatMul

__all__ = ["ROUNDINGS", "Rounding", "exact", "meanings", "multiplied"]


@dataclass(frozen=True)
class Rounding:
    """How a type of few digits rounds.

    Args:
        least: the power of two below which numbers have as many digits behind the point as above it.
        dropped: how many of the binary digits of f32 it lacks.
        whole: up to this, whole numbers are exact.
        most: what stays below is finite.
    """

    least: float
    dropped: int
    whole: float
    most: float


ROUNDINGS = {
    E.f16: Rounding(2.0**-14, 13, 2048, 65504),
    E.bf16: Rounding(2.0**-126, 16, 256, 2.0**100),
    E.f32: Rounding(0, 0, np.inf, np.inf),
}


def exact(codes: tuple[float, float], scale: Array, zero: Array | None, rounding: Rounding) -> bool:
    """Whether only the product with the scale needs rounding, and it is finite.

    Args:
        codes: the lowest and the highest number that codes stand for.
        scale: the factors.
        zero: what is subtracted first.
        rounding: of the type to which differences and products are rounded.
    """
    lowest, highest = codes
    if zero is not None:
        lowest, highest = lowest - float(zero.max()), highest - float(zero.min())
    reach = max(-lowest, highest)
    if (
        zero is not None
        and rounding.dropped
        and not (reach <= rounding.whole and np.array_equal(zero, np.rint(zero)))
    ):
        return False
    largest = reach * float(np.abs(scale).max())
    return bool(np.isfinite(largest) and largest < rounding.most)


def meanings(element: E, arithmetic: E) -> Array:
    """What the codes 0 to 15 stand for, in the type that the file computes with, as f32; higher bits do not count."""
    codes = np.arange(16, dtype=np.uint8) & np.uint8(2**element.bits - 1)
    return convert(convert(codes.view(element.dtype), arithmetic, element), E.f32, arithmetic)


def multiplied(op: MatMul, a: Value, b: Value) -> Compressed | None:
    """The compressed matrix on the right of f32 rows, of any batch, if that is what is multiplied."""
    if a.compressed is not None or a.element is not E.f32 or op.transpose_a or not a.shape.rank:
        return None
    return b.compressed
