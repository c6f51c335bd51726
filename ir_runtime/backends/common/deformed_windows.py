"""Which deformable convolutions have kernels: those of one group, of f32 maps, with constant filters."""

from __future__ import annotations

from ...ir.tensor import Array, Value
from ...ops.convolution import DeformableConvolutionBase
from .layout import is_f32

__all__ = ["filters_of"]

RANK = 4


def filters_of(
    op: DeformableConvolutionBase, data: Value, offsets: Value, filters: Value, *mask: Value
) -> Array | None:
    """Return the filters of such a convolution, ``None`` for others."""
    w = filters.known()
    if op.group != 1 or w is None or not w.size or not is_f32(data, offsets, filters, *mask):
        return None
    return w if all(value.shape.rank == RANK for value in (data, offsets, *mask)) else None
