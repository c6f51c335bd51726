"""The Winograd kernel: transforms tiles, multiplies them and transforms them back, in blocks or phase by phase."""

from __future__ import annotations

import numpy as np

from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, routine, types
from ..codegen.memory import barrier, fetch_add, load_f32, scratch_memory, store_f32, store_i64
from ..codegen.vectors import LANES
from ..threading.task import Task, each_chunk, each_counted, failure_word, load_args
from ._gemm_tile import gemm_panel
from ._packed_epilogue import Bounds, EpilogueHeader, apply_post_ops
from ._panels import Panel
from ._winograd_transforms import TILE_ELEMENTS, transform_input, transform_output

__all__ = ["WINOGRAD", "WinogradJob"]


class WinogradJob(Descriptor):
    """The job of `WINOGRAD`: sizes, then addresses; with ``shared``, all threads work on each phase."""

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
    epilogue_words: i64
    epilogue_numbers: i64
    filters: i64
    scale: i64
    shared: i64


@routine(*[types.int64] * 7)
def _transform_input(
    job: WinogradJob, x: int, out: int, apart: int, begin: int, end: int, places: int
) -> None:
    """Transform input tiles; the first one goes to ``out``."""
    height, width, channels = (
        job.height,
        job.width,
        job.channels,
    )
    down, across = (
        (job.out_height + 3) // 4,
        (job.out_width + 3) // 4,
    )
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
    """Multiply tiles with one panel of one of the 36 matrices."""
    panels = job.panels
    element = index // panels
    size = 4 * job.channels
    start = x + element * x_apart
    for i in range(tiles):
        store_i64(places, i, start + i * size)
    entry = Panel.at(job.table + 8 * Panel.words * index)
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
    """Compute one window for all channels directly."""
    height, width, channels = (
        job.height,
        job.width,
        job.channels,
    )
    numbers, filters = Bounds.at(job.epilogue_numbers), job.filters
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
        if total < numbers.low:
            total = numbers.low
        if total > numbers.high:
            total = numbers.high
        store_f32(y, o, total)


@routine(*[types.int64] * 11)
def _transform_output(  # noqa: PLR0913 (values in registers)
    job: WinogradJob, x: int, y: int, first: int, second: int, tiles: int, apart: int, begin: int, end: int, places: int,
    spare: int,
) -> None:  # fmt: skip
    """Transform output tiles; those that are not finite are computed directly."""
    tall, wide, columns = (
        job.out_height,
        job.out_width,
        job.out_channels,
    )
    down, across = (tall + 3) // 4, (wide + 3) // 4
    words, numbers, size = (
        EpilogueHeader.at(job.epilogue_words),
        Bounds.at(job.epilogue_numbers),
        4 * columns,
    )
    summed = words.has_residual != 0
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
            columns // LANES, check, numbers.low, numbers.high,
        )  # fmt: skip
        if load_f32(check, 0) != 0:
            for a in range(rows):
                for b in range(count):
                    at = corner + (a * wide + b) * size
                    _direct_window(job, x, y + at, first + at if summed else 0, image, top + a, left + b)
        if words.post_ops > 0:
            for a in range(rows):
                apply_post_ops(
                    words, numbers, first, second, y, corner + a * wide * size, 0, count, columns, size
                )


@device
def _by_blocks(  # noqa: PLR0913 (values in registers)
    call: int, job: WinogradJob, x: int, y: int, first: int, second: int, source: int, target: int, before: int,
    after: int, tiles: int, table: int, spare: int,
) -> None:  # fmt: skip
    """Run all phases on blocks of tiles; a unit is a block."""
    block = job.block_tiles
    for begin, end in each_chunk(call, tiles, block):
        _transform_input(job, x, source, before, begin, end, table)
        for index in range(TILE_ELEMENTS * job.panels):
            _multiply_tiles(job, index, end - begin, source, before, target, after, table)
        _transform_output(job, x, y, first, second, target, after, begin, end, table, spare)


@device
def _by_phases(  # noqa: PLR0913 (values in registers)
    counter: int, job: WinogradJob, x: int, y: int, first: int, source: int, target: int, before: int, after: int,
    tiles: int, table: int, spare: int, stop: int,
) -> None:  # fmt: skip
    """Run phase by phase on all tiles, with a barrier after each; a unit is a tile or a panel."""
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


def _winograd(call: int) -> None:
    address, y, x, first, second, counter = load_args(call)
    job = WinogradJob.at(address)
    channels, columns, block = (
        job.channels,
        job.out_channels,
        job.block_tiles,
    )
    tiles = job.images * ((job.out_height + 3) // 4) * ((job.out_width + 3) // 4)
    # Pad the stride of elements by a vector: strides of a power of two map to few cache sets.
    before, after = 4 * (block * channels + LANES), 4 * (block * columns + LANES)
    table = scratch_memory(8 * (block + 40))
    spare = scratch_memory(4 * columns)
    if job.shared != 0:
        _by_phases(
            counter,
            job,
            x,
            y,
            first,
            second,
            second + TILE_ELEMENTS * before,
            before,
            after,
            tiles,
            table,
            spare,
            failure_word(call),
        )
    else:
        source = scratch_memory(TILE_ELEMENTS * (before + after))
        target = source + TILE_ELEMENTS * before
        _by_blocks(call, job, x, y, first, second, source, target, before, after, tiles, table, spare)


WINOGRAD = Task(_winograd)
"""Convolves 3 by 3 filters; `_winograd` makes the job."""
