"""Packed weights: matrices in panels as wide as a GEMM tile, row by row (GotoBLAS, BLIS).

Panels hold f32, or bf16 with two rows in each 32-bit word. They are packed from matrices of any strides, and
from filters, constant or computed in the run, in squares transposed in registers.

Keys and values of attention are packed by one thread, inside a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...._util.forks import cached_property
from ....ir.operation import Operation
from ....ir.tensor import Array, Value
from ..codegen import ir
from ..codegen.bf16 import as_bf16
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Device, Routine, device, instruction, routine, types
from ..codegen.memory import load_f32, scratch_memory, store_f32
from ..codegen.vectors import INTS, LANES, Emit, splat_bits
from ..codegen.vectors import Value as Register
from ..packed_memory import aligned_empty
from ..threading.parallel import parallel_for, pays_to_share, threads, threads_for, workspace
from ..threading.task import UNUSED, Task, each_counted, each_unit, shared_counters
from ._epilogue import FusedKernel
from ._gemm_tile import ROW_MULTIPLE, SINGLE, TALL, WIDE, WIDE_ROWS, gemm_panel
from ._rows import copy_padded, copy_row, transpose_part, transpose_square

__all__ = [
    "allocate_panels",
    "CachedBytes",
    "chunk_rows",
    "FilterPacking",
    "FusedOfRun",
    "multiply_panels",
    "next_panel",
    "pack_bf16_panels",
    "pack_panels",
    "pack_rows",
    "pack_square",
    "pack_transposed",
    "PackedPanels",
    "pair_rows",
    "Panel",
    "panels_product",
    "split",
    "unit_place",
    "zero_tail",
]

# Units per thread, so that other threads can take over from one that is interrupted.
UNITS_PER_THREAD = 4
# A unit takes as long as that many rows more than it has: to find its place, and to load a panel.
UNIT_ROWS = 3


class Panel(Descriptor):
    """A panel: its column in the result, byte offsets of weights, bias and tap offsets, and the columns of its last vector."""

    start: i64
    vectors: i64
    last_columns: i64
    column: i64
    bias: i64
    tap_offset: i64


@dataclass(frozen=True)
class PackedPanels:
    """A packed matrix.

    Args:
        numbers: the concatenated panels.
        bias: a number for each column, padded like the panels.
        table: one `Panel` per panel.
    """

    numbers: Array
    bias: Array
    table: Array

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def is_finite(self) -> bool:
        """Whether the sum of all numbers is finite, so that products with zeros may be skipped."""
        return bool(np.isfinite(self.numbers.sum()))


def split(columns: int) -> list[tuple[int, int, int]]:
    """Split columns into panels: the first column, the vectors, and the columns of the last vector of each."""
    found, first = [], 0
    while first < columns:
        vectors = -(-(columns - first) // LANES)
        vectors = next(n for n in (WIDE, TALL, SINGLE) if n <= vectors)
        last = min(columns - first - (vectors - 1) * LANES, LANES)
        found.append((first, vectors, last))
        first += vectors * LANES
    return found


class CachedBytes(NamedTuple):
    """The share of the L2 cache for rows and weights.

    Args:
        rows: the bytes of rows that stay in the cache with a panel while all panels are used.
        weights: the bytes of weights above which they do not stay: then each panel is used for all rows, if
            these are fewer.
    """

    rows: int
    weights: int


def chunk_rows(
    rows: int, row_bytes: int, weight_bytes: int, panels: int, threads: int, cached: CachedBytes
) -> tuple[int, bool]:
    """Return the rows of a unit, and whether a panel is used for all of them before the next.

    The rows of a unit are a multiple of all tile heights, or, if threads would have few units, of the wide
    tile's.
    """
    row_bytes = max(row_bytes, 1)
    heavy = weight_bytes > cached.weights and rows * row_bytes < weight_bytes
    chunk = max((2 * cached.rows if heavy else cached.rows) // row_bytes, 1)
    if not heavy:
        chunk = min(chunk, 4 * ROW_MULTIPLE)
    wanted = -(-UNITS_PER_THREAD * threads // max(panels, 1)) if threads > 1 else 1
    chunk = min(chunk, -(-rows // wanted))
    chunk = max(-(-chunk // ROW_MULTIPLE), 1) * ROW_MULTIPLE
    if threads > 1 and rows * panels < 2 * chunk * threads:

        def longest(some: int) -> int:
            """Return the most work of a thread, in rows by a panel."""
            units = -(-rows // some) * panels
            return -(-units // threads) * (min(some, rows) + UNIT_ROWS)

        chunk = min(range(chunk, 0, -WIDE_ROWS), key=longest)
    return chunk, heavy


@device
def unit_place(unit: int, by_panel: int, chunks: int, panels: int) -> tuple[int, int]:
    """Return the panel and the row chunk of a unit."""
    if by_panel != 0:
        panel, chunk = unit // chunks, unit % chunks
    else:
        panel, chunk = unit % panels, unit // panels
    return panel, chunk


def allocate_panels(
    groups: int, columns: int, depth: int, bias: Array | None = None, across: int = 0
) -> PackedPanels:
    """Allocate panels for matrices of ``depth`` rows, with biases and uninitialised weights."""
    parts = split(columns)
    table, start, before = [], 0, 0
    for group in range(groups):
        for first, vectors, last in parts:
            table.append((4 * start, vectors, last, group * columns + first, 4 * before, group * across))
            start, before = start + depth * vectors * LANES, before + vectors * LANES
    biases = aligned_empty(before)
    biases[...] = 0
    if bias is not None:
        for _, vectors, last, column, place, _ in table:
            count = (vectors - 1) * LANES + last
            biases[place // 4 : place // 4 + count] = bias[column : column + count]
    return PackedPanels(aligned_empty(start), biases, np.array(table, np.int64).reshape(-1, Panel.words))


def _transposed(emit: Emit, vectors: list[Register]) -> list[Register]:
    """Transpose a square of vectors by repeatedly interleaving halves."""
    count = len(vectors)
    lanes = [lane for pair in zip(range(count), range(count, 2 * count), strict=True) for lane in pair]
    low, high = (ir.Constant(INTS, part) for part in (lanes[:count], lanes[count:]))
    for _ in range(count.bit_length() - 1):
        pairs = list(zip(vectors[: count // 2], vectors[count // 2 :], strict=True))
        vectors = [emit.builder.shuffle_vector(x, y, mask) for x, y in pairs for mask in (low, high)]
    return vectors


@instruction(*[types.int64] * 5)
def pack_square(
    emit: Emit, target: Register, apart: Register, source: Register, by_column: Register, factors: Register
) -> None:
    """Pack `LANES` columns of `LANES` contiguous numbers."""
    scale = emit.load(factors)
    places = [emit.at(source, emit.builder.mul(by_column, emit.i64(i))) for i in range(LANES)]
    for i, row in enumerate(_transposed(emit, [emit.load(place) for place in places])):
        emit.store(emit.multiply(row, scale), emit.at(target, emit.builder.mul(apart, emit.i64(i))))


# How many tensors the post-ops of a product with packed weights can read.
MAX_EXTRAS = 1


class FilterJob(Descriptor):
    """The job of `_pack_filters`: panels, their table, a factor per column, sizes, and channel vectors per unit.

    A panel is divided into ``blocks`` units.
    """

    panels: i64
    table: i64
    scale: i64
    channels: i64
    taps: i64
    blocks: i64


@instruction(*[types.int64] * 6)
def _place_rows(
    emit: Emit, source: ir.Value, target: ir.Value, taps: ir.Value, count: ir.Value, width: ir.Value, depth: ir.Value
) -> None:  # fmt: skip
    """Copy vectors ``[count, taps]`` to panel rows ``[taps, depth]``, which are ``width`` bytes apart."""
    builder = emit.builder
    across = builder.mul(width, depth)
    with emit.loop(taps, [source, target]) as (_, (tap, place), following):
        with emit.loop(count, [tap, place]) as (_, (vector, row), inner):
            emit.store(emit.load(vector), row)
            inner += [emit.at(vector, builder.mul(taps, emit.i64(4 * LANES))), emit.at(row, width)]
        following += [emit.at(tap, 4 * LANES), emit.at(place, across)]


@device
def _pack_element_wise(
    job: FilterJob, target: int, width: int, source: int, columns: int, channels: int, factors: int
) -> None:
    """Pack channels of at most `LANES` columns, padding the columns with zeros."""
    taps, depth = job.taps, job.channels
    for tap in range(taps):
        for channel in range(channels):
            row = target + 4 * (tap * depth + channel) * width
            for j in range(LANES):
                value = np.float32(0)
                if j < columns:
                    value = load_f32(source, (j * depth + channel) * taps + tap) * load_f32(factors, j)
                store_f32(row, j, value)


@Task
def _pack_filters(call: int, job: FilterJob, out: int, filters: int) -> None:
    """Pack contiguous filters ``[columns, channels, taps]`` of all groups; a unit is `LANES` channels of a panel."""
    taps, depth = job.taps, job.channels
    blocks = job.blocks
    units = blocks * job.panels
    rows = scratch_memory(4 * LANES * LANES * taps)
    for unit in each_unit(call, units):
        panel = unit // blocks
        channel = (unit - panel * blocks) * LANES
        count = min(depth - channel, LANES)
        entry = Panel.at(job.table, panel)
        width, column = entry.vectors * LANES, entry.column
        columns = width - LANES + entry.last_columns
        for first in range(0, width, LANES):
            source = filters + 4 * ((column + first) * depth + channel) * taps
            target = out + entry.start + 4 * (channel * width + first)
            factors = job.scale + 4 * (column + first)
            if count == LANES and first + LANES <= columns:
                for k in range(taps):
                    pack_square(
                        rows + 4 * LANES * LANES * k, 4 * LANES, source + 4 * LANES * k, 4 * depth * taps, factors
                    )  # fmt: skip
                _place_rows(rows, target, taps, LANES, 4 * width, depth)
            else:
                _pack_element_wise(job, target, width, source, min(columns - first, LANES), count, factors)


def packed_filters(filters: Array, scale: Array | None, bias: Array | None, across: int = 0) -> PackedPanels:
    """Pack contiguous filters ``[G, C_out, C_in, taps]``; see `pack_panels` for the other arguments."""
    groups, outputs, channels, taps = filters.shape
    panels = allocate_panels(groups, outputs, channels * taps, bias, across)
    job = _job(panels, channels, taps, _factors(scale, groups * outputs))
    count = threads_for(steps=filters.size // 4)
    parallel_for(_pack_filters.address, job, panels.numbers, filters, UNUSED, UNUSED, count)
    return panels


def _job(panels: PackedPanels, channels: int, taps: int, factors: Array) -> Array:
    return FilterJob.fill(
        panels=len(panels), table=panels.table, scale=factors, channels=channels, taps=taps,
        blocks=-(-channels // LANES),
    )  # fmt: skip


def _factors(scale: Array | None, columns: int) -> Array:
    return np.ones(columns, np.float32) if scale is None else np.ascontiguousarray(scale)


@dataclass(frozen=True)
class FilterPacking:
    """The packing of filters of one shape in every run.

    Args:
        panels: the panels' columns and biases; their numbers are NaN and only give the size.
        job: the job of `_pack_filters`.
        parallel: whether threads share the packing.
    """

    panels: PackedPanels
    job: Array
    parallel: bool

    @classmethod
    def of(cls, shape: Sequence[int], scale: Array | None, bias: Array | None) -> FilterPacking:
        """Return the packing of filters ``[G, C_out, C_in, kernel...]`` with a scale, and their biases."""
        groups, outputs, channels, *kernel = shape
        taps = math.prod(kernel)
        panels = allocate_panels(groups, outputs, channels * taps, bias, 8 * taps)
        # In place of numbers that may not be finite, as `PackedPanels.is_finite` then says; they take no memory.
        panels = replace(panels, numbers=np.broadcast_to(np.float32(np.nan), panels.numbers.shape))
        job = _job(panels, channels, taps, _factors(scale, groups * outputs))
        _pack_filters.prepare()
        return cls(panels, job, pays_to_share(steps=groups * outputs * channels * taps // 4))

    def pack(self, filters: Array) -> Array:
        """Pack filters."""
        packed = workspace(self.panels.numbers.size)
        count = threads() if self.parallel else 1
        parallel_for(_pack_filters.address, self.job, packed, filters, UNUSED, UNUSED, count)
        return packed


@dataclass(frozen=True)
class FusedOfRun(FusedKernel):
    """A product with weights computed in the run; it fuses layers that read at most one additional tensor.

    The packed weights take the place of the second additional tensor.
    """

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> FusedKernel | None:
        """Return a kernel that also applies ``op``, or ``None`` if it cannot be fused."""
        epilogue = self.epilogue.then(op, inputs, place, self.axis)
        if epilogue is None or sum(post_op.extra >= 0 for post_op in epilogue.post_ops) > MAX_EXTRAS:
            return None
        return super().fuse(op, inputs, place)


class PackJob(Descriptor):
    """The job of `_PACK`: the number of panels, addresses, sizes and strides in bytes."""

    panels: i64
    table: i64
    filters: i64
    scale: i64
    taps: i64
    depth: i64
    columns: i64
    group_stride: i64
    column_stride: i64
    tap_stride: i64
    row_stride: i64


def pack_panels(filters: Array, scale: Array | None, bias: Array | None, across: int = 0) -> PackedPanels:
    """Pack matrices, one per group.

    Args:
        filters: the matrices ``[G, N, taps, depth]``, of any strides.
        scale: a factor for each column of all groups; ``None`` for 1.
        bias: a summand for each column of all groups; ``None`` for 0.
        across: the bytes between the tap offsets of two groups.
    """
    stored = filters.swapaxes(2, 3)
    if stored.shape[3] > 1 and stored.flags.c_contiguous:
        return packed_filters(stored, scale, bias, across)
    return packed_by(_PACK, filters, filters.shape[3], scale, bias, across)


def packed_by(
    task: Task, filters: Array, words: int, scale: Array | None, bias: Array | None, across: int
) -> PackedPanels:
    """Pack matrices with a task; see `pack_panels`. Each tap has ``words`` words of 32 bits."""
    groups, columns, taps, depth = filters.shape
    panels = allocate_panels(groups, columns, taps * words, bias, across)
    factors = np.ones(groups * columns, np.float32) if scale is None else np.ascontiguousarray(scale)
    by_group, by_column, by_tap, by_row = filters.strides
    job = PackJob.fill(
        panels=len(panels), table=panels.table, filters=filters, scale=factors, taps=taps, depth=depth,
        columns=columns, group_stride=by_group, column_stride=by_column, tap_stride=by_tap, row_stride=by_row,
    )  # fmt: skip
    count = threads_for(computed=panels.numbers.size)
    parallel_for(task.address, job, panels.numbers, UNUSED, UNUSED, UNUSED, count)
    return panels


@instruction(*[types.int64] * 3)
def _pack_row(emit: Emit, target: Register, source: Register, factors: Register) -> None:
    """Pack `LANES` contiguous columns of one row."""
    emit.store(emit.multiply(emit.load(source), emit.load(factors)), target)


@device
def pack_block(
    target: int, width: int, count: int, rows: int, source: int, by_column: int, by_row: int, factors: int
) -> None:
    """Pack several rows of a panel."""
    for first in range(0, width, LANES):
        start, at, scale = source + first * by_column, target + 4 * first, factors + 4 * first
        whole = first + LANES <= count
        if whole and by_row == 4 and rows == LANES:
            pack_square(at, 4 * width, start, by_column, scale)
            continue
        for k in range(rows):
            row = at + 4 * k * width
            if whole and by_column == 4:
                _pack_row(row, start + k * by_row, scale)
                continue
            for j in range(LANES):
                if first + j < count:
                    store_f32(row, j, load_f32(start + j * by_column + k * by_row, 0) * load_f32(scale, j))
                else:
                    store_f32(row, j, np.float32(0))


def pack_task(name: str, store_block: Callable[..., None], per_word: int) -> Task:
    """Return the task that packs matrices.

    Args:
        name: the name of the task.
        store_block: packs rows of a panel, like `pack_block`.
        per_word: the numbers of a column that share a word.
    """

    def pack(call: int, job: PackJob, out: int) -> None:
        """Pack matrices; a unit is one panel."""
        counter = shared_counters(call)
        taps, depth = job.taps, job.depth
        columns, by_group = job.columns, job.group_stride
        by_column, by_tap = job.column_stride, job.tap_stride
        by_row, words = job.row_stride, (depth + per_word - 1) // per_word
        for unit in each_counted(counter, job.panels):
            entry = Panel.at(job.table, unit)
            width, column = entry.vectors * LANES, entry.column
            count = width - LANES + entry.last_columns
            group, place = column // columns, out + entry.start
            source = job.filters + group * by_group
            source += (column - group * columns) * by_column
            for tap in range(taps):
                for first in range(0, depth, LANES):
                    rows = min(LANES, depth - first)
                    target = place + 4 * (tap * words + first // per_word) * width
                    start = source + tap * by_tap + first * by_row
                    factors = job.scale + 4 * column
                    store_block(target, width, count, rows, start, by_column, by_row, factors)

    return Task(pack, name)


_PACK = pack_task("_pack_all", pack_block, 1)


_EXPONENT = np.uint16(0x7F80)


class Bf16Panels(PackedPanels):
    """A packed bf16 matrix; an odd number of rows is padded with zeros."""

    @cached_property
    def is_finite(self) -> bool:
        """Whether all numbers are finite, so that products with zeros may be skipped."""
        return not bool((self.numbers.view(np.uint16) & _EXPONENT == _EXPONENT).any())


@instruction(returns=types.int64)
def _zeroed_block(emit: Emit) -> Register:
    """Return the address of stack memory with zeros for `LANES` rows of the widest panel."""
    return emit.stack_words(LANES * LANES * WIDE // 2)


@instruction(*[types.int64] * 4)
def pair_rows(emit: Emit, target: Register, first: Register, second: Register, width: Register) -> None:
    """Round two rows, and store their numbers interleaved."""
    builder = emit.builder
    with emit.loop(builder.sdiv(width, emit.i64(LANES))) as (i, _, _following):
        offset = builder.mul(i, emit.i64(4 * LANES))
        low, high = (
            builder.zext(as_bf16(emit, emit.load(emit.at(row, offset))), INTS) for row in (first, second)
        )
        above = builder.shl(high, splat_bits(16))
        emit.store(builder.or_(low, above), emit.at(target, offset))


@device
def _pack_pairs(
    target: int, width: int, count: int, rows: int, source: int, by_column: int, by_row: int, factors: int
) -> None:
    """Pack several rows of a panel."""
    block = _zeroed_block()
    pack_block(block, width, count, rows, source, by_column, by_row, factors)
    for row in range(0, rows, 2):
        at = block + 4 * row * width
        pair_rows(target + 2 * row * width, at, at + 4 * width, width)


_PACK_PAIRS = pack_task("_pack_pairs", _pack_pairs, 2)


def pack_bf16_panels(
    filters: Array, scale: Array | None, bias: Array | None, across: int = 0
) -> PackedPanels:
    """Pack matrices, one per group; see `pack_panels`. Columns are scaled, then rounded."""
    found = packed_by(_PACK_PAIRS, filters, -(-filters.shape[3] // 2), scale, bias, across)
    return Bf16Panels(found.numbers, found.bias, found.table)


@device
def next_panel(columns: int) -> tuple[int, int]:
    """Return the number of vectors of the next panel, and of its columns, given the number of remaining columns."""
    count = (columns + LANES - 1) // LANES
    vectors = WIDE if count >= WIDE else TALL if count >= TALL else SINGLE
    return vectors, min(columns, vectors * LANES)


@routine(*[types.int64] * 5)
def pack_transposed(x: int, stride: int, rows: int, width: int, out: int) -> None:
    """Pack rows of ``width`` numbers as the columns of panels."""
    done = 0
    while done < rows:
        vectors, columns = next_panel(rows - done)
        apart = 4 * LANES * vectors
        for first in range(0, columns, LANES):
            some = min(LANES, columns - first)
            source, target = x + (done + first) * stride, out + 4 * first
            for k in range(0, width, LANES):
                count = min(LANES, width - k)
                if some == LANES and count == LANES:
                    transpose_square(source + 4 * k, stride, target + k * apart, apart)
                else:
                    transpose_part(source + 4 * k, stride, some, count, target + k * apart, apart)
        out += apart * width
        done += columns


@device
def pack_rows(x: int, stride: int, rows: int, width: int, out: int) -> None:
    """Pack ``rows`` rows of ``width`` columns in panels.

    Unused columns are filled with zeros: arbitrary memory contents, such as addresses, may be subnormal
    numbers, whose products take more than ten times as long.
    """
    done = 0
    while done < width:
        vectors, columns = next_panel(width - done)
        for row in range(rows):
            copy_padded(x + row * stride + 4 * done, columns, out + 4 * LANES * vectors * row)
        out += 4 * LANES * vectors * rows
        done += columns


def panels_product(multiply_panel: Routine | Device[..., None]) -> Device[..., None]:
    """Return a function that multiplies rows by panels of ``length`` words, using ``depth`` of them, up to a column.

    Args:
        multiply_panel: multiplies rows by one panel, like `gemm_panel`.
    """

    def multiply(  # noqa: PLR0913 (values in registers)
        places: int, rows: int, panels: int, length: int, depth: int, columns: int, until: int, offset: int,
        none: int, out: int, stride: int,
    ) -> None:  # fmt: skip
        done = 0
        while done < until:
            vectors, some = next_panel(columns - done)
            last = some - (vectors - 1) * LANES
            multiply_panel(
                vectors, rows, places, 0, 0, offset, 1, depth, panels, out + 4 * done, stride, none, 0, 0, last, -np.inf,
                np.inf,
            )  # fmt: skip
            panels += 4 * LANES * vectors * length
            done += some

    return device(multiply)


multiply_panels = panels_product(gemm_panel)
"""Multiply rows of f32 by panels."""


@device
def zero_tail(row: int, first: int, count: int, none: int) -> None:
    """Zero the elements of a row from ``first`` to ``count``."""
    while first < count:
        some = min(count - first, WIDE * LANES)
        copy_row(none, some, row + 4 * first)
        first += some
