"""Decide which scattered elements have kernels."""

from __future__ import annotations

from ...ir.tensor import Value
from ...ops.movement.scatter import ScatterElementsUpdate12, ScatterElementsUpdateBase
from .layout import is_f32

__all__ = ["replacement_axis", "sum_axis"]


def sum_axis(
    op: ScatterElementsUpdate12, data: Value, indices: Value, updates: Value, axis: Value
) -> int | None:
    """Return the constant axis of f32 sums, from 0; ``None`` for what only the reference computes."""
    return _axis(data, indices, updates, axis) if op.reduction == "sum" and op.use_init_val else None


def replacement_axis(
    op: ScatterElementsUpdateBase, data: Value, indices: Value, updates: Value, axis: Value
) -> int | None:
    """Return the constant axis along which f32 are replaced, from 0; ``None`` for what only the reference computes."""
    replaces = not isinstance(op, ScatterElementsUpdate12) or op.reduction == "none"
    return _axis(data, indices, updates, axis) if replaces else None


def _axis(data: Value, indices: Value, updates: Value, axis: Value) -> int | None:
    known, rank = axis.ints(), data.shape.rank
    if not is_f32(data, updates) or not known or not rank:
        return None
    if not rank == indices.shape.rank == updates.shape.rank or not -rank <= known[0] < rank:
        return None
    return known[0] % rank
