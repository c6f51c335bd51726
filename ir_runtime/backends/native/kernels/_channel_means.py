"""Means over rectangles of a map, channels last, some vectors of channels at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..codegen import ir
from ..codegen.bf16 import load_bf16
from ..codegen.language import Instruction, device, instruction, types
from ..codegen.vectors import LANES, Emit
from ._windows import F32_SIZE

__all__ = ["channel_means", "vectors_abreast"]

# Vectors of channels that are summed at a time.
MAX_VECTORS = 4


def vectors_abreast(channels: int) -> int:
    """Return how many vectors of this many channels, at least those of one, are summed at a time."""
    return next(n for n in (MAX_VECTORS, 2, 1) if channels >= n * LANES)


def _rectangle_mean(
    abreast: int, size: int = 4, load_vector: Callable[[Emit, ir.Value], ir.Value] = Emit.load
) -> Instruction:
    """Return an instruction for the mean over a rectangle for several vectors of channels, summed row by row.

    Args:
        abreast: how many vectors.
        size: bytes of a number.
        load_vector: loads a vector as f32.
    """

    def write(
        emit: Emit,
        x: ir.Value,
        down: ir.Value,
        right: ir.Value,
        rows: ir.Value,
        columns: ir.Value,
        y: ir.Value,
        factor: ir.Value,
    ) -> None:
        zeros = [emit.constant(0)] * abreast
        with emit.loop(rows, [x, *zeros]) as (_, (begin, *totals), below):
            with emit.loop(columns, [begin, *zeros]) as (_, (place, *sums), following):
                loaded = [load_vector(emit, emit.at(place, size * LANES * i)) for i in range(abreast)]
                sums = [emit.add(a, b) for a, b in zip(sums, loaded, strict=True)]
                following += [emit.at(place, right), *sums]
            totals = [emit.add(a, b) for a, b in zip(totals, following[1:], strict=True)]
            below += [emit.at(begin, down), *totals]
        same = emit.splat(factor)
        for i, total in enumerate(below[1:]):
            emit.store(emit.multiply(total, same), emit.at(y, 4 * LANES * i))

    return instruction(*[types.int64] * 6, types.float32)(write)


_mean_wide, _mean_double, _mean_single = _rectangle_mean(MAX_VECTORS), _rectangle_mean(2), _rectangle_mean(1)
_bf16_mean = _rectangle_mean(1, 2, load_bf16)


@device
def channel_means(  # noqa: PLR0913 (values in registers)
    x: int, size: int, down: int, right: int, rows: int, columns: int, y: int, vectors: int, factor: np.float32
) -> None:  # fmt: skip
    """Store the sums over a rectangle, times a factor, of some vectors of channels of ``size`` bytes, f32 or bf16.

    Lines are ``down`` bytes apart, and elements of a line ``right`` bytes.
    """
    if size < F32_SIZE:
        for i in range(vectors):
            at = i * LANES
            _bf16_mean(x + size * at, down, right, rows, columns, y + F32_SIZE * at, factor)
    elif vectors == MAX_VECTORS:
        _mean_wide(x, down, right, rows, columns, y, factor)
    elif vectors == 2:
        _mean_double(x, down, right, rows, columns, y, factor)
    else:
        _mean_single(x, down, right, rows, columns, y, factor)
