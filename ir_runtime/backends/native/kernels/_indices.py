"""Loads and stores of i32 and i64 indices, and constant indices that form a grid.

The indices of slices and of sliding windows form grids, so Gather with them is a strided copy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ....ir.tensor import Array
from ..codegen import ir
from ..codegen.language import device, instruction, types
from ..codegen.memory import load_i64, store_i64
from ..codegen.vectors import I32, I64, Emit

__all__ = ["index_grid", "IndexGrid", "load_index", "store_index"]


@dataclass(frozen=True)
class IndexGrid:
    """Indices on a regular grid: ``first`` plus a multiple of a constant step for each axis.

    Args:
        first: the first index.
        lengths: the shape of the grid.
        steps: the difference of neighbouring indices along each axis.
    """

    first: int
    lengths: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest index."""
        spans = [step * (length - 1) for length, step in zip(self.lengths, self.steps, strict=True)]
        return self.first + sum(min(span, 0) for span in spans), self.first + sum(
            max(span, 0) for span in spans
        )

    def view(self, x: Array, axis: int) -> Array:
        """Return ``x`` with ``axis`` replaced by the axes of the grid, as a view; indices must be in range."""
        stride = x.strides[axis]
        start = x[(slice(None),) * axis + (slice(self.first, None),)]
        shape = (*x.shape[:axis], *self.lengths, *x.shape[axis + 1 :])
        strides = (*x.strides[:axis], *[step * stride for step in self.steps], *x.strides[axis + 1 :])
        return np.lib.stride_tricks.as_strided(start, shape, strides)


def index_grid(indices: Array, most_axes: int) -> IndexGrid | None:
    """Return the grid whose elements in C order are ``indices``; ``None`` if no grid of up to ``most_axes`` axes has them."""
    places, lengths, steps = indices.astype(np.int64).ravel(), list[int](), list[int]()
    if not places.size:
        return None
    while places.size > 1:
        apart = np.diff(places)
        others = np.flatnonzero(apart != apart[0])
        length = int(others[0]) + 1 if others.size else places.size
        if places.size % length or len(lengths) == most_axes:
            return None
        rows = places.reshape(-1, length)
        if (rows - rows[:, :1] != rows[0] - rows[0, 0]).any():
            return None
        lengths.insert(0, length)
        steps.insert(0, int(apart[0]))
        places = rows[:, 0]
    assert math.prod(lengths) == indices.size
    return IndexGrid(int(places[0]), tuple(lengths), tuple(steps))


@instruction(types.int64, types.int64, returns=types.int64)
def _load_i32(emit: Emit, address: ir.Value, place: ir.Value) -> ir.Value:
    builder = emit.builder
    return builder.sext(emit.load(emit.at(address, builder.mul(place, emit.i64(4))), I32), I64)


@instruction(types.int64, types.int64, types.int64)
def _store_i32(emit: Emit, address: ir.Value, place: ir.Value, index: ir.Value) -> None:
    builder = emit.builder
    emit.store(builder.trunc(index, I32), emit.at(address, builder.mul(place, emit.i64(4))))


@device
def load_index(address: int, place: int, size: int) -> int:
    """Load element ``place`` of an array of indices of 4 or 8 bytes."""
    index: int = load_i64(address, place) if size == 8 else _load_i32(address, place)
    return index


@device
def store_index(address: int, place: int, index: int, size: int) -> None:
    """Store element ``place`` of an array of indices of 4 or 8 bytes."""
    if size == 8:
        store_i64(address, place, index)
    else:
        _store_i32(address, place, index)
