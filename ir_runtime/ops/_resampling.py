"""Arithmetic costs of interpolation."""

from __future__ import annotations

from ..ir.formula import Count
from ..ir.operation import Operands

__all__ = ["BILINEAR", "resampling"]

BILINEAR = 8
"""FLOPs of a bilinear interpolation: a multiplication and an addition for each of four neighbours."""


def resampling(mode: str, operands: Operands) -> Count:
    """Return the FLOPs of resizing: two for each input element that contributes to an output element."""
    if mode == "area":
        return operands.data
    resized = sum(old != new for old, new in zip(operands.inputs[0], operands.outputs[0], strict=True))
    neighbours = 0 if mode == "nearest" or not resized else (4 if "cubic" in mode else 2) ** resized
    return 2 * neighbours * operands.result
