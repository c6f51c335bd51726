"""3x3 convolutions with a quarter of the multiplications: Winograd's minimal filtering, F(4x4, 3x3).

Data in tiles of 6x6 and filters are evaluated as polynomials at 36 places. There, a convolution is one
matrix product of channels for each place; four matrix products in all:

    filters:  G w Gt           once, when compiling
    data:     Bt x B           36 places of every tile
    product:  of channels, at every place
    result:   At y A           4x4 numbers of every tile

Places are 0, ±11/16, ±11/8 and infinity: exact in binary, and with a quarter of the error of the usual
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
from ..math.gemm import split_range
from ..math.panels import Panels, tiled_product
from ..math.windows import window_fit, windows
from ..threading.parallel import parallel_for, thread_count

__all__ = ["suits_winograd", "winograd"]

OUT, KERNEL = 4, 3
TILE = OUT + KERNEL - 1
PLACES = TILE * TILE
POINTS = (0.0, 11 / 16, -11 / 16, 11 / 8, -11 / 8)

# Elements of tiles, evaluated, and of their results, that several passes go over: both caches hold them.
BLOCK = 400_000
# Filters take four times their memory; where they are more than this, little time is won.
FILTERS = 1 << 16
# With fewer channels, or on smaller maps, the passes over the tiles cost more than what they save.
CHANNELS = 16
MAP = 10


def suits_winograd(op: Convolution, w: Array, lengths: tuple[int | None, ...]) -> bool:
    """Whether this is a convolution for it; ``lengths`` are those of the data, where they are known."""
    outputs, channels, *kernel = w.shape
    if kernel != [KERNEL, KERNEL] or any(n != 1 for n in (*op.strides, *op.dilations)):
        return False
    if min(outputs, channels) < CHANNELS or outputs * channels > FILTERS:
        return False
    return all(n is None or n >= MAP for n in lengths)


def winograd(
    op: Convolution, w: Array, direct: Callable[[], Callable[..., Array]]
) -> Callable[[Array, Array, RowEpilogue], Array]:
    """What computes a convolution from data, filters and a `RowEpilogue`.

    NaN, infinities and sums that are too large would spread over their tiles. Where a result has any, all
    is computed anew by ``direct``, which is made then.
    """
    outputs = len(w)
    filters = _evaluated(w)
    fit = window_fit(op, w.shape[2:])

    def compute(x: Array, w: Array, epilogue: RowEpilogue) -> Array:
        pads, out = fit(x.shape[2:])
        tiles = tuple(-(-n // OUT) for n in out)
        more = [(b, e + OUT * t - n) for (b, e), t, n in zip(pads, tiles, out, strict=True)]
        data = pad_spatial(channels_last(x), tuple(more))
        y = np.empty((len(x), *out, outputs), np.float32)
        finite = []

        def work(piece: tuple[int, slice]) -> None:
            image, part = piece
            every = windows(data[image], (TILE, TILE), (OUT, OUT), (1, 1))[part]
            lines = y[image, OUT * part.start : OUT * part.stop]
            _block(every, filters, lines)
            rows = lines.reshape(-1, outputs)
            finite.append(bool(np.isfinite(rows).all()))
            epilogue(rows, (image * out[0] + OUT * part.start) * out[1])

        size = y.size * w.size // outputs
        line = PLACES * tiles[1] * (x.shape[1] + outputs)
        blocks = max(tiles[0] * line // BLOCK, thread_count(size))
        parallel_for(
            work, [(image, part) for image in range(len(x)) for part in split_range(tiles[0], blocks)], size
        )
        return channels_first(y) if all(finite) else direct()(x, w, epilogue)

    return compute


def _block(every: Array, filters: Panels, out: Array) -> None:
    """The results of some lines of tiles, ``[line, column, 6, 6, C]``, into ``out[height, width, outputs]``."""
    lines, columns, *_, channels = every.shape
    count, outputs = lines * columns, out.shape[-1]
    tiles = np.ascontiguousarray(every.transpose(2, 3, 0, 1, 4)).reshape(PLACES, -1)
    data = tiled_product(_DATA, tiles).reshape(PLACES, count, channels)
    products = np.empty((PLACES, count, outputs), np.float32)
    filters.multiply(data, products)
    found = tiled_product(_RESULT, products.reshape(PLACES, -1))
    squares = found.reshape(OUT, OUT, lines, columns, outputs).transpose(2, 0, 3, 1, 4)
    whole = (lines * OUT, columns * OUT, outputs)
    if out.shape == whole:
        out.reshape(squares.shape)[...] = squares
    else:
        out[...] = squares.reshape(whole)[: out.shape[0], : out.shape[1]]


def _transforms() -> tuple[Array, Array, Array]:
    """``At``, ``G`` and ``Bt`` for one axis (Toom and Cook): the last place is infinity."""
    apart = [math.prod(p - q for q in POINTS if q != p) for p in POINTS]
    result = np.zeros((OUT, TILE))
    filters = np.zeros((TILE, KERNEL))
    data = np.zeros((TILE, TILE))
    for i, (p, d) in enumerate(zip(POINTS, apart, strict=True)):
        result[:, i] = [p**k for k in range(OUT)]
        filters[i] = [p**k / d for k in range(KERNEL)]
        data[i, :-1] = np.poly([q for q in POINTS if q != p])[::-1]
    result[-1, -1] = filters[-1, -1] = 1
    data[-1] = np.poly(POINTS)[::-1]
    return result, filters, data


_AT, _G, _BT = _transforms()
# Both axes in one product: 36 places from 9 numbers or 36, 16 numbers from 36 places.
_FILTERS = np.kron(_G, _G).astype(np.float32)
_DATA = np.kron(_BT, _BT).astype(np.float32)
_RESULT = np.kron(_AT, _AT).astype(np.float32)


def _evaluated(w: Array) -> Panels:
    """Filters ``[outputs, C, 3, 3]`` at each place, as matrices ``[C, outputs]``."""
    outputs, channels = w.shape[:2]
    return Panels((PLACES, channels, outputs), partial(_evaluate, w), w)


def _evaluate(w: Array, columns: slice, out: Array) -> None:
    """Some outputs into ``[place, panel, channel, output]``."""
    _, panels, channels, width = out.shape
    filters = w[columns].reshape(panels, width, channels, -1).transpose(3, 0, 2, 1)
    with np.errstate(all="ignore"):  # what is not finite shows in the results
        np.matmul(_FILTERS, filters.reshape(KERNEL * KERNEL, -1), out=out.reshape(PLACES, -1))
