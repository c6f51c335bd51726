"""Windows that slide over rows of channels: several of a row at a time, one vector of channels each.

Where a window reaches beyond the data, it reads a vector of fillers there, so the borders take hardly
longer than the rest, and nothing is padded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....ir.tensor import Array
from ....ops.window import SlidingWindow
from ..codegen.language import device, instruction, types
from ..codegen.vectors import LANES, VECTOR, Emit

__all__ = ["BESIDE", "FEW", "SIZE", "Geometry", "geometry", "reach", "sliding", "strip", "tile", "widened"]

Value = Any
Write = Callable[..., None]
"""Writes what `sliding` calls."""
Combine = Callable[[Emit, Value, Value, Value], Value]
"""Takes what a window has so far, a vector of data, and one of weights."""

# Windows beside each other: as many accumulators as hide how long a product takes. The usual lengths of
# rows are multiples of it.
BESIDE = 7
FEW = 3

Geometry = np.ndarray[tuple[int], np.dtype[np.int64]]
"""Whole numbers that say where windows lie: `geometry` lists them."""

SIZE = np.int64(4)


def geometry(
    op: SlidingWindow, lengths: Sequence[int], channels: int, kernel: Sequence[int], spread: Sequence[int]
) -> Geometry:
    """Height, width, channels; those of the result; then per axis kernel, stride, dilation, padding before."""
    before = [begin for begin, _ in op.pads(lengths, kernel)]
    out = op.windows(lengths, kernel)
    numbers = [*lengths, channels, *out, *kernel, *op.strides, *spread, *before]
    return np.array(numbers, np.int64)


@device
def reach(first: Value, length: Value, dilation: Value, kernel: Value) -> Any:
    """The elements of a window that begins at ``first`` that lie in ``length``: from, to."""
    low = (-first + dilation - 1) // dilation if first < 0 else 0
    high = (length - first + dilation - 1) // dilation if length > first else 0
    low, high = min(low, kernel), min(high, kernel)
    return low, max(high, low)


def sliding(ways: Mapping[int, Write]) -> Any:
    """An instruction that takes windows beside each other, in one of several ways.

    Arguments: the number of the way; data, bytes between rows and between columns; weights; rows; result and
    bytes between its columns; where to start from; index of the first column, columns; fillers; columns of the
    kernel, its dilation, and the stride.
    """

    def write(emit: Emit, form: Value, *given: Value) -> None:
        emit.switch(form, {number: partial(way, emit, *given) for number, way in ways.items()})

    return instruction(*[types.int64] * 15)(write)


def strip(kernel: int, stride: int, bordered: bool) -> Write:
    """Products with a kernel of fixed width, whose windows share the columns they load; dilation is 1."""
    beside, columns = BESIDE, (BESIDE - 1) * stride + kernel

    def write(
        emit: Emit, x: Value, down: Value, right: Value, w: Value, rows: Value, y: Value, step: Value,
        start: Value, first: Value, width: Value, filler: Value, *_: Value,
    ) -> None:  # fmt: skip
        beginning = emit.load(start)
        load = _bordered(emit, first, width, filler) if bordered else _inside(emit)
        with emit.loop(rows, [x, w, *[beginning] * beside]) as (_, (line, weights, *sums), following):
            taps = [emit.load(emit.at(weights, 4 * LANES * b)) for b in range(kernel)]
            for column in range(columns):
                data = load(emit.at(line, emit.builder.mul(right, emit.i64(column))), emit.i64(column))
                for b in range(kernel):
                    place, rest = divmod(column - b, stride)
                    if not rest and 0 <= place < beside:
                        sums[place] = emit.fma(data, taps[b], sums[place])
            following += [emit.at(line, down), emit.at(weights, 4 * LANES * kernel), *sums]
        _put(emit, following[2:], y, step)

    return write


def tile(combine: Combine, beside: int) -> Write:
    """Windows of any size, stride and dilation."""

    def write(
        emit: Emit, x: Value, down: Value, right: Value, w: Value, rows: Value, y: Value, step: Value,
        start: Value, first: Value, width: Value, filler: Value, kernel: Value, dilation: Value, stride: Value,
    ) -> None:  # fmt: skip
        builder, beginning = emit.builder, emit.load(start)
        load = _bordered(emit, first, width, filler)
        with emit.loop(rows, [x, w, *[beginning] * beside]) as (_, (line, weights, *before), below):
            with emit.loop(kernel, [weights, *before]) as (b, (tap, *sums), following):
                weight = emit.load(tap)
                for place in range(beside):
                    along = builder.add(builder.mul(b, dilation), builder.mul(stride, emit.i64(place)))
                    data = load(emit.at(line, builder.mul(along, right)), along)
                    sums[place] = combine(emit, sums[place], data, weight)
                following += [emit.at(tap, 4 * LANES), *sums]
            below += [emit.at(line, down), *following]
        _put(emit, below[2:], y, step)

    return write


def _inside(emit: Emit) -> Callable[[Value, Value], Value]:
    return lambda address, _: emit.load(address)


def _bordered(emit: Emit, first: Value, width: Value, filler: Value) -> Callable[[Value, Value], Value]:
    """What loads a column if there is one, else fillers."""

    def load(address: Value, column: Value) -> Value:
        exists = emit.builder.icmp_unsigned("<", emit.builder.add(first, column), width)
        return emit.load(emit.builder.select(exists, address, filler), VECTOR)

    return load


def _put(emit: Emit, values: Sequence[Value], y: Value, step: Value) -> None:
    for place, value in enumerate(values):
        emit.store(value, emit.at(y, emit.builder.mul(step, emit.i64(place))))


def widened(x: Array, axis: int = -1) -> Array:
    """With channels of zeros besides where they are fewer than a vector."""
    more = max(LANES - x.shape[axis], 0)
    return np.pad(x, [(0, more if n == axis % x.ndim else 0) for n in range(x.ndim)]) if more else x
