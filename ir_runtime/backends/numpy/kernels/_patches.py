"""How convolutions are split into products: blocks of patches, and filters that give several neighbouring results.

With few output channels, one row of patches gives several neighbouring results: the filters are repeated, each moved by as
many elements as their windows are apart. So fewer and longer pieces are copied into patches, and the columns of the product
fill the vectors of BLAS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution.forward import Convolution
from ..math.panels import TILED, WIDTH

__all__ = [
    "MAX_COLUMNS",
    "MIN_ROWS",
    "PATCH_BYTES",
    "PATCH_COST",
    "SHARED_FACTOR",
    "Block",
    "neighbours",
    "pack_filters",
    "repeated_filters",
    "split_windows",
]

# Bytes of patches for one matrix product: they stay in the L2 cache.
PATCH_BYTES = 600_000
# With several threads, this many times as much: they may wait for each other (GIL) after each call of NumPy.
SHARED_FACTOR = 4
# Copying an element of a patch takes as long as this many multiplications.
PATCH_COST = 8
# With fewer rows than this, a product does not amortize the packing of the filters by BLAS.
MIN_ROWS = 224
# f32 of a vector. What a product takes for each element of a row: one load for each panel of columns, which takes as long as
# a vector, twice. Copying takes as long as one vector for an element, and as this many for each contiguous piece.
LANES, PIECE_COST = 16 if TILED else 8, 28
# The most columns of neighbours, and their part of the time that must be saved.
MAX_COLUMNS, MAX_SHARE = 2 * WIDTH, 0.9


class Block(NamedTuple):
    """Rows of the result that one product computes."""

    place: tuple[int | slice, ...]
    """Where they are in the first axes of the windows."""
    rows: slice
    """Which they are among all windows of an image."""


def neighbours(op: Convolution, w: Array, lengths: Sequence[int | None]) -> int:
    """Return how many results of a row one row of patches should give, 1 if filters are better left as they are."""
    known = tuple(n for n in lengths if n is not None)
    outputs, channels, *kernel = w.shape
    if len(known) < len(kernel) or op.dilations[-1] != 1 or not np.isfinite(w).all():
        return 1
    columns, pieces = op.windows(known, tuple(kernel))[-1], math.prod(kernel[:-1])

    def cost(count: int) -> float:
        """Return the time for each result."""
        depth = pieces * channels * ((count - 1) * op.strides[-1] + kernel[-1])
        vectors, panels = -(-count * outputs // LANES), -(-count * outputs // WIDTH)
        time: float = (depth * (1 + vectors + 2 * panels) + pieces * PIECE_COST) / count
        return time

    counts = [n for n in range(1, MAX_COLUMNS // outputs + 1) if columns > 0 and columns % n == 0]
    best = min(counts, key=cost, default=1)
    return best if cost(best) < MAX_SHARE * cost(1) else 1


def split_windows(counts: tuple[int, ...], most: int, threads: int) -> list[Block]:
    """Split windows into blocks of at most ``most`` windows, or of one row, and as many for each thread."""
    length, *inner = counts
    each = math.prod(inner)
    if each > most and len(inner) > 1:
        parts = [(start, part) for start in range(length) for part in split_windows(tuple(inner), most, 1)]
        return [
            Block((start, *part.place), slice(start * each + part.rows.start, start * each + part.rows.stop))
            for start, part in parts
        ]
    count = -(-length // max(most // max(each, 1), 1))
    step = max(-(-length // (-(-count // threads) * threads or 1)), 1)
    ends = [(start, min(start + step, length)) for start in range(0, length, step)]
    return [Block((slice(a, b),), slice(a * each, b * each)) for a, b in ends]


def repeated_filters(w: Array, count: int, stride: int) -> Array:
    """Return filters ``[kernel..., C, count, outputs]``, each moved by the stride of the last axis."""
    outputs, channels, *kernel, wide = w.shape
    filters = np.zeros((*kernel, wide + (count - 1) * stride, channels, count, outputs), np.float32)
    for place in range(count):
        start = place * stride
        filters[..., start : start + wide, :, place, :] = w.transpose(*range(2, w.ndim), 1, 0)
    return filters


def pack_filters(w: Array, columns: slice, out: Array) -> None:
    """Pack some filters ``[outputs, C, kernel...]`` into panels ``[panel, kernel element and channel, output]``."""
    _, channels, *kernel = w.shape
    panels, _, width = out.shape
    filters = w[columns].reshape(panels, width, channels, -1).transpose(0, 3, 2, 1)
    out.reshape(panels, math.prod(kernel), channels, width)[...] = filters
