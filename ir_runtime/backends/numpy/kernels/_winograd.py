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
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution.forward import Convolution
from ....ops.window import Pads
from ...common.epilogue import RowEpilogue
from ...common.layout import channels_first, channels_last
from ...common.tape import Tape, replay
from ...common.window_fit import window_fit
from ..math.finite import is_finite
from ..math.gemm import apply_epilogue, split_range
from ..math.panels import WIDTH, Panels, tiled_product
from ..math.windows import windows
from ..threading.parallel import parallel_for, thread_count
from ..tiling.scratch import KeptViews, borrow_scratch
from ._padded_rows import PaddedRows

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
    outputs, channels = w.shape[:2]
    filters = _transformed_filters(w)
    plan_for = lru_cache(maxsize=16)(partial(_planned, op, (channels, outputs)))

    def compute(x: Array, w: Array, epilogue: RowEpilogue) -> Array:
        plan = plan_for(x.shape[2:], thread_count(1 << 62))
        data, finite = channels_last(x), list[bool]()
        y = np.empty((len(x), *plan.out, outputs), np.float32)
        each = math.prod(plan.out)

        def work(chunk: tuple[int, _Part]) -> None:
            image, part = chunk
            with borrow_scratch(plan.size) as scratch:
                bound = plan.bound.of(scratch, part.key, partial(_bind, plan, part, filters))
                bound.source.fill(data[image])
                replay(bound.tape)
                finite.append(is_finite(bound.results.reshape(-1)))
                rows = y[image, OUT * part.rows.start : OUT * part.rows.stop]
                _place(bound.results, rows[..., part.outputs])
            if not plan.shares_outputs:
                first = image * each + OUT * part.rows.start * plan.out[1]
                epilogue(rows.reshape(-1, outputs), first)

        chunks = [(image, part) for image in range(len(x)) for part in plan.parts]
        parallel_for(work, chunks, y.size * w.size // outputs)
        if not all(finite):
            return fallback()(x, w, epilogue)
        if plan.shares_outputs:
            apply_epilogue(y.reshape(-1, outputs), epilogue)
        return channels_first(y)

    return compute


class _Part(NamedTuple):
    """Rows of tiles that are computed at once, and of which outputs."""

    rows: slice
    outputs: slice

    @property
    def key(self) -> tuple[int, int]:
        """Where it begins."""
        return self.rows.start, self.outputs.start


class _Bound(NamedTuple):
    """The views of a scratch memory for a part."""

    source: PaddedRows
    tape: Tape
    """The calls that compute the results from the data."""
    results: Array
    """``[4, 4, row, column, output]`` of tiles."""


@dataclass(frozen=True)
class _Plan:
    """How the images of one shape are computed.

    Where there are fewer tiles than outputs, most of the time filters are read: threads share the outputs, and each
    transforms all data of a tile.
    """

    lengths: tuple[int, int]
    pads: Pads
    """The padding of the data, which is longer where tiles are not whole."""
    out: tuple[int, int]
    """The lengths of the result."""
    columns: int
    """Tiles of a row."""
    parts: tuple[_Part, ...]
    size: int
    """The most elements that a part needs."""
    shares_outputs: bool
    bound: KeptViews[_Bound] = field(default_factory=KeptViews)


def _planned(op: Convolution, channels: tuple[int, int], lengths: tuple[int, int], threads: int) -> _Plan:
    """Return the plan for data of some lengths; ``channels`` are those of the data and of the result."""
    pads, (height, width) = window_fit(op, (KERNEL, KERNEL))(lengths)
    rows, columns = -(-height // OUT), -(-width // OUT)
    (top, bottom), (left, right) = pads
    longer = (top, bottom + OUT * rows - height), (left, right + OUT * columns - width)
    blocks = rows * columns * POINT_COUNT * sum(channels) // BLOCK_SIZE
    threads = min(thread_count(height * width * math.prod(channels) * KERNEL * KERNEL), threads)
    shares_outputs = threads > 1 and rows * columns < channels[1]
    parts = tuple(
        _Part(some, outputs)
        for some in split_range(rows, blocks if shares_outputs else max(blocks, threads))
        for outputs in split_range(channels[1], threads if shares_outputs else 1, WIDTH)
    )
    most = max((part.rows.stop - part.rows.start for part in parts), default=0)
    size = sum(_sizes(channels, most, columns))
    return _Plan(lengths, longer, (height, width), columns, parts, size, shares_outputs)


def _sizes(channels: tuple[int, int], rows: int, columns: int) -> tuple[int, int, int]:
    """Return the elements of padded data, of tiles or products, and of what they are transformed to."""
    padded = (rows * OUT + KERNEL - 1) * (columns * OUT + KERNEL - 1) * channels[0]
    most = rows * columns * POINT_COUNT * max(channels)
    return padded, most, most


def _bind(plan: _Plan, part: _Part, filters: Panels, memory: Array) -> _Bound:
    """Lay out a part in scratch memory, and make the calls that compute it."""
    channels, outputs = filters.depth, part.outputs.stop - part.outputs.start
    rows, columns = part.rows.stop - part.rows.start, plan.columns
    height, width, count = rows * OUT + KERNEL - 1, columns * OUT + KERNEL - 1, rows * columns
    padded, size, _ = _sizes((channels, filters.columns), rows, columns)
    image = memory[: height * width * channels].reshape(height, width, channels)
    one, two = memory[padded : padded + size], memory[padded + size :]
    top = part.rows.start * OUT
    tiles = one[: POINT_COUNT * count * channels].reshape(TILE, TILE, rows, columns, channels)
    data = two[: tiles.size].reshape(POINT_COUNT, count, channels)
    products = one[: POINT_COUNT * count * outputs].reshape(POINT_COUNT, count, outputs)
    results = two[: OUT * OUT * count * outputs].reshape(OUT * OUT, -1)
    view = windows(image, (TILE, TILE), (OUT, OUT), (1, 1)).transpose(2, 3, 0, 1, 4)
    tape: Tape = [(np.copyto, (tiles, view))]
    tape += tiled_product(_DATA, tiles.reshape(POINT_COUNT, -1), data.reshape(POINT_COUNT, -1))
    tape += filters.tape_of_columns(data, products, part.outputs)
    tape += tiled_product(_RESULT, products.reshape(POINT_COUNT, -1), results)
    return _Bound(
        PaddedRows.of(slice(top, top + height), plan.lengths[0], plan.pads, image),
        tape,
        results.reshape(OUT, OUT, rows, columns, outputs),
    )


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
