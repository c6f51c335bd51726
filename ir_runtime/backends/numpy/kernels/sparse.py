"""Embedding bags, and ScatterElementsUpdate that adds or replaces rows, in a few calls of NumPy."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.movement.scatter import ScatterElementsUpdate3, ScatterElementsUpdate12
from ....ops.sparse import (
    EmbeddingBagOffsets,
    EmbeddingBagOffsetsSum,
    EmbeddingBagPacked,
    EmbeddingBagPackedSum,
    OffsetBags,
    PackedBags,
)
from ... import Kernel
from ...common.layout import is_f32
from ...common.scatter import replacement_axis, scattered_lengths, sum_axis
from ...core.kernel import any_lengths
from .._backend import backend

__all__: list[str] = []


@backend.accelerates(EmbeddingBagOffsetsSum, EmbeddingBagOffsets)
def bags(op: OffsetBags, table: Value, indices: Value, offsets: Value, *others: Value) -> Kernel | None:
    """Return a kernel for f32 sums without weights, else ``None``; the reference handles empty bags and indices out of range."""
    if not is_f32(table) or not table.shape.rank or len(others) > 1 or op.reduction != "sum":
        return None

    fixed = offsets.known()
    least = None if fixed is None else _least_indices(fixed)

    def kernel(table: Array, indices: Array, offsets: Array, *others: Array) -> Array:
        least_indices = _least_indices(offsets) if least is None else least
        if not 0 < least_indices <= indices.size or indices.ndim != 1 or not _are_rows(indices, len(table)):
            return op.evaluate(table, indices, offsets, *others)
        sums: Array = np.add.reduceat(table.take(indices, 0), offsets, 0)
        return sums

    return Kernel(kernel, accepts=any_lengths)


@backend.accelerates(EmbeddingBagPackedSum, EmbeddingBagPacked)
def packed_bags(op: PackedBags, table: Value, indices: Value, *weights: Value) -> Kernel | None:
    """Return a kernel for f32 sums without weights, else ``None``; the reference handles empty bags and indices out of range."""
    if not is_f32(table) or not table.shape.rank or weights or op.reduction != "sum":
        return None

    def kernel(table: Array, indices: Array) -> Array:
        if indices.ndim != 2 or not indices.size or not _are_rows(indices, len(table)):
            return op.evaluate(table, indices)
        sums: Array = np.add.reduce(table.take(indices, 0), 1)
        return sums

    return Kernel(kernel, accepts=any_lengths)


def _least_indices(offsets: Array) -> int:
    """Return the least number of indices with which no bag is empty; 0 if offsets are invalid, or leave a bag empty in any case."""
    if offsets.ndim != 1 or not offsets.size or offsets[0] < 0 or not (offsets[1:] > offsets[:-1]).all():
        return 0
    return int(offsets[-1]) + 1


def _are_rows(indices: Array, rows: int) -> bool:
    """Return whether all indices are in ``[0, rows)``; viewed as unsigned, negative indices are too large."""
    unsigned = indices.view(f"u{indices.itemsize}") if indices.dtype.kind == "i" else indices
    return bool(unsigned.max() < rows)


@backend.accelerates(ScatterElementsUpdate12)
def scatter_sum(
    op: ScatterElementsUpdate12, data: Value, indices: Value, updates: Value, axis: Value
) -> Kernel | None:
    """Return a kernel that adds f32 updates along a known axis, or ``None`` for other scatters.

    Sums are computed in f64, by `numpy.bincount`.
    """
    along = sum_axis(op, data, indices, updates, axis)
    if along is None:
        return None

    def kernel(data: Array, indices: Array, updates: Array, axis: Array) -> Array:
        length, shape = (
            data.shape[along],
            (*data.shape[:along], indices.shape[along], *data.shape[along + 1 :]),
        )
        if not indices.shape == updates.shape == shape or not indices.size:
            return op.evaluate(data, indices, updates, axis)
        lowest = indices.min()
        if lowest < -length or indices.max() >= length:
            return op.evaluate(data, indices, updates, axis)  # which raises
        if lowest < 0:
            indices = np.where(indices < 0, indices + length, indices)
        stride, others = _positions(data.shape, along)
        places = (indices * np.int64(stride) + others).reshape(-1)
        sums = np.bincount(places, updates.reshape(-1), data.size).reshape(data.shape)
        return np.add(data, sums, dtype=np.float64).astype(np.float32)

    return Kernel(kernel, accepts=scattered_lengths(along))


@backend.accelerates(ScatterElementsUpdate3, ScatterElementsUpdate12)
def scatter_rows(
    op: ScatterElementsUpdate3 | ScatterElementsUpdate12,
    data: Value,
    indices: Value,
    updates: Value,
    axis: Value,
) -> Kernel | None:
    """Return a kernel that replaces f32 rows along the first axis, or ``None`` for other scatters.

    The reference handles indices that are not the same for all elements of a row.
    """
    if replacement_axis(op, data, indices, updates, axis) != 0 or data.shape.rank == 1:
        return None

    def kernel(data: Array, indices: Array, updates: Array, axis: Array) -> Array:
        places = indices.reshape(len(indices), -1)[:, 0] if indices.size else indices
        of_rows = places.reshape(-1, *[1] * (indices.ndim - 1))
        whole = indices.shape == updates.shape and indices.shape[1:] == data.shape[1:] and indices.size
        if not whole or places.max() >= len(data) or places.min() < -len(data) or (indices != of_rows).any():
            return op.evaluate(data, indices, updates, axis)
        result = data.copy()
        result[places] = updates
        return result

    return Kernel(kernel, accepts=scattered_lengths(0))


@lru_cache(maxsize=64)
def _positions(shape: tuple[int, ...], along: int) -> tuple[int, Array]:
    """Return the stride of an axis in elements, and the flat index of the first element of each row along it."""
    places = np.arange(math.prod(shape)).reshape(shape)
    return math.prod(shape[along + 1 :]), places.take([0], along)
