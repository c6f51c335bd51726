"""3x3 convolutions with a quarter of the multiplications: Winograd's minimal filtering, F(4x4, 3x3).

See Lavin & Gray, Fast Algorithms for Convolutional Neural Networks (2016). Tiles of 6x6 of the data, and filters, are
evaluated as polynomials at 36 points. There, a convolution is one GEMM over channels for each point; four matrix
products in all:

    filters:  G w Gt           once, when compiling
    data:     Bt x B           36 points of every tile
    product:  over channels, at every point
    result:   At y A           4x4 numbers of every tile

The points are 0, ±11/16, ±11/8 and infinity: exact in binary, and with a quarter of the error of the usual
0, ±1, ±2: 2e-6 of the largest result, 1e-6 on average.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ....ir.pages import let_go
from ....ir.tensor import Array
from ....ops.convolution import Convolution
from ...common.epilogue import RowEpilogue
from ...common.layout import channels_first, channels_last, pad_spatial
from ...common.window_fit import window_fit
from ..math.gemm import is_finite, split_range
from ..math.windows import windows
from ..parallel import parallel_for, thread_count

__all__ = ["suits_winograd", "winograd"]

OUT, KERNEL = 4, 3
TILE = OUT + KERNEL - 1
POINT_COUNT = TILE * TILE
POINTS = (0.0, 11 / 16, -11 / 16, 11 / 8, -11 / 8)

# Elements of transformed tiles and of their results, for several passes: the L1 and L2 caches hold them.
BLOCK_SIZE = 400_000
# Transformed filters take four times the memory; if there are more than this, little time is saved.
MAX_FILTERS = 1 << 16
# With fewer channels, or on smaller feature maps, the transforms cost more than they save.
MIN_CHANNELS = 32
MIN_MAP = 10


def suits_winograd(op: Convolution, w: Array, lengths: tuple[int | None, ...]) -> bool:
    """Return whether Winograd's algorithm is faster; ``lengths`` are those of the data if known."""
    outputs, channels, *kernel = w.shape
    if kernel != [KERNEL, KERNEL] or any(n != 1 for n in (*op.strides, *op.dilations)):
        return False
    if min(outputs, channels) < MIN_CHANNELS or outputs * channels > MAX_FILTERS:
        return False
    return all(n is None or n >= MIN_MAP for n in lengths)


def winograd(
    op: Convolution, w: Array, fallback: Callable[[], Callable[..., Array]]
) -> Callable[[Array, Array, RowEpilogue], Array]:
    """Return a function that computes a convolution from data, filters and a `RowEpilogue`.

    NaN, infinities and overflows would spread over their tiles. If a result has any, all is recomputed by the kernel
    that ``fallback`` returns.
    """
    outputs, channels = w.shape[:2]
    filters = _transform_filters(w)
    fit = window_fit(op, (KERNEL, KERNEL))

    def compute(x: Array, w: Array, epilogue: RowEpilogue) -> Array:
        ((top, bottom), (left, right)), (height, width) = fit(x.shape[2:])
        rows, columns = -(-height // OUT), -(-width // OUT)
        more = (top, bottom + OUT * rows - height), (left, right + OUT * columns - width)
        data = pad_spatial(channels_last(x), more)
        y, finite = np.empty((len(x), height, width, outputs), np.float32), list[bool]()

        def work(chunk: tuple[int, slice]) -> None:
            image, part = chunk
            results = _tiles(data[image, OUT * part.start : OUT * part.stop + KERNEL - 1], filters)
            finite.append(is_finite(results.reshape(-1)))
            block = y[image, OUT * part.start : OUT * part.stop]
            _place(results, block)
            epilogue(block.reshape(-1, outputs), (image * height + OUT * part.start) * width)

        cost = y.size * w.size // outputs
        blocks = rows * columns * POINT_COUNT * (channels + outputs) // BLOCK_SIZE
        parts = split_range(rows, max(blocks, thread_count(cost)))
        parallel_for(work, [(image, part) for image in range(len(x)) for part in parts], cost)
        return channels_first(y) if all(finite) else fallback()(x, w, epilogue)

    return compute


def _tiles(rows: Array, filters: Array) -> Array:
    """Return the results ``[4, 4, row, column, output]`` of tiles of some padded rows ``[row, column, C]``."""
    tiles = windows(rows, (TILE, TILE), (OUT, OUT), (1, 1)).transpose(2, 3, 0, 1, 4)
    *_, height, width, channels = tiles.shape
    data = _DATA @ tiles.reshape(POINT_COUNT, -1)
    products = np.matmul(data.reshape(POINT_COUNT, -1, channels), filters)
    results: Array = _RESULT @ products.reshape(POINT_COUNT, -1)
    return results.reshape(OUT, OUT, height, width, -1)


def _place(results: Array, out: Array) -> None:
    """Copy the results of tiles into ``out[height, width, outputs]``, which may have parts of the last ones."""
    *_, rows, columns, outputs = results.shape
    placed = results.transpose(2, 0, 3, 1, 4)
    if out.shape[:2] == (rows * OUT, columns * OUT):
        out.reshape(placed.shape)[...] = placed
    else:
        out[...] = placed.reshape(rows * OUT, columns * OUT, outputs)[: out.shape[0], : out.shape[1]]


def _transforms() -> tuple[Array, Array, Array]:
    """Return ``At``, ``G`` and ``Bt`` for one axis (Toom-Cook); the last point is infinity."""
    denominators = [math.prod(p - q for q in POINTS if q != p) for p in POINTS]
    result = np.zeros((OUT, TILE))
    filters = np.zeros((TILE, KERNEL))
    data = np.zeros((TILE, TILE))
    for i, (p, d) in enumerate(zip(POINTS, denominators, strict=True)):
        result[:, i] = [p**k for k in range(OUT)]
        filters[i] = [p**k / d for k in range(KERNEL)]
        data[i, :-1] = np.poly([q for q in POINTS if q != p])[::-1]
    result[-1, -1] = filters[-1, -1] = 1
    data[-1] = np.poly(POINTS)[::-1]
    return result, filters, data


_AT, _G, _BT = _transforms()
# Both axes in one product: 36 points from 9 numbers or 36, 16 numbers from 36 points.
_FILTERS = np.kron(_G, _G).astype(np.float32)
_DATA = np.kron(_BT, _BT).astype(np.float32)
_RESULT = np.kron(_AT, _AT).astype(np.float32)


def _transform_filters(w: Array) -> Array:
    """Return filters ``[outputs, C, 3, 3]`` at each point: matrices ``[C, outputs]``."""
    outputs, channels = w.shape[:2]
    with np.errstate(all="ignore"):  # numbers that are not finite show in the results
        filters: Array = _FILTERS @ w.transpose(2, 3, 1, 0).reshape(KERNEL * KERNEL, -1)
    let_go(w)
    return filters.reshape(POINT_COUNT, channels, outputs)
