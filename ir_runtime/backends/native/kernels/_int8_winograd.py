"""Winograd convolution of levels, F(4x4, 3x3), exact in integers (Lavin and Gray 2016, arXiv:1509.09308).

A tile takes 36 16-bit products instead of 144 8-bit products; each thread takes blocks of tiles through all
phases, in its own cache. Filters are transformed without the denominators of the transform, so transformed
levels and weights are 16-bit integers, and results are 24 * 24 times as large. Sums may wrap around: they are
exact modulo 2^32, and results divided by 9 and by 64 are exact modulo 2^26, which is enough for all sums of
the layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution import Convolution
from ..codegen import ir
from ..codegen.descriptor import i64
from ..codegen.language import device, instruction, types
from ..codegen.levels import LEVEL_SIZE, dot_pairs, load_levels, to_levels
from ..codegen.memory import scratch_memory
from ..codegen.vectors import I32, INTS, LANES, VECTOR, Emit, Value
from ..packed_memory import aligned_empty
from ..threading.task import Task, shared_counters
from ._gemm_tile import WIDE, WIDE_ROWS
from ._int8_graph import IntegerProduct
from ._int8_maps import LevelMap, MapJob, fill_borders, first_share, share_of_lines, take_units
from ._int8_tile import bounds_at, emit_even_tiles, store_rows
from ._winograd_transforms import TILE_ELEMENTS

__all__ = [
    "COLUMNS",
    "levels_winograd",
    "LevelsWinogradJob",
    "block_tiles",
    "count_tiles",
    "is_winograd",
    "transform_weights",
]

COLUMNS = LANES * WIDE
"""The output channels of a panel."""
SUM_BITS = 26
"""The bits of a layer's sums, with sign."""

_LINE = 64  # bytes of a cache line
_LEVELS = ir.VectorType(ir.IntType(8 * LEVEL_SIZE), 2 * LANES)
_SHORTS = ir.VectorType(ir.IntType(16), 2 * LANES)
# What elements of a filter are multiplied by beyond their denominators, so that the output transform adds rather than multiplies.
FILTER_FACTORS = 6, 4, 4, 1, 1, 12
# The inverse of 9 modulo 2^32.
_NINTH = pow(9, -1, 1 << 32)


def _shifted(emit: Emit, x: Value, bits: int) -> Value:
    return emit.builder.shl(x, ir.Constant(x.type, [bits] * x.type.count))


def _input_transform(emit: Emit, d: Sequence[Value]) -> list[Value]:
    add, sub = emit.builder.add, emit.builder.sub
    even, odd = sub(d[4], _shifted(emit, d[2], 2)), sub(d[3], _shifted(emit, d[1], 2))
    wide, narrow = sub(d[4], d[2]), _shifted(emit, sub(d[3], d[1]), 1)
    return [
        add(_shifted(emit, sub(d[0], d[2]), 2), wide),
        add(even, odd),
        sub(even, odd),
        add(wide, narrow),
        sub(wide, narrow),
        sub(sub(d[5], d[3]), _shifted(emit, narrow, 1)),
    ]


def _output_transform(emit: Emit, m: Sequence[Value]) -> list[Value]:
    """Return 24 times the results; the sums include `FILTER_FACTORS`."""
    add, sub = emit.builder.add, emit.builder.sub
    near, far, across = add(m[1], m[2]), add(m[3], m[4]), sub(m[1], m[2])
    along = _shifted(emit, sub(m[3], m[4]), 1)
    return [
        add(add(m[0], near), far),
        add(across, along),
        add(near, _shifted(emit, far, 2)),
        add(across, _shifted(emit, add(m[5], _shifted(emit, along, 1)), 1)),
    ]


@instruction(*[types.int64] * 6)
def transform_levels(
    emit: Emit, x: Value, line: Value, pixel: Value, pairs: Value, out: Value, apart: Value
) -> None:  # fmt: skip
    """Transform a tile of levels.

    Args:
        emit: the code emitter.
        x: the tile's first pixel.
        line: the bytes between its rows.
        pixel: the bytes between its columns.
        pairs: the number of pairs of channel vectors.
        out: the address of the first transformed element, i16.
        apart: the bytes between transformed elements.
    """
    builder = emit.builder
    rows = [emit.at(x, builder.mul(line, emit.i64(a))) for a in range(6)]
    columns = [builder.mul(pixel, emit.i64(b)) for b in range(6)]
    with emit.loop(pairs) as (i, _, _following):
        offset = builder.mul(i, emit.i64(2 * LANES * LEVEL_SIZE))
        done = []
        for column in columns:
            places = [emit.at(emit.at(row, column), offset) for row in rows]
            levels = [emit.load(place, _LEVELS) for place in places]
            done.append(_input_transform(emit, [builder.zext(each, _SHORTS) for each in levels]))
        target = emit.at(out, builder.mul(i, emit.i64(4 * LANES)))
        for a in range(6):
            for b, value in enumerate(_input_transform(emit, [column[a] for column in done])):
                emit.store(value, emit.at(target, builder.mul(apart, emit.i64(6 * a + b))))


@instruction(*[types.int64] * 6)
def multiply_tiles(
    emit: Emit, count: Value, x: Value, step: Value, depth: Value, panel: Value, out: Value
) -> None:  # fmt: skip
    """Multiply one element of several tiles by a panel, prefetching the next.

    Args:
        emit: the code emitter.
        count: the number of tiles.
        x: the address of the element of the first tile.
        step: the bytes between tiles.
        depth: the number of channel pairs.
        panel: the packed weights, `COLUMNS` pairs for each pair of channels.
        out: the address of the first tile's sums: `COLUMNS` i32 for each element of each tile.
    """
    builder = emit.builder

    def tile(rows: int, addresses: list[Value]) -> list[Value]:
        start, target, ahead = addresses
        lines = [emit.at(start, builder.mul(step, emit.i64(i))) for i in range(rows)]
        none = [ir.Constant(INTS, None)] * (rows * WIDE)
        with emit.loop(depth, [panel, ahead, *none]) as (k, (place, line, *sums), after):
            emit.prefetch(line)
            weights = [emit.load(emit.at(place, 4 * LANES * j), INTS) for j in range(WIDE)]
            along = builder.mul(k, emit.i64(4))
            for i in range(rows):
                pair = emit.splat(emit.load(emit.at(lines[i], along), I32))
                for j in range(WIDE):
                    sums[i * WIDE + j] = dot_pairs(emit, sums[i * WIDE + j], pair, weights[j])
            after += [emit.at(place, 4 * COLUMNS), emit.at(line, _LINE), *sums]
        for n, total in enumerate(after[2:]):
            row = emit.at(target, TILE_ELEMENTS * 4 * COLUMNS * (n // WIDE))
            emit.store(total, emit.at(row, 4 * LANES * (n % WIDE)))
        following = emit.at(start, builder.mul(step, emit.i64(rows)))
        return [following, emit.at(target, TILE_ELEMENTS * 4 * COLUMNS * rows), after[1]]

    ahead = emit.at(panel, builder.mul(depth, emit.i64(4 * COLUMNS)))
    emit_even_tiles(emit, WIDE_ROWS, count, [x, out, ahead], tile)


@instruction(*[types.int64] * 10)
def transform_sums(  # noqa: PLR0913 (values in registers)
    emit: Emit, x: Value, out: Value, line: Value, pixel: Value, other: Value, other_line: Value,
    other_pixel: Value, scale: Value, bias: Value, bounds: Value,
) -> None:  # fmt: skip
    """Transform the sums of a tile, requantize them, and store `COLUMNS` levels of each pixel.

    Args:
        emit: the code emitter.
        x: the address of the tile's first element.
        out: the first pixel of the result.
        line: the bytes between result rows.
        pixel: the bytes between result columns.
        other: the first pixel of the residual, or 0.
        other_line: the bytes between residual rows.
        other_pixel: the bytes between residual columns.
        scale: a factor for each column.
        bias: a summand for each column.
        bounds: `LevelBounds`.
    """
    builder, held = emit.builder, bounds_at(emit, bounds)
    with builder.if_else(builder.icmp_signed("!=", other, emit.i64(0))) as branches:
        for branch, (low, high), has_other in zip(
            branches, (held[5:7], held[:2]), (True, False), strict=True
        ):
            with branch, emit.loop(emit.i64(WIDE)) as (j, _, _following):
                offset, at = (builder.mul(j, emit.i64(size * LANES)) for size in (4, LEVEL_SIZE))
                factors = [emit.load(emit.at(place, offset)) for place in (scale, bias)]
                for a, totals in enumerate(_results(emit, emit.at(x, offset))):
                    values = [
                        emit.fma(builder.sitofp(_divided(emit, each), VECTOR), *factors) for each in totals
                    ]
                    if has_other:
                        others = _row_pixels(emit, emit.at(other, at), other_line, other_pixel, a)
                        values = [_added(emit, *each, held) for each in zip(values, others, strict=True)]
                    places = _row_pixels(emit, emit.at(out, at), line, pixel, a)
                    store_rows(emit, values, places, low, high)


def _results(emit: Emit, x: Value) -> list[list[Value]]:
    """Return the result rows of a tile, for one vector of columns."""
    elements = [emit.load(emit.at(x, 4 * COLUMNS * n), INTS) for n in range(TILE_ELEMENTS)]
    columns = [_output_transform(emit, elements[b::6]) for b in range(6)]
    return [_output_transform(emit, [column[a] for column in columns]) for a in range(4)]


def _row_pixels(emit: Emit, start: Value, line: Value, pixel: Value, row: int) -> list[Value]:
    """Return the addresses of the pixels of a row of a tile."""
    first = emit.at(start, emit.builder.mul(line, emit.i64(row)))
    return [emit.at(first, emit.builder.mul(pixel, emit.i64(b))) for b in range(4)]


def _added(emit: Emit, value: Value, place: Value, bounds: Sequence[Value]) -> Value:
    """Add the residual's levels at an address to a result, before rounding."""
    residual = emit.fma(load_levels(emit, place), bounds[3], bounds[4])
    return emit.fma(to_levels(emit, value, bounds[0], bounds[1]), bounds[2], residual)


def _divided(emit: Emit, total: Value) -> Value:
    """Divide by 24 * 24: by 9 with its modular inverse, then by 64."""
    ninth = emit.builder.mul(total, ir.Constant(INTS, [_NINTH] * LANES))
    return emit.builder.ashr(ninth, ir.Constant(INTS, [32 - SUM_BITS] * LANES))


# Fewer channels take less time than their transforms.
MIN_CHANNELS = 64
# Transformed weights are eight times as large: fewer tiles of a thread do not make up for reading them.
MIN_TILES = 16
# Bytes of the transformed levels and sums of a block, which stay in the L2 cache.
BLOCK_BYTES = 1 << 19


class LevelsWinogradJob(MapJob):
    """The job of `levels_winograd`: map strides are those of pixels; a thread takes ``chunk`` tiles at a time.

    ``pairs`` counts pairs of input channel vectors, ``panels`` those of `COLUMNS` output channels.
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
    """Return the number of tiles of a result."""
    return out.images * math.ceil(out.height / 4) * math.ceil(out.width / 4)


def is_winograd(node: IntegerProduct, data: LevelMap, out: LevelMap, shares: int) -> bool:
    """Return whether Winograd supports a convolution and is faster."""
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
    """Return an upper bound of the sums of products."""
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
    """Return the number of tiles in a block of a share, for that many input channels."""
    most = max(BLOCK_BYTES // (TILE_ELEMENTS * (2 * channels + 4 * COLUMNS)), 1)
    return math.ceil(share / math.ceil(share / most))


@device
def _transform(job: LevelsWinogradJob, x: int, first: int, count: int, out: int) -> None:
    """Transform input tiles."""
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
    """Store a panel of the results of tiles."""
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


@Task
def levels_winograd(call: int, job: LevelsWinogradJob, out: int, x: int, other: int) -> None:
    """Convolve A with transformed weights, add levels of B as a residual, and store levels; a unit is a tile."""
    counter = shared_counters(call)
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
