"""The work of `_winograd`: tiles are transformed, multiplied, and transformed back, in blocks or phase by phase."""

from __future__ import annotations

import numpy as np

from ..codegen.language import device, routine, types
from ..codegen.memory import alloc, barrier, fetch_add, free, load_f32, load_i64, store_f32, store_i64
from ..codegen.vectors import LANES
from ..threading.task import Task, load_args
from ._gemm_tile import gemm_panel
from ._packed_epilogue import apply_post_ops
from ._panels import Panel
from ._winograd_transforms import TILE_ELEMENTS, transform_input, transform_output

__all__ = ["WINOGRAD"]

# The words of a job.
(
    _IMAGES, _HEIGHT, _WIDTH, _CHANNELS, _TALL, _WIDE, _COLUMNS, _ABOVE, _BEFORE, _BLOCK_SIZE, _BLOCKS, _PANELS,
    _TABLE, _WEIGHTS, _NO_BIAS, _BIAS, _ZEROS, _WORDS, _NUMBERS, _FILTER, _SCALE, _SHARED,
) = range(22)  # fmt: skip


@routine(*[types.int64] * 7)
def _transform_input(job: int, x: int, out: int, apart: int, begin: int, end: int, places: int) -> None:
    """Transform some tiles; the first of them goes to ``out``."""
    height, width, channels = load_i64(job, _HEIGHT), load_i64(job, _WIDTH), load_i64(job, _CHANNELS)
    down, across = (load_i64(job, _TALL) + 3) // 4, (load_i64(job, _WIDE) + 3) // 4
    zeros, size = load_i64(job, _ZEROS), 4 * channels
    for tile in range(begin, end):
        line = tile // across
        image = line // down
        top = (line - image * down) * 4 - load_i64(job, _ABOVE)
        left = (tile - line * across) * 4 - load_i64(job, _BEFORE)
        for a in range(6):
            inside = 0 <= top + a < height
            start = x + ((image * height + top + a) * width + left) * size
            for b in range(6):
                lies = inside and 0 <= left + b < width
                store_i64(places, 6 * a + b, start + b * size if lies else zeros)
        transform_input(places, channels // LANES, out + (tile - begin) * size, apart)


@device
def _multiply_tiles(
    job: int, index: int, tiles: int, x: int, x_apart: int, out: int, out_apart: int, places: int
) -> None:
    """Multiply tiles with one panel of one of the 36 matrices."""
    panels = load_i64(job, _PANELS)
    element = index // panels
    size = 4 * load_i64(job, _CHANNELS)
    start = x + element * x_apart
    for i in range(tiles):
        store_i64(places, i, start + i * size)
    entry = load_i64(job, _TABLE) + 8 * Panel.words * index
    # The column is counted through all 36; within its own matrix it is that much less.
    column = load_i64(entry, Panel.column) - element * load_i64(job, _COLUMNS)
    store_i64(places, tiles, 0)
    gemm_panel(
        load_i64(entry, Panel.vectors), tiles, places, 0, places + 8 * tiles, 1, load_i64(job, _CHANNELS),
        load_i64(job, _WEIGHTS) + load_i64(entry, Panel.start), out + element * out_apart + 4 * column, 4 * load_i64(job, _COLUMNS),
        load_i64(job, _NO_BIAS), 0, load_i64(entry, Panel.last_columns), np.float32(-np.inf), np.float32(np.inf),
    )  # fmt: skip


@device
def _direct_window(job: int, x: int, y: int, others: int, image: int, line: int, column: int) -> None:
    """One window, for all channels, as convolution is defined."""
    height, width, channels = load_i64(job, _HEIGHT), load_i64(job, _WIDTH), load_i64(job, _CHANNELS)
    numbers, filters = load_i64(job, _NUMBERS), load_i64(job, _FILTER)
    top, left = line - load_i64(job, _ABOVE), column - load_i64(job, _BEFORE)
    for o in range(load_i64(job, _COLUMNS)):
        total = np.float32(0)
        for a in range(3):
            for b in range(3):
                if 0 <= top + a < height and 0 <= left + b < width:
                    start = ((image * height + top + a) * width + left + b) * channels
                    for c in range(channels):
                        total += load_f32(x, start + c) * load_f32(
                            filters, ((o * channels + c) * 3 + a) * 3 + b
                        )
        total = total * load_f32(load_i64(job, _SCALE), o) + load_f32(load_i64(job, _BIAS), o)
        if others != 0:
            total += load_f32(others, o)
        if total < load_f32(numbers, 0):
            total = load_f32(numbers, 0)
        if total > load_f32(numbers, 1):
            total = load_f32(numbers, 1)
        store_f32(y, o, total)


@routine(*[types.int64] * 11)
def _transform_output(
    job: int, x: int, y: int, first: int, second: int, tiles: int, apart: int, begin: int, end: int, places: int,
    spare: int,
) -> None:  # fmt: skip
    """Transform some tiles back; those that are not finite are computed anew."""
    tall, wide, columns = load_i64(job, _TALL), load_i64(job, _WIDE), load_i64(job, _COLUMNS)
    down, across = (tall + 3) // 4, (wide + 3) // 4
    words, numbers, size = load_i64(job, _WORDS), load_i64(job, _NUMBERS), 4 * columns
    summed = load_i64(words, 0) != 0
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
                lies = a < rows and b < count
                store_i64(places, 4 * a + b, y + at if lies else spare)
                store_i64(others, 4 * a + b, first + at if lies else spare)
        transform_output(
            tiles + (tile - begin) * size, apart, places, others if summed else 0, load_i64(job, _BIAS),
            columns // LANES, check, load_f32(numbers, 0), load_f32(numbers, 1),
        )  # fmt: skip
        if load_f32(check, 0) != 0:
            for a in range(rows):
                for b in range(count):
                    at = corner + (a * wide + b) * size
                    _direct_window(job, x, y + at, first + at if summed else 0, image, top + a, left + b)
        if load_i64(words, 1) > 0:
            for a in range(rows):
                apply_post_ops(
                    words, numbers, first, second, y, corner + a * wide * size, 0, count, columns, size
                )


@device
def _by_blocks(
    counter: int, job: int, x: int, y: int, first: int, second: int, source: int, target: int, before: int,
    after: int, tiles: int, table: int, spare: int,
) -> None:  # fmt: skip
    """Each thread on blocks of its own, from the first phase to the last."""
    block = load_i64(job, _BLOCK_SIZE)
    while True:
        unit = fetch_add(counter)
        if unit >= load_i64(job, _BLOCKS):
            break
        begin = unit * block
        end = min(begin + block, tiles)
        _transform_input(job, x, source, before, begin, end, table)
        for index in range(TILE_ELEMENTS * load_i64(job, _PANELS)):
            _multiply_tiles(job, index, end - begin, source, before, target, after, table)
        _transform_output(job, x, y, first, second, target, after, begin, end, table, spare)


@device
def _by_phases(
    counter: int, job: int, x: int, y: int, first: int, source: int, target: int, before: int, after: int,
    tiles: int, table: int, spare: int,
) -> None:  # fmt: skip
    """All threads on each phase."""
    while True:
        tile = fetch_add(counter)
        if tile >= tiles:
            break
        _transform_input(job, x, source + 4 * tile * load_i64(job, _CHANNELS), before, tile, tile + 1, table)
        fetch_add(counter + 8)
    barrier(counter + 8, tiles)
    products = TILE_ELEMENTS * load_i64(job, _PANELS)
    while True:
        index = fetch_add(counter + 16)
        if index >= products:
            break
        _multiply_tiles(job, index, tiles, source, before, target, after, table)
        fetch_add(counter + 24)
    barrier(counter + 24, products)
    while True:
        tile = fetch_add(counter + 32)
        if tile >= tiles:
            break
        moved = target + 4 * tile * load_i64(job, _COLUMNS)
        _transform_output(job, x, y, first, 0, moved, after, tile, tile + 1, table, spare)


def _winograd(call: int) -> None:
    job, y, x, first, second, counter = load_args(call)
    channels, columns, block = load_i64(job, _CHANNELS), load_i64(job, _COLUMNS), load_i64(job, _BLOCK_SIZE)
    tiles = load_i64(job, _IMAGES) * ((load_i64(job, _TALL) + 3) // 4) * ((load_i64(job, _WIDE) + 3) // 4)
    # A vector more between the elements: strides of a power of two share few lines of the cache.
    before, after = 4 * (block * channels + LANES), 4 * (block * columns + LANES)
    table = alloc(8 * (block + 40))
    spare = alloc(4 * columns)
    if load_i64(job, _SHARED) != 0:
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
        )
    else:
        source = alloc(TILE_ELEMENTS * (before + after))
        target = source + TILE_ELEMENTS * before
        _by_blocks(counter, job, x, y, first, second, source, target, before, after, tiles, table, spare)
        free(source)
    free(table)
    free(spare)


WINOGRAD = Task(_winograd)
"""Convolves; `_winograd` makes its job, the words above in order."""
