"""Packed weights: matrices in panels as wide as a GEMM tile, the columns of each row contiguous (GotoBLAS, BLIS)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from ....cached import cached_property
from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import fetch_add, load_f32, load_i64, store_f32
from ..codegen.vectors import INTS, LANES, Emit, Value
from ..packed_memory import aligned_empty
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args
from ._gemm_tile import ROW_MULTIPLE, SINGLE, TALL, WIDE, WIDE_ROWS

__all__ = [
    "CachedBytes",
    "PackedPanels",
    "Panel",
    "allocate_panels",
    "chunk_rows",
    "pack_block",
    "pack_panels",
    "pack_square",
    "pack_task",
    "packed_by",
    "split",
    "unit_place",
]

# Elements from which on several threads are faster.
MIN_PARALLEL_WORK = 1 << 17
# Units per thread, so that others can do the work of a thread that is interrupted.
UNITS_PER_THREAD = 4
# A unit takes as long as that many rows more than it has: to find its place, and to load a panel.
UNIT_ROWS = 3


class Panel(Descriptor):
    """A panel: its column in the result, byte offsets of weights, bias and tap offsets; columns of the last vector."""

    start: i64
    vectors: i64
    last_columns: i64
    column: i64
    bias: i64
    tap_offset: i64


class PackJob(Descriptor):
    """The job of `_PACK`: how many panels, addresses, sizes and strides in bytes."""

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


@dataclass(frozen=True)
class PackedPanels:
    """A packed matrix.

    Args:
        numbers: the panels, one after the other.
        bias: a number for each column, with gaps as in the panels.
        table: a `Panel` for each panel.
    """

    numbers: Array
    bias: Array
    table: Array

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def is_finite(self) -> bool:
        """Whether the sum of all numbers is finite: then products with zeros may be left out."""
        return bool(np.isfinite(self.numbers.sum()))


def split(columns: int) -> list[tuple[int, int, int]]:
    """Split columns into panels: first column, vectors, and columns of the last vector of each."""
    found, first = [], 0
    while first < columns:
        vectors = -(-(columns - first) // LANES)
        vectors = next(n for n in (WIDE, TALL, SINGLE) if n <= vectors)
        last = min(columns - first - (vectors - 1) * LANES, LANES)
        found.append((first, vectors, last))
        first += vectors * LANES
    return found


class CachedBytes(NamedTuple):
    """What stays in the L2 cache.

    Args:
        rows: bytes of rows that stay beside a panel while all panels are used.
        weights: weights of more bytes do not stay: each panel is used for all rows, if these are fewer.
    """

    rows: int
    weights: int


def chunk_rows(
    rows: int, row_bytes: int, weight_bytes: int, panels: int, threads: int, cached: CachedBytes
) -> tuple[int, bool]:
    """Return the rows of a unit, and whether a panel is used for all of them before the next one.

    Units are a multiple of the rows of all tiles; for threads that would each have few units, of wide tiles.
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
            """Return what a thread has to do at most, in rows by a panel."""
            units = -(-rows // some) * panels
            return -(-units // threads) * (min(some, rows) + UNIT_ROWS)

        chunk = min(range(chunk, 0, -WIDE_ROWS), key=longest)
    return chunk, heavy


@device
def unit_place(unit: int, by_panel: int, chunks: int, panels: int) -> tuple[int, int]:
    """Return the panel and the chunk of rows of a unit."""
    if by_panel != 0:
        panel, chunk = unit // chunks, unit % chunks
    else:
        panel, chunk = unit % panels, unit // panels
    return panel, chunk


def pack_panels(filters: Array, scale: Array | None, bias: Array | None, across: int = 0) -> PackedPanels:
    """Pack matrices, one for each group.

    Args:
        filters: ``[G, N, taps, depth]``, of any strides.
        scale: multiplies each column of all groups; ``None`` for 1.
        bias: is added to each column of all groups; ``None`` for 0.
        across: bytes between the tap offsets of two groups.
    """
    return packed_by(_PACK, filters, filters.shape[3], scale, bias, across)


def packed_by(
    task: Task, filters: Array, words: int, scale: Array | None, bias: Array | None, across: int
) -> PackedPanels:
    """Return panels of matrices that a task packs; as `pack_panels`, with ``words`` of 32 bits for each tap."""
    groups, columns, taps, depth = filters.shape
    panels = allocate_panels(groups, columns, taps * words, bias, across)
    factors = np.ones(groups * columns, np.float32) if scale is None else np.ascontiguousarray(scale)
    by_group, by_column, by_tap, by_row = filters.strides
    job = PackJob.fill(
        panels=len(panels), table=panels.table.ctypes.data, filters=filters.ctypes.data, scale=factors.ctypes.data,
        taps=taps, depth=depth, columns=columns, group_stride=by_group, column_stride=by_column,
        tap_stride=by_tap, row_stride=by_row,
    )  # fmt: skip
    count = threads() if panels.numbers.size >= MIN_PARALLEL_WORK else 1
    parallel_for(task.address, job, panels.numbers, UNUSED, UNUSED, UNUSED, count)
    return panels


def allocate_panels(
    groups: int, columns: int, depth: int, bias: Array | None = None, across: int = 0
) -> PackedPanels:
    """Allocate panels for matrices of ``depth`` rows, with biases but uninitialised weights."""
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


def _transposed(emit: Emit, vectors: list[Value]) -> list[Value]:
    """Transpose a square of vectors by interleaving halves repeatedly."""
    count = len(vectors)
    lanes = [lane for pair in zip(range(count), range(count, 2 * count), strict=True) for lane in pair]
    low, high = (ir.Constant(INTS, part) for part in (lanes[:count], lanes[count:]))
    for _ in range(count.bit_length() - 1):
        pairs = list(zip(vectors[: count // 2], vectors[count // 2 :], strict=True))
        vectors = [emit.builder.shuffle_vector(x, y, mask) for x, y in pairs for mask in (low, high)]
    return vectors


@instruction(*[types.int64] * 5)
def pack_square(
    emit: Emit, target: Value, apart: Value, source: Value, by_column: Value, factors: Value
) -> None:
    """Pack `LANES` columns of `LANES` rows that are contiguous."""
    scale = emit.load(factors)
    places = [emit.at(source, emit.builder.mul(by_column, emit.i64(i))) for i in range(LANES)]
    for i, row in enumerate(_transposed(emit, [emit.load(place) for place in places])):
        emit.store(emit.multiply(row, scale), emit.at(target, emit.builder.mul(apart, emit.i64(i))))


@instruction(*[types.int64] * 3)
def _pack_row(emit: Emit, target: Value, source: Value, factors: Value) -> None:
    """Pack `LANES` contiguous columns of one row."""
    emit.store(emit.multiply(emit.load(source), emit.load(factors)), target)


@device
def pack_block(
    target: int, width: int, count: int, rows: int, source: int, by_column: int, by_row: int, factors: int
) -> None:
    """Pack some rows of a panel."""
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
        name: of its function.
        store_block: packs some rows of a panel, as `pack_block`.
        per_word: how many numbers of a column share a word.
    """

    def pack(call: int) -> None:
        """Pack matrices; a unit is one panel."""
        job, out, _, _, _, counter = load_args(call)
        taps, depth = load_i64(job, PackJob.taps), load_i64(job, PackJob.depth)
        columns, by_group = load_i64(job, PackJob.columns), load_i64(job, PackJob.group_stride)
        by_column, by_tap = load_i64(job, PackJob.column_stride), load_i64(job, PackJob.tap_stride)
        by_row, words = load_i64(job, PackJob.row_stride), (depth + per_word - 1) // per_word
        while True:
            unit = fetch_add(counter)
            if unit >= load_i64(job, PackJob.panels):
                break
            entry = load_i64(job, PackJob.table) + 8 * Panel.words * unit
            width, column = load_i64(entry, Panel.vectors) * LANES, load_i64(entry, Panel.column)
            count = width - LANES + load_i64(entry, Panel.last_columns)
            group, place = column // columns, out + load_i64(entry, Panel.start)
            source = load_i64(job, PackJob.filters) + group * by_group
            source += (column - group * columns) * by_column
            for tap in range(taps):
                for first in range(0, depth, LANES):
                    rows = min(LANES, depth - first)
                    target = place + 4 * (tap * words + first // per_word) * width
                    start = source + tap * by_tap + first * by_row
                    factors = load_i64(job, PackJob.scale) + 4 * column
                    store_block(target, width, count, rows, start, by_column, by_row, factors)

    pack.__qualname__ = name
    return Task(pack)


_PACK = pack_task("_pack_all", pack_block, 1)
