"""Winograd convolution F(4x4, 3x3) (Lavin and Gray 2016, arXiv:1509.09308): 36 multiplications per tile instead of 144.

The input is cut into tiles of 6 by 6 elements that overlap by 2, and each tile is transformed. For each of the 36
transformed elements, the tiles are the rows of a matrix that is multiplied by filters transformed at compile time. The
inverse transform gives 4 by 4 results per tile. With many tiles, each thread takes blocks of tiles through all three phases
in its own cache; otherwise all threads share each phase.

A value that is not finite, or overflows, would spread over its tile, so such tiles are computed directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, routine, types
from ..codegen.memory import barrier, fetch_add, load_f32, load_i64, scratch_memory, store_f32, store_i64
from ..codegen.vectors import I64, LANES, Emit, Value
from ..threading.parallel import parallel_for, threads, threads_for, workspace
from ..threading.task import UNUSED, Task, each_chunk, each_counted, failure_word, shared_counters
from ._epilogue import Epilogue, EpilogueField, PackedEpilogue, apply_post_ops
from ._gemm_tile import gemm_panel
from ._panels import PackedPanels, Panel, allocate_panels, pack_square

__all__ = ["is_profitable", "TILE_ELEMENTS", "transform_filters", "winograd", "Winograd"]

TILE_ELEMENTS = 36
"""The number of elements of a tile, also after the transform."""


def _input_transform(emit: Emit, d: Sequence[Value]) -> list[Value]:
    four, five, two = emit.constant(-4), emit.constant(-5), emit.constant(2)
    even, odd = emit.fma(d[2], four, d[4]), emit.fma(d[1], four, d[3])
    wide, narrow = emit.subtract(d[4], d[2]), emit.multiply(emit.subtract(d[3], d[1]), two)
    return [
        emit.fma(d[0], emit.constant(4), emit.fma(d[2], five, d[4])),
        emit.add(even, odd),
        emit.subtract(even, odd),
        emit.add(wide, narrow),
        emit.subtract(wide, narrow),
        emit.fma(d[1], emit.constant(4), emit.fma(d[3], five, d[5])),
    ]


def _output_transform(emit: Emit, m: Sequence[Value]) -> list[Value]:
    near, far = emit.add(m[1], m[2]), emit.add(m[3], m[4])
    across, along = emit.subtract(m[1], m[2]), emit.subtract(m[3], m[4])
    return [
        emit.add(m[0], emit.add(near, far)),
        emit.fma(along, emit.constant(2), across),
        emit.fma(far, emit.constant(4), near),
        emit.add(emit.fma(along, emit.constant(8), across), m[5]),
    ]


@instruction(*[types.int64] * 4)
def transform_input(emit: Emit, places: Value, count: Value, out: Value, apart: Value) -> None:
    """Transform ``count`` channel vectors of an input tile.

    ``places`` is a table of the addresses of its 36 elements; transformed elements are ``apart`` bytes apart.
    """
    builder = emit.builder
    addresses = [emit.load(emit.at(places, 8 * i), I64) for i in range(TILE_ELEMENTS)]
    with emit.loop(count) as (i, _, _following):
        offset = builder.mul(i, emit.i64(4 * LANES))
        data = [emit.load(emit.at(address, offset)) for address in addresses]
        columns = [_input_transform(emit, data[j::6]) for j in range(6)]
        for a in range(6):
            for b, value in enumerate(_input_transform(emit, [column[a] for column in columns])):
                place = builder.mul(apart, emit.i64(6 * a + b))
                emit.store(value, emit.at(emit.at(out, place), offset))


@instruction(*[types.int64] * 7, types.float32, types.float32)
def transform_output(  # noqa: PLR0913 (values in registers)
    emit: Emit, x: Value, apart: Value, places: Value, others: Value, bias: Value, count: Value, check: Value,
    low: Value, high: Value,
) -> None:  # fmt: skip
    """Apply the inverse transform to ``count`` channel vectors of a tile; add bias and residual, clamp, and store.

    ``places`` is a table of the addresses of the 16 results, ``others`` one of the residuals, or 0. Stores 0 at ``check``,
    or NaN if a result is not finite.
    """
    builder = emit.builder
    bounds = emit.splat(low), emit.splat(high)
    with emit.loop(count, [emit.constant(0)]) as (i, (odd,), following):
        offset = builder.mul(i, emit.i64(4 * LANES))
        data = [
            emit.load(emit.at(emit.at(x, builder.mul(apart, emit.i64(n))), offset))
            for n in range(TILE_ELEMENTS)
        ]
        columns = [_output_transform(emit, data[j::6]) for j in range(6)]
        shift = emit.load(emit.at(bias, offset))
        results = [v for a in range(4) for v in _output_transform(emit, [column[a] for column in columns])]
        for value in results:
            odd = emit.fma(value, emit.constant(0), odd)
        results = [emit.add(value, shift) for value in results]
        following.append(odd)

        def place(table: Value, n: int) -> Value:
            return emit.at(emit.load(emit.at(table, 8 * n), I64), offset)

        def add_residual() -> list[Value]:
            return [emit.add(value, emit.load(place(others, n))) for n, value in enumerate(results)]

        summed = builder.icmp_signed("!=", others, emit.i64(0))
        for n, value in enumerate(emit.if_else(summed, add_residual, lambda: results)):
            clamped = emit.minimum(emit.maximum(value, bounds[0]), bounds[1])
            emit.store(clamped, place(places, n))
    emit.store(emit.reduce_add(following[0]), check)


# Elements of a filter.
_TAPS = 9


def transform_filters(w: Array, scale: Array) -> PackedPanels:
    """Transform filters to 36 packed matrices ``[C_in, C_out]``, one per element of a transformed tile.

    Args:
        w: the filters ``[C_out, C_in, 3, 3]``, contiguous; both channel counts are multiples of `LANES`.
        scale: a factor for each filter, ``[C_out]``.
    """
    outputs, channels = w.shape[:2]
    panels = allocate_panels(TILE_ELEMENTS, outputs, channels)
    job = TransformJob.fill(
        panels=len(panels) // TILE_ELEMENTS, table=panels.table, filters=w, scale=scale, channels=channels,
    )  # fmt: skip
    parallel_for(_transform_all.address, job, panels.numbers, UNUSED, UNUSED, UNUSED, threads())
    return panels


class TransformJob(Descriptor):
    """Parameters of `_transform_all`: ``panels`` counts the panels of one matrix, ``channels`` the input channels."""

    panels: i64
    table: i64
    filters: i64
    scale: i64
    channels: i64


def _transform_three(emit: Emit, a: Value, b: Value, c: Value) -> list[Value]:
    """Apply the one-dimensional filter transform to three vectors, which gives six."""
    near, half = emit.multiply(emit.add(a, c), emit.constant(-1 / 6)), emit.multiply(b, emit.constant(1 / 6))
    far = emit.fma(a, emit.constant(1 / 24), emit.multiply(c, emit.constant(1 / 6)))
    twelfth = emit.multiply(b, emit.constant(1 / 12))
    return [
        emit.multiply(a, emit.constant(1 / 4)),
        emit.subtract(near, half),
        emit.add(near, half),
        emit.add(far, twelfth),
        emit.subtract(far, twelfth),
        c,
    ]


def _transpose(rows: Sequence[Sequence[Value]]) -> list[list[Value]]:
    return [list(column) for column in zip(*rows, strict=True)]


@instruction(*[types.int64] * 3)
def _transform_filter(emit: Emit, taps: Value, out: Value, apart: Value) -> None:
    """Transform the nine taps of a vector of filters to 36 vectors, which are stored ``apart`` bytes apart."""
    w = [emit.load(emit.at(taps, 4 * LANES * i)) for i in range(_TAPS)]
    rows = _transpose([_transform_three(emit, *w[b::3]) for b in range(3)])
    for a, row in enumerate(rows):
        for b, value in enumerate(_transform_three(emit, *row)):
            emit.store(value, emit.at(out, emit.builder.mul(apart, emit.i64(6 * a + b))))


@Task
def _transform_all(call: int, job: TransformJob, out: int) -> None:
    """Transform filters into panels; a unit of work is `LANES` input channels of one panel in all 36 matrices."""
    counter = shared_counters(call)
    panels, table = job.panels, Panel.at(job.table)
    channels = job.channels
    blocks = channels // LANES
    apart = load_i64(table, Panel.words * panels + Panel.start) - table.start
    size = 4 * LANES * LANES
    rows = scratch_memory(_TAPS * size)
    for unit in each_counted(counter, panels * blocks):
        entry, block = Panel.at(table, (unit // blocks)), unit % blocks
        width, column = entry.vectors * LANES, entry.column
        place = out + entry.start + 4 * block * LANES * width
        for first in range(0, width, LANES):
            source = job.filters
            source += 4 * _TAPS * ((column + first) * channels + block * LANES)
            factors = job.scale + 4 * (column + first)
            for k in range(_TAPS):
                pack_square(rows + k * size, 4 * LANES, source + 4 * LANES * k, 4 * _TAPS * channels, factors)
            for k in range(LANES):
                _transform_filter(rows + 4 * LANES * _TAPS * k, place + 4 * (k * width + first), apart)


class WinogradJob(Descriptor):
    """Parameters of `winograd`; if ``shared``, all threads work on the same phase, else each thread on blocks of its own."""

    images: i64
    height: i64
    width: i64
    channels: i64
    out_height: i64
    out_width: i64
    out_channels: i64
    pad_top: i64
    pad_left: i64
    block_tiles: i64
    blocks: i64
    panels: i64
    table: i64
    weights: i64
    panel_bias: i64
    bias: i64
    zeros: i64
    epilogue: EpilogueField
    filters: i64
    scale: i64
    shared: i64


@routine(*[types.int64] * 7)
def _transform_input(
    job: WinogradJob, x: int, out: int, apart: int, begin: int, end: int, places: int
) -> None:
    """Transform all channels of input tiles ``begin`` to ``end``, storing the first tile at ``out``.

    The 36 elements of a transformed tile are ``apart`` bytes apart; ``places`` is scratch memory for addresses.
    """
    height, width, channels = job.height, job.width, job.channels
    down, across = (job.out_height + 3) // 4, (job.out_width + 3) // 4
    zeros, size = job.zeros, 4 * channels
    for tile in range(begin, end):
        line = tile // across
        image = line // down
        top = (line - image * down) * 4 - job.pad_top
        left = (tile - line * across) * 4 - job.pad_left
        for a in range(6):
            has_line = 0 <= top + a < height
            start = x + ((image * height + top + a) * width + left) * size
            for b in range(6):
                inside = has_line and 0 <= left + b < width
                store_i64(places, 6 * a + b, start + b * size if inside else zeros)
        transform_input(places, channels // LANES, out + (tile - begin) * size, apart)


@device
def _multiply_tiles(
    job: WinogradJob, index: int, tiles: int, x: int, x_apart: int, out: int, out_apart: int, places: int
) -> None:
    """Multiply ``tiles`` transformed tiles by one panel of one of the 36 matrices.

    Args:
        job: the job.
        index: the index of the panel, counted through all matrices.
        tiles: the number of tiles.
        x: the address of the transformed tiles.
        x_apart: the bytes between the 36 elements of a transformed tile.
        out: the address of the products.
        out_apart: the bytes between the 36 elements of a tile of products.
        places: scratch memory for addresses.
    """
    panels = job.panels
    element = index // panels
    size = 4 * job.channels
    start = x + element * x_apart
    for i in range(tiles):
        store_i64(places, i, start + i * size)
    entry = Panel.at(job.table, index)
    # Columns are counted through all 36 matrices.
    column = entry.column - element * job.out_channels
    store_i64(places, tiles, 0)
    gemm_panel(
        entry.vectors, tiles, places, 0, 0, places + 8 * tiles, 1, job.channels,
        job.weights + entry.start, out + element * out_apart + 4 * column, 4 * job.out_channels,
        job.panel_bias, 0, 0, entry.last_columns, np.float32(-np.inf), np.float32(np.inf),
    )  # fmt: skip


@device
def _direct_window(job: WinogradJob, x: int, y: int, others: int, image: int, line: int, column: int) -> None:
    """Compute one pixel of the result, for all channels, without transforms."""
    height, width, channels = job.height, job.width, job.channels
    epilogue, filters = job.epilogue, job.filters
    top, left = line - job.pad_top, column - job.pad_left
    for o in range(job.out_channels):
        total = np.float32(0)
        for a in range(3):
            for b in range(3):
                if 0 <= top + a < height and 0 <= left + b < width:
                    start = ((image * height + top + a) * width + left + b) * channels
                    for c in range(channels):
                        total += load_f32(x, start + c) * load_f32(
                            filters, ((o * channels + c) * 3 + a) * 3 + b
                        )
        total = total * load_f32(job.scale, o) + load_f32(job.bias, o)
        if others != 0:
            total += load_f32(others, o)
        if total < epilogue.low:
            total = epilogue.low
        if total > epilogue.high:
            total = epilogue.high
        store_f32(y, o, total)


@routine(*[types.int64] * 11)
def _transform_output(  # noqa: PLR0913 (values in registers)
    job: WinogradJob, x: int, y: int, first: int, second: int, tiles: int, apart: int, begin: int, end: int, places: int,
    spare: int,
) -> None:  # fmt: skip
    """Apply the inverse transform and the epilogue to tiles ``begin`` to ``end``; recompute tiles that are not finite.

    Args:
        job: the job.
        x: the input of the convolution, for tiles that are recomputed.
        y: the result.
        first: the first extra tensor of the epilogue.
        second: the second extra tensor of the epilogue.
        tiles: the address of the products of tile ``begin``.
        apart: the bytes between the 36 elements of a tile.
        begin: the first tile.
        end: the tile after the last.
        places: scratch memory for addresses.
        spare: scratch memory that takes the pixels of a tile outside the result.
    """
    tall, wide, columns = job.out_height, job.out_width, job.out_channels
    down, across = (tall + 3) // 4, (wide + 3) // 4
    epilogue, size = job.epilogue, 4 * columns
    summed = epilogue.has_residual != 0
    others, check = places + 8 * 16, places + 8 * 32
    for tile in range(begin, end):
        line = tile // across
        image = line // down
        top, left = (line - image * down) * 4, (tile - line * across) * 4
        rows, count = min(4, tall - top), min(4, wide - left)
        corner = ((image * tall + top) * wide + left) * size
        for a in range(4):
            for b in range(4):
                at = corner + (a * wide + b) * size
                inside = a < rows and b < count
                store_i64(places, 4 * a + b, y + at if inside else spare)
                store_i64(others, 4 * a + b, first + at if inside else spare)
        transform_output(
            tiles + (tile - begin) * size, apart, places, others if summed else 0, job.bias,
            columns // LANES, check, epilogue.low, epilogue.high,
        )  # fmt: skip
        if load_f32(check, 0) != 0:
            for a in range(rows):
                for b in range(count):
                    at = corner + (a * wide + b) * size
                    _direct_window(job, x, y + at, first + at if summed else 0, image, top + a, left + b)
        if epilogue.post_ops > 0:
            for a in range(rows):
                apply_post_ops(epilogue, first, second, y, corner + a * wide * size, 0, count, columns, size)


@device
def _run_blocks(  # noqa: PLR0913 (values in registers)
    call: int, job: WinogradJob, x: int, y: int, first: int, second: int, source: int, target: int, before: int,
    after: int, tiles: int, table: int, spare: int,
) -> None:  # fmt: skip
    """Run all phases on one block of tiles after the other; a unit of work is a block.

    Args:
        call: the call of the task.
        job: the job.
        x: the input of the convolution.
        y: the result.
        first: the first extra tensor of the epilogue.
        second: the second extra tensor of the epilogue.
        source: scratch memory for transformed tiles.
        target: scratch memory for products.
        before: the bytes between the 36 elements of a transformed tile.
        after: the bytes between the 36 elements of a tile of products.
        tiles: the number of tiles.
        table: scratch memory for addresses.
        spare: scratch memory for pixels outside the result.
    """
    block = job.block_tiles
    for begin, end in each_chunk(call, tiles, block):
        _transform_input(job, x, source, before, begin, end, table)
        for index in range(TILE_ELEMENTS * job.panels):
            _multiply_tiles(job, index, end - begin, source, before, target, after, table)
        _transform_output(job, x, y, first, second, target, after, begin, end, table, spare)


@device
def _run_phases(  # noqa: PLR0913 (values in registers)
    counter: int, job: WinogradJob, x: int, y: int, first: int, source: int, target: int, before: int, after: int,
    tiles: int, table: int, spare: int, stop: int,
) -> None:  # fmt: skip
    """Run each phase on all tiles, with a barrier between phases; a unit of work is a tile or a panel.

    The arguments are those of `_run_blocks`, except that ``counter`` is the address of the shared counters, and ``stop`` that
    of the word that becomes nonzero when a thread fails.
    """
    for tile in each_counted(counter, tiles):
        _transform_input(job, x, source + 4 * tile * job.channels, before, tile, tile + 1, table)
        fetch_add(counter + 8)
    barrier(counter + 8, tiles, stop)
    products = TILE_ELEMENTS * job.panels
    for index in each_counted(counter + 16, products):
        _multiply_tiles(job, index, tiles, source, before, target, after, table)
        fetch_add(counter + 24)
    barrier(counter + 24, products, stop)
    for tile in each_counted(counter + 32, tiles):
        moved = target + 4 * tile * job.out_channels
        _transform_output(job, x, y, first, 0, moved, after, tile, tile + 1, table, spare)


@Task
def winograd(call: int, job: WinogradJob, y: int, x: int, first: int, second: int) -> None:
    """Convolve the NHWC map ``x`` with 3 by 3 filters of stride 1, and store the result, after the epilogue, in ``y``.

    ``first`` and ``second`` are extra tensors of the epilogue. If the job is ``shared``, ``second`` is scratch memory instead.
    """
    counter = shared_counters(call)
    channels, columns, block = job.channels, job.out_channels, job.block_tiles
    tiles = job.images * ((job.out_height + 3) // 4) * ((job.out_width + 3) // 4)
    # Pad the stride of elements by a vector: strides of a power of two map to few cache sets.
    before, after = 4 * (block * channels + LANES), 4 * (block * columns + LANES)
    table = scratch_memory(8 * (block + 40))
    spare = scratch_memory(4 * columns)
    if job.shared != 0:
        _run_phases(
            counter, job, x, y, first, second, second + TILE_ELEMENTS * before, before, after, tiles, table,
            spare, failure_word(call),
        )  # fmt: skip
    else:
        source = scratch_memory(TILE_ELEMENTS * (before + after))
        target = source + TILE_ELEMENTS * before
        _run_blocks(call, job, x, y, first, second, source, target, before, after, tiles, table, spare)


# The largest product of input and output channels for which transformed filters stay in the last-level cache.
MAX_FILTERS = 256 * 256
# Smaller maps have too few tiles, and use too little of the tiles at the border.
MIN_LENGTH = 10
# The most tiles of a block, and the most bytes of its transformed tiles, which stay in the cache of a thread.
TILE_BLOCK = 24
BLOCK_BYTES = 1 << 19
# With at least this many tiles per thread, and at most this many bytes of transformed filters, threads process blocks of
# their own: each thread then reads all filters, but little that another thread has written, which is slower to read.
MIN_OWN_TILES, MAX_OWN_FILTERS = 4, 1 << 22


def is_profitable(shape: Sequence[int], out: Sequence[int | None]) -> bool:
    """Return whether Winograd is faster than implicit GEMM.

    Args:
        shape: the shape of the filters, ``[C_out, C_in, 3, 3]``.
        out: the height and width of the result; ``None`` for a dynamic length.
    """
    outputs, inputs = shape[:2]
    whole = outputs % LANES == 0 and inputs % LANES == 0
    return (
        whole
        and inputs >= 16
        and outputs * inputs <= MAX_FILTERS
        and all(n is not None and n >= MIN_LENGTH for n in out)
    )


@dataclass(frozen=True)
class Winograd:
    """A convolution by Winograd's algorithm, followed by an epilogue.

    Args:
        filters: the filters, ``[C_out, C_in, 3, 3]``.
        epilogue: the layers applied to the result.
    """

    filters: Array
    epilogue: Epilogue
    panels: PackedPanels = field(init=False)
    packed_epilogue: PackedEpilogue = field(init=False)
    _kept: tuple[Array, Array, Array, Array] = field(init=False)
    _jobs: dict[tuple[int, ...], tuple[Array, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        w = np.ascontiguousarray(self.filters)
        outputs, channels = w.shape[:2]
        scale = np.ones(outputs, np.float32) if self.epilogue.scale is None else self.epilogue.scale
        bias = np.zeros(outputs, np.float32) if self.epilogue.shift is None else self.epilogue.shift
        zeros = np.zeros(max(channels, outputs), np.float32)
        object.__setattr__(self, "panels", transform_filters(w, scale))
        object.__setattr__(self, "packed_epilogue", PackedEpilogue.of(self.epilogue))
        winograd.prepare()
        object.__setattr__(self, "_kept", (w, np.ascontiguousarray(scale), np.ascontiguousarray(bias), zeros))

    def run(
        self, x: Array, shape: Sequence[int], pads: Sequence[tuple[int, int]], y: Array, extras:
        Sequence[Array],
    ) -> None:  # fmt: skip
        """Convolve ``x``, contiguous with NHWC ``shape``, into the NHWC array ``y``.

        Args:
            x: the data.
            shape: the NHWC shape of the data.
            pads: the padding before and after the height and the width.
            y: the result.
            extras: the additional inputs of fused layers.
        """
        key = (*shape, *y.shape, threads())
        if (entry := self._jobs.get(key)) is None:
            if len(self._jobs) >= 64:
                self._jobs.clear()
            entry = self._jobs[key] = self._job(shape, pads, y.shape)
        job, size = entry
        first, second = self.packed_epilogue.extra_arrays(extras, 1)
        if size:
            second = workspace(size)
        parallel_for(winograd.address, job, y, x, first, second, self._threads(y.shape))

    def _threads(self, out: Sequence[int]) -> int:
        """Return the number of threads to use for a result of NHWC shape ``out``."""
        work = TILE_ELEMENTS * _tiles(out) * self.filters.shape[0] * self.filters.shape[1]
        return threads_for(computed=work // 2)

    def _job(
        self, shape: Sequence[int], pads: Sequence[tuple[int, int]], out: Sequence[int]
    ) -> tuple[Array, int]:
        """Return a `WinogradJob`, and the f32 elements of the scratch memory that its threads share, 0 for none."""
        n, height, width, channels = shape
        tall, wide, outputs = out[1:]
        tiles, panels = _tiles(out), self.panels
        block, shared = self._block(tiles, max(channels, outputs), self._threads(out))
        w, scale, bias, zeros = self._kept
        job = WinogradJob.fill(
            images=n, height=height, width=width, channels=channels, out_height=tall, out_width=wide,
            out_channels=outputs, pad_top=pads[0][0], pad_left=pads[1][0], block_tiles=block,
            blocks=-(-tiles // block), panels=len(panels) // TILE_ELEMENTS, table=panels.table,
            weights=panels.numbers, panel_bias=panels.bias, bias=bias, zeros=zeros,
            epilogue=self.packed_epilogue.record, filters=w, scale=scale, shared=shared,
        )  # fmt: skip
        scratch = TILE_ELEMENTS * (block * (channels + outputs) + 2 * LANES) if shared else 0
        return job, scratch

    def _block(self, tiles: int, channels: int, count: int) -> tuple[int, bool]:
        """Return the tiles of a block, and whether all threads share one block of all tiles."""
        block = max(min(TILE_BLOCK, BLOCK_BYTES // (4 * TILE_ELEMENTS * channels) // 6 * 6), 6)
        if count == 1 or tiles >= 2 * count * block:
            return min(block, tiles), False
        if tiles >= count * MIN_OWN_TILES and self.panels.numbers.nbytes <= MAX_OWN_FILTERS:
            rounds = -(-tiles // (count * block))
            return -(-tiles // (count * rounds)), False
        shared = len(self.packed_epilogue.extras) < 2
        return tiles if shared else min(block, tiles), shared


def _tiles(out: Sequence[int]) -> int:
    """Return the number of 4 by 4 tiles that cover a result of NHWC shape ``out``."""
    return out[0] * -(-out[1] // 4) * -(-out[2] // 4)
