"""Conditions under which kernels support ScatterElementsUpdate, shared by backends."""

from __future__ import annotations

from ...ir.tensor import Array, Value
from ...ops.movement.scatter import ScatterElementsUpdate12, ScatterElementsUpdateBase
from ..core.kernel import Accepts
from .layout import is_f32

__all__ = ["replacement_axis", "scattered_lengths", "sum_axis"]


def sum_axis(
    op: ScatterElementsUpdate12, data: Value, indices: Value, updates: Value, axis: Value
) -> int | None:
    """Return the axis, counted from 0, of a scatter that adds f32 updates to the data.

    Returns ``None`` for other reductions and types, and for an axis that is not constant.
    """
    return _axis(data, indices, updates, axis) if op.reduction == "sum" and op.use_init_val else None


def replacement_axis(
    op: ScatterElementsUpdateBase, data: Value, indices: Value, updates: Value, axis: Value
) -> int | None:
    """Return the axis, counted from 0, of a scatter that replaces f32 elements.

    Returns ``None`` for reductions, other types, and an axis that is not constant.
    """
    replaces = not isinstance(op, ScatterElementsUpdate12) or op.reduction == "none"
    return _axis(data, indices, updates, axis) if replaces else None


def scattered_lengths(axis: int) -> Accepts:
    """Return a check that updates have the shape of the indices, and exceed the data at most along the scattered axis.

    >>> import numpy as np
    >>> data, indices = np.zeros((3, 1)), np.zeros((0, 2), int)
    >>> [scattered_lengths(axis)(data, indices, indices) for axis in (0, 1)]
    [False, True]
    """

    def accepts(data: Array, indices: Array, updates: Array, *_: object) -> bool:
        if indices.shape != updates.shape:
            return False
        lengths = zip(data.shape, indices.shape, strict=True)
        return all(count <= length or i == axis for i, (length, count) in enumerate(lengths))

    return accepts


def _axis(data: Value, indices: Value, updates: Value, axis: Value) -> int | None:
    known, rank = axis.ints(), data.shape.rank
    if not is_f32(data, updates) or not known or not rank:
        return None
    if not rank == indices.shape.rank == updates.shape.rank or not -rank <= known[0] < rank:
        return None
    return known[0] % rank
