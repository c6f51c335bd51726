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
from functools import partial

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution.forward import Convolution
from ...common.epilogue import RowEpilogue
from ...common.layout import channels_first, channels_last, pad_spatial
from ...common.window_fit import window_fit
from ..math.finite import is_finite
from ..math.gemm import split_range
from ..math.panels import Panels, tiled_product
from ..math.windows import windows
from ..threading.parallel import parallel_for, thread_count

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
    """Return whether Winograd's algorithm is faster; ``lengths`` are those of the data, where they are known."""
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
    outputs = len(w)
    filters = _transformed_filters(w)
    fit = window_fit(op, w.shape[2:])

    def compute(x: Array, w: Array, epilogue: RowEpilogue) -> Array:
        pads, out = fit(x.shape[2:])
        tiles = tuple(-(-n // OUT) for n in out)
        tile_pads = [(b, e + OUT * t - n) for (b, e), t, n in zip(pads, tiles, out, strict=True)]
        data = pad_spatial(channels_last(x), tuple(tile_pads))
        y = np.empty((len(x), *out, outputs), np.float32)
        finite = []

        def work(chunk: tuple[int, slice]) -> None:
            image, part = chunk
            tiles_view = windows(data[image], (TILE, TILE), (OUT, OUT), (1, 1))[part]
            rows = y[image, OUT * part.start : OUT * part.stop]
            _winograd_block(tiles_view, filters, rows)
            rows = rows.reshape(-1, outputs)
            finite.append(is_finite(rows.reshape(-1)))
            epilogue(rows, (image * out[0] + OUT * part.start) * out[1])

        size = y.size * w.size // outputs
        row_size = POINT_COUNT * tiles[1] * (x.shape[1] + outputs)
        blocks = max(tiles[0] * row_size // BLOCK_SIZE, thread_count(size))
        parallel_for(
            work, [(image, part) for image in range(len(x)) for part in split_range(tiles[0], blocks)], size
        )
        return channels_first(y) if all(finite) else fallback()(x, w, epilogue)

    return compute


def _winograd_block(tiles_view: Array, filters: Panels, out: Array) -> None:
    """Compute some rows of tiles, ``[row, column, 6, 6, C]``, into ``out[height, width, outputs]``."""
    rows, columns, *_, channels = tiles_view.shape
    count, outputs = rows * columns, out.shape[-1]
    tiles = np.ascontiguousarray(tiles_view.transpose(2, 3, 0, 1, 4)).reshape(POINT_COUNT, -1)
    data = tiled_product(_DATA, tiles).reshape(POINT_COUNT, count, channels)
    products = np.empty((POINT_COUNT, count, outputs), np.float32)
    filters.multiply(data, products)
    results = tiled_product(_RESULT, products.reshape(POINT_COUNT, -1))
    tiles_out = results.reshape(OUT, OUT, rows, columns, outputs).transpose(2, 0, 3, 1, 4)
    full_shape = (rows * OUT, columns * OUT, outputs)
    if out.shape == full_shape:
        out.reshape(tiles_out.shape)[...] = tiles_out
    else:
        out[...] = tiles_out.reshape(full_shape)[: out.shape[0], : out.shape[1]]


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


def _transformed_filters(w: Array) -> Panels:
    """Return filters ``[outputs, C, 3, 3]`` at each point, as packed matrices ``[C, outputs]``."""
    outputs, channels = w.shape[:2]
    return Panels((POINT_COUNT, channels, outputs), partial(_transform_filters, w), w)


def _transform_filters(w: Array, columns: slice, out: Array) -> None:
    """Transform the filters of some outputs into ``[point, panel, channel, output]``."""
    _, panels, channels, width = out.shape
    filters = w[columns].reshape(panels, width, channels, -1).transpose(3, 0, 2, 1)
    with np.errstate(all="ignore"):  # numbers that are not finite show in the results
        np.matmul(_FILTERS, filters.reshape(KERNEL * KERNEL, -1), out=out.reshape(POINT_COUNT, -1))
