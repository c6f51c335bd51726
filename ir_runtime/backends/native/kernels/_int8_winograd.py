"""Convolutions of levels by Winograd, exact in integers: 36 products of 16 bits per tile, not 144 of 8 bits.

A tile has 4 by 4 results. Each thread takes blocks of tiles through all phases, in its own cache.
"""

from __future__ import annotations

import math

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution.forward import Convolution
from ..codegen.descriptor import i64
from ..codegen.language import device
from ..codegen.levels import LEVEL_SIZE
from ..codegen.memory import scratch_memory
from ..codegen.vectors import LANES
from ..packed_memory import aligned_empty
from ..threading.task import Task, load_args
from ._int8_graph import IntegerProduct
from ._int8_maps import LevelMap, MapJob, fill_borders, share_of_lines
from ._int8_shares import first_share, take_units
from ._int8_winograd_tiles import (
    COLUMNS,
    FILTER_FACTORS,
    SUM_BITS,
    multiply_tiles,
    transform_levels,
    transform_sums,
)
from ._winograd_transforms import TILE_ELEMENTS

__all__ = [
    "LEVELS_WINOGRAD",
    "LevelsWinogradJob",
    "block_tiles",
    "count_tiles",
    "is_winograd",
    "transform_weights",
]

# Fewer channels take less time than their transforms.
MIN_CHANNELS = 64
# Transformed weights are eight times as large: fewer tiles of a thread do not make up for reading them.
MIN_TILES = 16
# Bytes of the transformed levels and sums of a block, which stay in the L2 cache.
BLOCK_BYTES = 1 << 19


class LevelsWinogradJob(MapJob):
    """The job of `LEVELS_WINOGRAD`: strides of maps are those of pixels; ``chunk`` tiles are taken together.

    ``pairs`` counts pairs of vectors of input channels, ``panels`` those of `COLUMNS` output channels.
    """

    lines: i64
    tiles: i64
    chunk: i64
    shares: i64
    starts: i64
    pairs: i64
    panels: i64
    weights: i64


def count_tiles(out: LevelMap) -> int:
    """Return the tiles of a result."""
    return out.images * math.ceil(out.height / 4) * math.ceil(out.width / 4)


def is_winograd(node: IntegerProduct, data: LevelMap, out: LevelMap, shares: int) -> bool:
    """Return whether Winograd computes a convolution, and is faster."""
    op, numbers = node.op, node.weights.numbers
    if not isinstance(op, Convolution) or numbers.shape[2:] != (3, 3):
        return False
    fits = (
        data.stored % (2 * LANES) == 0 and out.stored % COLUMNS == 0 and out.height % 4 == out.width % 4 == 0
    )
    plain = all(n == 1 for n in (*op.strides, *op.dilations))
    many = min(numbers.shape[:2]) >= MIN_CHANNELS and count_tiles(out) >= MIN_TILES * shares
    return fits and plain and many and _largest_sum(numbers) < 1 << SUM_BITS - 1


def _largest_sum(numbers: Array) -> int:
    """Return an upper bound of the sums of products with levels."""
    rows = np.abs(numbers.reshape(len(numbers), -1), dtype=np.int16)
    return 255 * int(rows.sum(axis=1, dtype=np.int64).max())


# The transform of filters, each row without its denominator, 4, 6, 6, 24, 24 and 1, and without its sign.
_ROWS = np.array([[1, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 1]], np.float32)
_SIGNS = np.array([1, -1, -1, 1, 1, 1], np.float32)


def transform_weights(numbers: Array, channels: int, outputs: int) -> Array:
    """Return weights ``[outputs, channels, 3, 3]`` transformed and packed as ``[panel, element, pair, column, 2]`` of i16."""
    full = np.zeros((9, channels // 2, 2, outputs), np.float32)
    filled = full.reshape(9, channels, outputs)
    filled[:, : numbers.shape[1], : len(numbers)] = numbers.reshape(*numbers.shape[:2], 9).transpose(2, 1, 0)
    rows = _ROWS * (_SIGNS * FILTER_FACTORS)[:, None]
    found = aligned_empty(TILE_ELEMENTS * channels * outputs // 2).view(np.int16)
    packed = found.reshape(outputs // COLUMNS, TILE_ELEMENTS, channels // 2, COLUMNS, 2)
    for panel, target in enumerate(packed):
        part = full[..., COLUMNS * panel : COLUMNS * (panel + 1)].transpose(0, 1, 3, 2)
        # Sums of f32 are exact: they are integers below 2^15.
        target[...] = (np.kron(rows, rows) @ part.reshape(9, -1)).reshape(target.shape)
    return packed


def block_tiles(share: int, channels: int) -> int:
    """Return how many of the tiles of a share, with that many input channels, are taken together."""
    most = max(BLOCK_BYTES // (TILE_ELEMENTS * (2 * channels + 4 * COLUMNS)), 1)
    return math.ceil(share / math.ceil(share / most))


@device
def _transform(job: LevelsWinogradJob, x: int, first: int, count: int, out: int) -> None:
    """Transform some tiles of the data."""
    wide = job.width // 4
    plane, pairs = job.plane // 16, job.pairs
    line, pixel = job.x_line, job.x_pixel
    base, apart = x + job.x_offset, 4 * LANES * pairs
    for i in range(count):
        n = (first + i) // plane
        y = (first + i - n * plane) // wide
        start = base + n * job.x_image + 4 * y * line
        transform_levels(
            start + 4 * (first + i - n * plane - y * wide) * pixel, line, pixel, pairs, out + i * TILE_ELEMENTS * apart, apart
        )  # fmt: skip


@device
def _store(
    job: LevelsWinogradJob, sums: int, out: int, other: int, first: int, count: int, panel: int
) -> None:
    """Store a panel of the results of some tiles."""
    wide, plane = job.width // 4, job.plane // 16
    line, pixel = job.y_line, job.y_pixel
    other_line = job.other_line
    other_pixel = job.other_pixel
    column = COLUMNS * panel
    base = out + job.y_offset + LEVEL_SIZE * column
    others = other + job.other_offset + LEVEL_SIZE * column
    has_other = job.has_other != 0
    for i in range(count):
        n = (first + i) // plane
        y = (first + i - n * plane) // wide
        x = first + i - n * plane - y * wide
        residual = others + n * job.other_image + 4 * (y * other_line + x * other_pixel)
        transform_sums(
            sums + 4 * COLUMNS * TILE_ELEMENTS * i,
            base + n * job.y_image + 4 * (y * line + x * pixel), line, pixel,
            residual if has_other else 0, other_line, other_pixel,
            job.scale + 4 * column, job.bias + 4 * column,
            job.bounds,
        )  # fmt: skip


def _levels_winograd(call: int) -> None:
    address, out, x, other, _, counter = load_args(call)
    job = LevelsWinogradJob.at(address)
    pairs, panels = job.pairs, job.panels
    starts, shares = job.starts, job.shares
    chunk, depth = job.chunk, LANES * pairs
    levels = scratch_memory(
        4 * TILE_ELEMENTS * chunk * (depth + COLUMNS)
    )  # a tile has all its elements side by side
    sums, bytes_of_panel = levels + 4 * TILE_ELEMENTS * chunk * depth, 4 * COLUMNS * depth
    share, empty = first_share(call, shares), 0
    while True:
        first, count, share, empty = take_units(counter, starts, chunk, shares, share, empty)
        if count == 0:
            break
        line, more = share_of_lines(job.lines, first, count, job.tiles)
        fill_borders(job.borders, out, line, more)
        _transform(job, x, first, count, levels)
        weights = job.weights
        for panel in range(panels):
            for element in range(TILE_ELEMENTS):
                at = 4 * element
                multiply_tiles(
                    count, levels + at * depth, 4 * TILE_ELEMENTS * depth, depth, weights, sums + at * COLUMNS
                )
                weights += bytes_of_panel
            _store(job, sums, out, other, first, count, panel)


LEVELS_WINOGRAD = Task(_levels_winograd)
"""Convolves A with transformed weights, adds levels of B if there is a residual, and stores levels; a unit is a tile."""
