"""Decide which scattered sums have kernels."""

from __future__ import annotations

from ...ir.tensor import Value
from ...ops.movement.scatter import ScatterElementsUpdate12
from .layout import is_f32

__all__ = ["sum_axis"]


def sum_axis(
    op: ScatterElementsUpdate12, data: Value, indices: Value, updates: Value, axis: Value
) -> int | None:
    """Return the constant axis of f32 sums, from 0; ``None`` for what only the reference computes."""
    known, rank = axis.ints(), data.shape.rank
    if not is_f32(data, updates) or op.reduction != "sum" or not op.use_init_val or not known or not rank:
        return None
    if not rank == indices.shape.rank == updates.shape.rank or not -rank <= known[0] < rank:
        return None
    return known[0] % rank
