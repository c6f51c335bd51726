"""Int8 GEMM: convolutions of 8-bit levels with integer weights, as implicit GEMMs over maps with borders.

Products are summed in i32, and the epilogue requantizes the sums to levels. Tables of addresses locate the rows of the
data, the result and the residual. All columns of a panel are stored: channels are padded to whole vectors.

With AVX-512, pack instructions narrow the vectors of a row to bytes, which interleaves them in 128-bit parts. To
compensate, the weights and the parameters of columns are stored in `column_order`, and levels end up in channel order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ....ir.tensor import Array
from ..codegen import ir
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import Instruction, device, instruction, routine, types
from ..codegen.levels import (
    GROUP,
    LEVEL_SIZE,
    WEIGHT_DTYPE,
    at_most,
    dot,
    load_levels,
    store_levels,
    to_levels,
)
from ..codegen.memory import load_i64, scratch_memory, store_i64
from ..codegen.target import TARGET
from ..codegen.vectors import F32, I32, I64, INTS, LANES, VECTOR, Emit, Value, splat_bits
from ..packed_memory import aligned_empty
from ..threading.task import Task, shared_counters
from ._gemm_tile import SINGLE, TALL, WIDE, emit_tiles
from ._int8_maps import MapJob, fill_borders, first_share, share_of_lines, take_units
from ._panels import Panel, split

__all__ = [
    "AheadRecord",
    "CAN_PACK",
    "column_order",
    "emit_even_tiles",
    "LevelBounds",
    "levels_gemm",
    "levels_panel",
    "LevelsGemmJob",
    "load_bounds",
    "pack_levels",
    "requantize",
    "store_rows",
]

CAN_PACK = GROUP == 4 and LANES == 16 and TARGET.has("avx512bw")
"""Whether the target narrows vectors to bytes with AVX-512 pack instructions."""

# Parts of 128 bits of a vector, words of each, and bytes of a vector.
_PARTS, _WORDS, _BYTES = 4, 4, 64
_LEVELS, _SHORTS = ir.VectorType(ir.I8, _BYTES), ir.VectorType(ir.I16, _BYTES // 2)


def column_order(vectors: int) -> Array:
    """Return the order of a panel's columns in memory: the index of the column in each lane of its vectors."""
    count = vectors * LANES
    if not CAN_PACK:
        return np.arange(count)
    return np.arange(count).reshape(_PARTS, vectors, _WORDS).swapaxes(0, 1).reshape(-1)


def load_row(emit: Emit, address: Value, vectors: int) -> list[Value]:
    """Load the levels of ``vectors`` vectors of a row as f32 vectors, in `column_order`."""
    if not CAN_PACK or vectors == 1:
        return [load_levels(emit, emit.at(address, LEVEL_SIZE * LANES * j)) for j in range(vectors)]
    builder = emit.builder
    if vectors == _WORDS:
        row = emit.load(address, _LEVELS)
    else:  # half of each part is used
        half = emit.load(address, ir.VectorType(I64, _PARTS))
        row = builder.bitcast(_shuffle(emit, half, [n // 2 for n in range(2 * _PARTS)]), _LEVELS)
    return [builder.uitofp(_widen_word(emit, row, j), VECTOR) for j in range(vectors)]


def _widen_word(emit: Emit, row: Value, j: int) -> Value:
    """Zero-extend the bytes of word ``j`` of each 128-bit part to 32-bit lanes."""
    order = [
        16 * part + 4 * j + i if byte == 0 else _BYTES
        for part in range(_PARTS)
        for i in range(_WORDS)
        for byte in range(4)
    ]
    mask = ir.Constant(ir.VectorType(I32, _BYTES), order)
    return emit.builder.bitcast(emit.builder.shuffle_vector(row, ir.Constant(_LEVELS, None), mask), INTS)


def _shuffle(emit: Emit, value: Value, order: Sequence[int]) -> Value:
    mask = ir.Constant(ir.VectorType(I32, len(order)), list(order))
    return emit.builder.shuffle_vector(value, ir.Constant(value.type, ir.UNDEFINED), mask)


def store_rows(emit: Emit, values: Sequence[Value], places: Sequence[Value], low: Value, high: Value) -> None:
    """Round f32 values to levels from ``low`` to ``high``, and store one row of vectors at each address in ``places``.

    Args:
        emit: the code emitter.
        values: the vectors of all rows, in `column_order`.
        places: the address of each row.
        low: the lower bound, in all lanes.
        high: the upper bound, in all lanes.
    """
    vectors = len(values) // len(places)
    if CAN_PACK:
        _store_packed(emit, values, places, vectors, low, high)
        return
    for i, place in enumerate(places):
        for j in range(vectors):
            level = to_levels(emit, values[i * vectors + j], low, high)
            store_levels(emit, level, emit.at(place, LEVEL_SIZE * LANES * j))


def _store_packed(
    emit: Emit, values: Sequence[Value], places: Sequence[Value], vectors: int, low: Value, high: Value
) -> None:
    """Do the same as `store_rows` with pack instructions, for as many rows at a time as fill a vector of bytes."""
    beside, builder = _WORDS // vectors, emit.builder
    whole = builder.fptoui(low, ir.VectorType(ir.I32, LANES))
    lowest = builder.bitcast(builder.mul(whole, splat_bits(0x01010101)), _LEVELS)
    kind = ir.VectorType(I64, 2 * vectors)
    for first in range(0, len(places), beside):
        rows = [min(first + n, len(places) - 1) for n in range(beside)]
        block = [values[row * vectors + j] for row in rows for j in range(vectors)]
        levels = _pack_bytes(emit, [_round_to_i32(emit, at_most(emit, value, high)) for value in block])
        levels = builder.select(builder.icmp_unsigned(">", levels, lowest), levels, lowest)
        words = builder.bitcast(levels, INTS)
        order = np.arange(LANES).reshape(_PARTS, beside, vectors).swapaxes(0, 1).reshape(beside, -1)
        for n, lanes in enumerate(order[: len(places) - first].tolist()):
            row = words if beside == 1 else _shuffle(emit, words, lanes)
            emit.store(builder.bitcast(row, kind), places[first + n])


def _round_to_i32(emit: Emit, value: Value) -> Value:
    """Round to the nearest i32, ties to even; values out of range become the lowest i32."""
    kinds = VECTOR, INTS, ir.I16, I32
    function = emit.function("llvm.x86.avx512.mask.cvtps2dq.512", INTS, *kinds)
    current = ir.Constant(I32, 4)  # the rounding mode of the processor
    return emit.builder.call(function, [value, ir.Constant(INTS, None), ir.Constant(ir.I16, -1), current])


def _pack_bytes(emit: Emit, vectors: Sequence[Value]) -> Value:
    """Narrow four i32 vectors to one vector of unsigned bytes with saturation."""
    shorts = emit.function("llvm.x86.avx512.packssdw.512", _SHORTS, INTS, INTS)
    levels = emit.function("llvm.x86.avx512.packuswb.512", _LEVELS, _SHORTS, _SHORTS)
    pairs = [emit.builder.call(shorts, vectors[i : i + 2]) for i in (0, 2)]
    return emit.builder.call(levels, pairs)


# Bytes of a cache line.
_LINE = 64
# Rows of the longest tile for the remainder after full tiles.
_SHORTEST = 4
_WIDE_ROWS, _TALL_ROWS = TARGET.vectors.wide[0], TARGET.vectors.tall[0]


class LevelBounds(Descriptor):
    """Requantization parameters.

    Products become levels from ``low`` to ``high``. With a residual, the result is ``factor * level + other_factor *
    residual + shift``, rounded to levels from ``sum_low`` to ``sum_high``.
    """

    low: f32
    high: f32
    factor: f32
    other_factor: f32
    shift: f32
    sum_low: f32
    sum_high: f32
    unused: f32


def requantize(emit: Emit, x: Value, scale: Value, bias: Value, bounds: Sequence[Value]) -> Value:
    """Return ``x * scale + bias`` rounded to levels within the first two ``bounds``, as f32."""
    return to_levels(emit, emit.fma(x, scale, bias), bounds[0], bounds[1])


def load_bounds(emit: Emit, address: Value) -> list[Value]:
    """Load the fields of a `LevelBounds`, each broadcast to all lanes."""
    return [emit.splat(emit.load(emit.at(address, 4 * i), F32)) for i in range(7)]


def _micro_kernel(  # noqa: PLR0913 (values in registers)
    emit: Emit, rows: int, vectors: int, xs: Value, ys: Value, others: Value, taps: Value, count: Value, depth: Value,
    panel: Value, scale: Value, bias: Value, bounds: Value, column: Value, ahead: Value, end: Value,
) -> Value:  # fmt: skip
    """Emit one tile; the arguments are those of `levels_panel`. Returns the next address to prefetch."""
    builder = emit.builder
    has_other = builder.icmp_signed("!=", others, emit.i64(0))
    with builder.if_then(has_other):
        for i in range(rows):
            emit.prefetch(emit.at(emit.load(emit.at(others, 8 * i), I64), column))
    start = [ir.Constant(INTS, None)] * (rows * vectors)
    ahead, *sums = _accumulate(emit, rows, vectors, start, xs, taps, count, depth, panel, ahead, end)
    limits = load_bounds(emit, bounds)
    columns = [[emit.load(emit.at(place, 4 * LANES * j)) for place in (scale, bias)] for j in range(vectors)]
    scaled = [emit.fma(builder.sitofp(sums[n], VECTOR), *columns[n % vectors]) for n in range(rows * vectors)]

    def add_residual() -> list[Value]:
        values = []
        for i in range(rows):
            levels = load_row(emit, emit.at(emit.load(emit.at(others, 8 * i), I64), column), vectors)
            for value, other in zip(scaled[i * vectors :], levels, strict=False):
                first = to_levels(emit, value, limits[0], limits[1])
                values.append(emit.fma(first, limits[2], emit.fma(other, limits[3], limits[4])))
        return [*values, limits[5], limits[6]]

    *values, low, high = emit.if_else(has_other, add_residual, lambda: [*scaled, limits[0], limits[1]])
    places = [emit.at(emit.load(emit.at(ys, 8 * i), I64), column) for i in range(rows)]
    store_rows(emit, values, places, low, high)
    return ahead


def _accumulate(  # noqa: PLR0913 (values in registers)
    emit: Emit, rows: int, vectors: int, start: Sequence[Value], xs: Value, taps: Value, count: Value, depth: Value,
    panel: Value, ahead: Value, end: Value,
) -> list[Value]:  # fmt: skip
    """Emit the i32 products of a tile, prefetching one cache line per iteration.

    Returns the next address to prefetch, followed by the sums.
    """
    builder = emit.builder
    step = builder.select(builder.icmp_signed("<", ahead, end), emit.i64(_LINE), emit.i64(0))
    bases = [emit.load(emit.at(xs, 8 * i), I64) for i in range(rows)]
    with emit.loop(count, [panel, ahead, *start]) as (tap, (weights, *before), following):
        offset = emit.load(emit.at(taps, builder.mul(tap, emit.i64(8))), I64)
        lines = [emit.at(base, offset) for base in bases]
        with emit.loop(depth, [weights, *before]) as (k, (place, line, *sums), after):
            emit.prefetch(line)
            columns = [emit.load(emit.at(place, 4 * LANES * j), INTS) for j in range(vectors)]
            along = builder.mul(k, emit.i64(4))
            for i in range(rows):
                levels = emit.splat(emit.load(emit.at(lines[i], along), I32))
                for j in range(vectors):
                    n = i * vectors + j
                    sums[n] = dot(emit, sums[n], levels, columns[j])
            after += [emit.at(place, 4 * LANES * vectors), emit.at(line, step), *sums]
        following += after
    return following[1:]


def emit_even_tiles(
    emit: Emit, longest: int, rows: Value, state: list[Value], tile: Callable[[int, list[Value]], list[Value]]
) -> None:
    """Emit loops over all rows like `emit_tiles`, but with tiles of ``longest`` and ``longest - 1`` rows if these suffice."""
    builder, shorter = emit.builder, longest - 1
    count = builder.sdiv(builder.add(rows, emit.i64(shorter)), emit.i64(longest))
    missing = builder.sub(builder.mul(count, emit.i64(longest)), rows)
    even = builder.icmp_signed("<=", missing, count)
    whole = builder.select(even, builder.sub(count, missing), builder.sdiv(rows, emit.i64(longest)))
    for size, times in ((longest, whole), (shorter, builder.select(even, missing, emit.i64(0)))):
        with emit.loop(times, state) as (_, addresses, following):
            following += tile(size, addresses)
        state = following
        rows = builder.sub(rows, builder.mul(times, emit.i64(size)))
    emit_tiles(emit, _SHORTEST, rows, state, tile)


def _panel_instruction(longest: int, vectors: int) -> Instruction:
    """Return the instruction behind `levels_panel` for one panel width, with tiles of at most ``longest`` rows."""

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, rows: Value, xs: Value, ys: Value, others: Value, taps: Value, count: Value, depth: Value,
        panel: Value, scale: Value, bias: Value, bounds: Value, column: Value, ahead: Value, end: Value,
    ) -> None:  # fmt: skip
        has_other = emit.builder.icmp_signed("!=", others, emit.i64(0))

        def tile(size: int, addresses: list[Value]) -> list[Value]:
            x, y, other, line = addresses
            line = _micro_kernel(
                emit, size, vectors, x, y, other, taps, count, depth, panel, scale, bias, bounds, column, line, end
            )  # fmt: skip
            step = emit.builder.select(has_other, emit.i64(8 * size), emit.i64(0))
            return [emit.at(x, 8 * size), emit.at(y, 8 * size), emit.at(other, step), line]

        emit_all = emit_even_tiles if vectors == WIDE else emit_tiles
        emit_all(emit, longest, rows, [xs, ys, others, ahead], tile)

    write.__name__ = f"levels_panel_{vectors}"
    return instruction(*[types.int64] * 14)(write)


_wide, _tall, _single = (
    _panel_instruction(_WIDE_ROWS, WIDE),
    _panel_instruction(_TALL_ROWS, TALL),
    _panel_instruction(_TALL_ROWS, SINGLE),
)


@routine(*[types.int64] * 15)
def levels_panel(  # noqa: PLR0913 (values in registers)
    vectors: int, rows: int, xs: int, ys: int, others: int, taps: int, count: int, depth: int, panel: int,
    scale: int, bias: int, bounds: int, column: int, ahead: int, end: int,
) -> None:  # fmt: skip
    """Multiply rows of levels by a panel of integer weights, requantize, and store levels.

    Args:
        vectors: the width of the panel in vectors.
        rows: the number of rows.
        xs: a table of the addresses of the rows of the data.
        ys: a table of the addresses of the rows of the result.
        others: a table of the addresses of the rows of the residual, or 0.
        taps: the byte offset of each tap.
        count: the number of taps.
        depth: the 32-bit words of a tap.
        panel: the packed weights.
        scale: the factor of each column.
        bias: the bias of each column, added after scaling.
        bounds: a `LevelBounds`.
        column: the byte offset of the panel in a result row.
        ahead: the start of the weights to prefetch for the next product.
        end: the end of the weights to prefetch.
    """
    if vectors == WIDE:
        _wide(rows, xs, ys, others, taps, count, depth, panel, scale, bias, bounds, column, ahead, end)
    elif vectors == TALL and TALL != SINGLE:  # if both are one vector, their machine code is the same
        _tall(rows, xs, ys, others, taps, count, depth, panel, scale, bias, bounds, column, ahead, end)
    else:
        _single(rows, xs, ys, others, taps, count, depth, panel, scale, bias, bounds, column, ahead, end)


class LevelsGemmJob(MapJob):
    """Parameters of `levels_gemm`.

    ``depth`` counts the 32-bit words of a tap, a contiguous piece of a window. Threads take ``chunk`` rows at a time, or, if
    ``by_panel``, ``chunk`` panels. ``ahead`` points to one `AheadRecord` for each of the ``shares`` of `share_starts`.
    """

    rows: i64
    chunk: i64
    panels: i64
    by_panel: i64
    shares: i64
    starts: i64
    taps: i64
    depth: i64
    table: i64
    weights: i64
    tap_offsets: i64
    ahead: i64


class AheadRecord(Descriptor):
    """The address range of the first weights of the next layer, to be prefetched."""

    start: i64
    end: i64


@device
def _write_addresses(  # noqa: PLR0913 (values in registers)
    table: int, base: int, first: int, rows: int, width: int, plane: int, image: int, line: int, pixel: int
) -> None:  # fmt: skip
    """Write the addresses of ``rows`` consecutive pixels of a map to a table.

    Args:
        table: the table.
        base: the address of pixel 0.
        first: the index of the first pixel to write, counted across images without borders.
        rows: the number of pixels.
        width: the pixels in a line.
        plane: the pixels in an image.
        image: the bytes between images.
        line: the bytes between lines.
        pixel: the bytes between pixels.
    """
    r, index = 0, first
    while r < rows:
        n = index // plane
        rest = index - n * plane
        y = rest // width
        x = rest - y * width
        count = min(width - x, rows - r)
        start = base + n * image + y * line + x * pixel
        for i in range(count):
            store_i64(table, r + i, start + i * pixel)
        r, index = r + count, index + count


@device
def _write_tables(
    job: LevelsGemmJob, tables: int, out: int, x: int, other: int, start: int, count: int, size: int
) -> None:
    """Write the addresses of ``count`` pixels, the first with index ``start``, to three tables of ``size`` bytes each.

    The tables are those of the data, of the result, and of the residual, if there is one.
    """
    width, plane = job.width, job.plane
    _write_addresses(
        tables, x + job.x_offset, start, count, width, plane, job.x_image, job.x_line, job.x_pixel
    )
    _write_addresses(
        tables + size, out + job.y_offset, start, count, width, plane, job.y_image, job.y_line, job.y_pixel
    )
    if job.has_other != 0:
        _write_addresses(
            tables + 2 * size, other + job.other_offset, start, count, width, plane,
            job.other_image, job.other_line,
            job.other_pixel,
        )  # fmt: skip


@device
def _multiply_panels(
    job: LevelsGemmJob, tables: int, size: int, rows: int, first: int, count: int, share: int
) -> None:  # fmt: skip
    """Multiply the ``rows`` rows in the tables by ``count`` panels, the first with index ``first``.

    Each product prefetches the weights of the panel after it, or, if that is the last (of ``share``, if threads take panels),
    the first weights of the next layer.
    """
    weights, end = job.weights, job.panels
    if job.by_panel != 0:
        end = load_i64(job.starts, share + 1)
    bytes_of_vector = 4 * LANES * job.taps * job.depth
    others = tables + 2 * size if job.has_other != 0 else 0
    for panel in range(first, first + count):
        entry = Panel.at(job.table, panel)
        column = entry.column
        ahead = AheadRecord.at(job.ahead, share)
        start, stop = ahead.start, ahead.end
        if panel + 1 < end:
            following = Panel.at(entry + 8 * Panel.words)
            start = weights + following.start
            stop = start + bytes_of_vector * following.vectors
        levels_panel(
            entry.vectors, rows, tables, tables + size, others,
            job.tap_offsets, job.taps,
            job.depth,
            weights + entry.start,
            job.scale + 4 * column, job.bias + 4 * column,
            job.bounds, LEVEL_SIZE * column, start, stop,
        )  # fmt: skip


@device
def _fill_borders(job: LevelsGemmJob, out: int, first: int, count: int) -> None:
    """Fill the border of the result around rows ``first`` to ``first + count``.

    If threads take panels, ``first`` and ``count`` are panels, and a proportional part of the border is filled.
    """
    width = job.width
    if job.by_panel != 0:
        lines = job.rows // width
        line, height = share_of_lines(lines, first, count, job.panels)
    else:
        line, height = first // width, (first + count) // width - first // width
    fill_borders(job.borders, out, line, height)


@Task
def levels_gemm(call: int, job: LevelsGemmJob, out: int, x: int, other: int) -> None:
    """Multiply rows of levels A by packed weights, add the residual B, and store levels.

    A unit of work is a row or a panel.
    """
    counter = shared_counters(call)
    rows, panels = job.rows, job.panels
    by_panel, chunk = job.by_panel, job.chunk
    starts, shares = job.starts, job.shares
    size = 8 * (rows if by_panel != 0 else chunk)
    tables = scratch_memory(3 * size)
    if by_panel != 0:
        _write_tables(job, tables, out, x, other, 0, rows, size)
    share, empty = first_share(call, shares), 0
    while True:
        first, count, share, empty = take_units(counter, starts, chunk, shares, share, empty)
        if count == 0:
            break
        _fill_borders(job, out, first, count)
        if by_panel != 0:
            _multiply_panels(job, tables, size, rows, first, count, share)
        else:
            _write_tables(job, tables, out, x, other, first, count, size)
            _multiply_panels(job, tables, size, count, 0, panels, share)


@dataclass(frozen=True)
class LevelsPanels:
    """Packed integer weights, and a table with one `Panel` record per panel."""

    weights: Array
    table: Array

    def reorder_row(self, row: Array) -> Array:
        """Reorder a row of one value per column to `column_order`, panel by panel."""
        return np.concatenate(
            [row[first + column_order(count)] for _, count, _, first, *_ in self.table.tolist()]
        )


def pack_levels(w: Array, columns: Sequence[int]) -> LevelsPanels:
    """Pack weights ``[outputs, depth]`` in panels of columns, with `GROUP` weights along the depth in each 32-bit word.

    Columns are padded with zeros and stored in `column_order`.

    Args:
        w: the weights; ``depth`` is a multiple of `GROUP`.
        columns: columns at which a panel must end, multiples of `LANES`: first 0, last the padded number of columns.
    """
    words = np.ascontiguousarray(w, WEIGHT_DTYPE).view(np.uint32)
    outputs, depth = words.shape
    packed, table = aligned_empty(depth * columns[-1]).view(np.uint32), []
    packed[...] = 0
    for before, end in pairwise(columns):
        for place, vectors, last in split(end - before):
            first = before + place
            start, width = depth * first, vectors * LANES
            panel = packed[start : start + depth * width].reshape(depth, width)
            panel[:, : max(outputs - first, 0)] = words[first : first + width].T
            panel[...] = panel[:, column_order(vectors)]
            table.append((packed.itemsize * start, vectors, last, first, 0, 0))
    return LevelsPanels(packed, np.array(table, np.int64).reshape(-1, Panel.words))
