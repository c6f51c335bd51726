"""Packing of the right operands of products: panels as wide as a GEMM tile, stored row by row (GotoBLAS, BLIS).

Panels hold f32, or bf16 with two rows in each 32-bit word. Tasks pack matrices of any strides; filters, constant or computed
in the run, are packed by transposing squares in registers. Kernels of attention pack keys and values themselves, by the
devices `pack_rows` and `pack_transposed`.
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

# The fewest units per thread, so that other threads can take over the work of one that is interrupted.
UNITS_PER_THREAD = 4
# The overhead of a unit, in rows: taking the unit and loading its panel.
UNIT_ROWS = 3


class Panel(Descriptor):
    """A panel of ``vectors`` vectors of columns, of which the last has ``last_columns`` columns.

    ``column`` is its first column in the result. ``start``, ``bias`` and ``tap_offset`` are the byte offsets of its
    weights, its biases and the tap offsets of its group.
    """

    start: i64
    vectors: i64
    last_columns: i64
    column: i64
    bias: i64
    tap_offset: i64


@dataclass(frozen=True)
class PackedPanels:
    """The packed right operand of a product.

    Args:
        numbers: the elements of all panels, one panel after the other.
        bias: the bias of each column, padded like the panels.
        table: one `Panel` record per panel.
    """

    numbers: Array
    bias: Array
    table: Array

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def is_finite(self) -> bool:
        """Whether the sum of all elements is finite; then products with zeros may be skipped."""
        return bool(np.isfinite(self.numbers.sum()))


def split(columns: int) -> list[tuple[int, int, int]]:
    """Split columns into panels; return each panel's first column, number of vectors, and columns of its last vector."""
    parts, first = [], 0
    while first < columns:
        vectors = -(-(columns - first) // LANES)
        vectors = next(n for n in (WIDE, TALL, SINGLE) if n <= vectors)
        last = min(columns - first - (vectors - 1) * LANES, LANES)
        parts.append((first, vectors, last))
        first += vectors * LANES
    return parts


class CachedBytes(NamedTuple):
    """The bytes of operands assumed to stay in the L2 cache during a product.

    Args:
        rows: the bytes of rows that stay in the cache while they are multiplied by all panels.
        weights: the most bytes of weights that stay in the cache. Larger weights are read once: each panel multiplies all
            rows before the next, if the rows are smaller than the weights.
    """

    rows: int
    weights: int


def chunk_rows(
    rows: int, row_bytes: int, weight_bytes: int, panels: int, threads: int, cached: CachedBytes
) -> tuple[int, bool]:
    """Choose the units of work of a product: return the rows of a unit, and whether each panel multiplies all rows in turn.

    The rows of a unit are a multiple of the heights of all tiles, or, if there would be few units per thread, of the
    height of the wide tile.

    Args:
        rows: the number of rows of the left operand.
        row_bytes: the bytes that each row adds to the data read.
        weight_bytes: the bytes of the packed right operand.
        panels: the number of its panels.
        threads: the number of threads.
        cached: the bytes that stay in the cache.
    """
    row_bytes = max(row_bytes, 1)
    heavy = weight_bytes > cached.weights and rows * row_bytes < weight_bytes
    chunk = max((2 * cached.rows if heavy else cached.rows) // row_bytes, 1)
    if not heavy:
        chunk = min(chunk, 4 * ROW_MULTIPLE)
    fewest = -(-UNITS_PER_THREAD * threads // max(panels, 1)) if threads > 1 else 1
    chunk = min(chunk, -(-rows // fewest))
    chunk = max(-(-chunk // ROW_MULTIPLE), 1) * ROW_MULTIPLE
    if threads > 1 and rows * panels < 2 * chunk * threads:

        def critical_path(size: int) -> int:
            """Return the time of the busiest thread with units of ``size`` rows, in rows by a panel."""
            units = -(-rows // size) * panels
            return -(-units // threads) * (min(size, rows) + UNIT_ROWS)

        chunk = min(range(chunk, 0, -WIDE_ROWS), key=critical_path)
    return chunk, heavy


@device
def unit_place(unit: int, by_panel: int, chunks: int, panels: int) -> tuple[int, int]:
    """Return the indices of the panel and of the row chunk of a unit of work, given the numbers of chunks and of panels.

    If ``by_panel``, consecutive units share a panel, else a row chunk.
    """
    if by_panel != 0:
        panel, chunk = unit // chunks, unit % chunks
    else:
        panel, chunk = unit % panels, unit // panels
    return panel, chunk


def allocate_panels(
    groups: int, columns: int, depth: int, bias: Array | None = None, across: int = 0
) -> PackedPanels:
    """Allocate panels for one matrix ``[depth, columns]`` per group, with uninitialised weights.

    Args:
        groups: the number of groups.
        columns: the columns of each group.
        depth: the rows of each group, in 32-bit words.
        bias: the bias of each column of all groups; ``None`` for 0.
        across: the bytes between the tap offsets of two groups.
    """
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


def _transpose(emit: Emit, vectors: list[Register]) -> list[Register]:
    """Transpose a square of vectors by interleaving its halves log2(n) times."""
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
    """Pack `LANES` columns of `LANES` contiguous elements: transpose them and multiply each column by its factor.

    Columns are ``by_column`` bytes apart in ``source``; packed rows are ``apart`` bytes apart.
    """
    scale = emit.load(factors)
    places = [emit.at(source, emit.builder.mul(by_column, emit.i64(i))) for i in range(LANES)]
    for i, row in enumerate(_transpose(emit, [emit.load(place) for place in places])):
        emit.store(emit.multiply(row, scale), emit.at(target, emit.builder.mul(apart, emit.i64(i))))


# The most extra tensors that the post-ops of a product with weights packed in the run can read.
MAX_EXTRAS = 1


class FilterJob(Descriptor):
    """Parameters of `_pack_filters`.

    ``scale`` is the address of a factor per column. A panel is divided into ``blocks`` units of `LANES` channels.
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
    """Store ``count * taps`` vectors in panel rows: vector ``[i, tap]`` in row ``tap * depth + i``; rows are ``width`` bytes."""
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
    """Pack ``channels`` channels of ``columns`` filters element by element, each filter multiplied by its factor.

    Filters are columns of the panel; the remaining columns up to `LANES` are filled with zeros.
    """
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
    """Pack contiguous filters ``[columns, channels, taps]`` of all groups; a unit of work is `LANES` channels of a panel."""
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


def _pack_contiguous(
    filters: Array, scale: Array | None, bias: Array | None, across: int = 0
) -> PackedPanels:
    """Pack contiguous filters ``[G, C_out, C_in, taps]``; the other arguments are those of `pack_panels`."""
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
    """A prepared job that packs filters of a fixed shape, which are computed anew in every run.

    Args:
        panels: the panels with their biases; ``numbers`` is a placeholder of NaN with the size of the packed weights.
        job: the job of `_pack_filters`.
        parallel: whether to pack with several threads.
    """

    panels: PackedPanels
    job: Array
    parallel: bool

    @classmethod
    def of(cls, shape: Sequence[int], scale: Array | None, bias: Array | None) -> FilterPacking:
        """Prepare the packing of filters of shape ``[G, C_out, C_in, kernel...]``.

        Args:
            shape: the shape of the filters.
            scale: a factor for each filter; ``None`` for 1.
            bias: the bias of each filter; ``None`` for 0.
        """
        groups, outputs, channels, *kernel = shape
        taps = math.prod(kernel)
        panels = allocate_panels(groups, outputs, channels * taps, bias, 8 * taps)
        # NaN, so that `PackedPanels.is_finite` is false: the filters of a run may not be finite. Takes no memory.
        panels = replace(panels, numbers=np.broadcast_to(np.float32(np.nan), panels.numbers.shape))
        job = _job(panels, channels, taps, _factors(scale, groups * outputs))
        _pack_filters.prepare()
        return cls(panels, job, pays_to_share(steps=groups * outputs * channels * taps // 4))

    def pack(self, filters: Array) -> Array:
        """Pack contiguous filters, and return the elements of the panels."""
        packed = workspace(self.panels.numbers.size)
        count = threads() if self.parallel else 1
        parallel_for(_pack_filters.address, self.job, packed, filters, UNUSED, UNUSED, count)
        return packed


@dataclass(frozen=True)
class FusedOfRun(FusedKernel):
    """A product whose weights are packed in every run and take the place of the second extra tensor of post-ops."""

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> FusedKernel | None:
        """Return this kernel with ``op`` appended to its epilogue, or ``None`` if ``op`` cannot be fused."""
        epilogue = self.epilogue.then(op, inputs, place, self.axis)
        if epilogue is None or sum(post_op.extra >= 0 for post_op in epilogue.post_ops) > MAX_EXTRAS:
            return None
        return super().fuse(op, inputs, place)


class PackJob(Descriptor):
    """Parameters of a `pack_task`.

    ``table``, ``filters`` and ``scale`` are the addresses of the `Panel` records, of the matrices, and of a factor per column.
    A column has ``taps`` taps of ``depth`` elements; each group has ``columns`` columns. Strides are those of the matrices in bytes.
    """

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
    """Pack one f32 matrix per group into panels.

    Args:
        filters: the matrices ``[G, N, taps, depth]``, of any strides.
        scale: a factor for each column of all groups; ``None`` for 1.
        bias: the bias of each column of all groups; ``None`` for 0.
        across: the bytes between the tap offsets of two groups.
    """
    stored = filters.swapaxes(2, 3)
    if stored.shape[3] > 1 and stored.flags.c_contiguous:
        return _pack_contiguous(stored, scale, bias, across)
    return _run_pack_task(_PACK, filters, filters.shape[3], scale, bias, across)


def _run_pack_task(
    task: Task, filters: Array, words: int, scale: Array | None, bias: Array | None, across: int
) -> PackedPanels:
    """Pack matrices with a `pack_task`; a tap has ``words`` 32-bit words, and the other arguments are as in `pack_panels`."""
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
    """Store `LANES` contiguous elements of a row, each multiplied by the factor of its column."""
    emit.store(emit.multiply(emit.load(source), emit.load(factors)), target)


@device
def pack_block(
    target: int, width: int, count: int, rows: int, source: int, by_column: int, by_row: int, factors: int
) -> None:
    """Pack ``rows`` rows of an f32 panel with ``count`` columns, scaled and padded with zeros to ``width`` columns.

    ``by_column`` and ``by_row`` are the strides of the source in bytes.
    """
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
    """Return a task that packs matrices of any strides into panels.

    Args:
        name: the name of the task.
        store_block: packs up to `LANES` rows of a panel, with the parameters of `pack_block`.
        per_word: the elements of a column that share a 32-bit word.
    """

    def pack(call: int, job: PackJob, out: int) -> None:
        """Pack matrices; a unit of work is one panel."""
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
    """A right operand packed as bf16, two rows to a 32-bit word; an odd number of rows is padded with zeros."""

    @cached_property
    def is_finite(self) -> bool:
        """Whether all elements are finite; then products with zeros may be skipped."""
        return not bool((self.numbers.view(np.uint16) & _EXPONENT == _EXPONENT).any())


@instruction(returns=types.int64)
def _allocate_block(emit: Emit) -> Register:
    """Allocate zeroed stack memory for `LANES` f32 rows of the widest panel; return its address."""
    return emit.stack_words(LANES * LANES * WIDE // 2)


@instruction(*[types.int64] * 4)
def pair_rows(emit: Emit, target: Register, first: Register, second: Register, width: Register) -> None:
    """Round two f32 rows of ``width`` elements to bf16, and store them interleaved: the first row in the low halves."""
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
    """Pack ``rows`` rows of a bf16 panel; the parameters are those of `pack_block`."""
    block = _allocate_block()
    pack_block(block, width, count, rows, source, by_column, by_row, factors)
    for row in range(0, rows, 2):
        at = block + 4 * row * width
        pair_rows(target + 2 * row * width, at, at + 4 * width, width)


_PACK_PAIRS = pack_task("_pack_pairs", _pack_pairs, 2)


def pack_bf16_panels(
    filters: Array, scale: Array | None, bias: Array | None, across: int = 0
) -> PackedPanels:
    """Pack one matrix per group into panels of bf16; columns are scaled, then rounded. Arguments as in `pack_panels`."""
    panels = _run_pack_task(_PACK_PAIRS, filters, -(-filters.shape[3] // 2), scale, bias, across)
    return Bf16Panels(panels.numbers, panels.bias, panels.table)


@device
def next_panel(columns: int) -> tuple[int, int]:
    """Return the vectors and the columns of the next panel when ``columns`` columns remain."""
    count = (columns + LANES - 1) // LANES
    vectors = WIDE if count >= WIDE else TALL if count >= TALL else SINGLE
    return vectors, min(columns, vectors * LANES)


@routine(*[types.int64] * 5)
def pack_transposed(x: int, stride: int, rows: int, width: int, out: int) -> None:
    """Pack the transpose of a matrix: its rows, of ``width`` elements and ``stride`` bytes apart, become columns of panels."""
    done = 0
    while done < rows:
        vectors, columns = next_panel(rows - done)
        apart = 4 * LANES * vectors
        for first in range(0, columns, LANES):
            tall = min(LANES, columns - first)
            source, target = x + (done + first) * stride, out + 4 * first
            for k in range(0, width, LANES):
                count = min(LANES, width - k)
                if tall == LANES and count == LANES:
                    transpose_square(source + 4 * k, stride, target + k * apart, apart)
                else:
                    transpose_part(source + 4 * k, stride, tall, count, target + k * apart, apart)
        out += apart * width
        done += columns


@device
def pack_rows(x: int, stride: int, rows: int, width: int, out: int) -> None:
    """Pack a matrix of ``rows`` rows and ``width`` columns, with rows ``stride`` bytes apart, into panels.

    Unused columns are zeroed: uninitialised memory may hold subnormal numbers, whose products are ten times slower.
    """
    done = 0
    while done < width:
        vectors, columns = next_panel(width - done)
        for row in range(rows):
            copy_padded(x + row * stride + 4 * done, columns, out + 4 * LANES * vectors * row)
        out += 4 * LANES * vectors * rows
        done += columns


def panels_product(multiply_panel: Routine | Device[..., None]) -> Device[..., None]:
    """Return a function that multiplies rows by the panels of `pack_rows` or `pack_transposed`.

    The function computes at least the columns below its argument ``until``. The panels have ``length`` words per column, of
    which the first ``depth`` are multiplied.

    Args:
        multiply_panel: multiplies rows by one panel, with the parameters of `gemm_panel`.
    """

    def multiply(  # noqa: PLR0913 (values in registers)
        places: int, rows: int, panels: int, length: int, depth: int, columns: int, until: int, offset: int,
        none: int, out: int, stride: int,
    ) -> None:  # fmt: skip
        done = 0
        while done < until:
            vectors, count = next_panel(columns - done)
            last = count - (vectors - 1) * LANES
            multiply_panel(
                vectors, rows, places, 0, 0, offset, 1, depth, panels, out + 4 * done, stride, none, 0, 0, last, -np.inf,
                np.inf,
            )  # fmt: skip
            panels += 4 * LANES * vectors * length
            done += count

    return device(multiply)


multiply_panels = panels_product(gemm_panel)
"""Multiply f32 rows by f32 panels."""


@device
def zero_tail(row: int, first: int, count: int, none: int) -> None:
    """Zero elements ``first`` to ``count`` of a row; ``none`` is the address of a panel's width of zeros."""
    while first < count:
        size = min(count - first, WIDE * LANES)
        copy_row(none, size, row + 4 * first)
        first += size
