"""The work of `_winograd`: tiles are transformed, multiplied, and transformed back, in blocks or phase by phase."""

from __future__ import annotations

import numpy as np

from ..codegen.language import device, routine, types
from ..codegen.vectors import LANES
from ..codegen.worker import Worker, done_with, given, join, number, put, put_number, room, take, word
from ._epilogue import finish
from ._gemm_tile import multiply
from ._panels import WORDS
from ._winograd_transforms import SIDE, from_tiles, to_tiles

__all__ = ["WORKER"]

# The words of a job.
(
    _IMAGES, _HEIGHT, _WIDTH, _CHANNELS, _TALL, _WIDE, _COLUMNS, _ABOVE, _BEFORE, _BLOCK_SIZE, _BLOCKS, _PANELS,
    _TABLE, _WEIGHTS, _NO_BIAS, _BIAS, _ZEROS, _WORDS, _NUMBERS, _FILTER, _SCALE, _SHARED,
) = range(22)  # fmt: skip


@routine(*[types.int64] * 7)
def _tiles_in(job: int, x: int, out: int, apart: int, begin: int, end: int, places: int) -> None:
    """Transform some tiles; the first of them goes to ``out``."""
    height, width, channels = word(job, _HEIGHT), word(job, _WIDTH), word(job, _CHANNELS)
    down, across = (word(job, _TALL) + 3) // 4, (word(job, _WIDE) + 3) // 4
    zeros, size = word(job, _ZEROS), 4 * channels
    for tile in range(begin, end):
        line = tile // across
        image = line // down
        top = (line - image * down) * 4 - word(job, _ABOVE)
        left = (tile - line * across) * 4 - word(job, _BEFORE)
        for a in range(6):
            inside = 0 <= top + a < height
            start = x + ((image * height + top + a) * width + left) * size
            for b in range(6):
                lies = inside and 0 <= left + b < width
                put(places, 6 * a + b, start + b * size if lies else zeros)
        to_tiles(places, channels // LANES, out + (tile - begin) * size, apart)


@device
def _product(
    job: int, index: int, tiles: int, x: int, x_apart: int, out: int, out_apart: int, places: int
) -> None:
    """Multiply tiles with one panel of one of the 36 matrices."""
    panels = word(job, _PANELS)
    element = index // panels
    size = 4 * word(job, _CHANNELS)
    start = x + element * x_apart
    for i in range(tiles):
        put(places, i, start + i * size)
    entry = word(job, _TABLE) + 8 * WORDS * index
    # The column is counted through all 36; within its own matrix it is that much less.
    column = word(entry, 3) - element * word(job, _COLUMNS)
    put(places, tiles, 0)
    multiply(
        word(entry, 1), tiles, places, 0, places + 8 * tiles, 1, word(job, _CHANNELS),
        word(job, _WEIGHTS) + word(entry, 0), out + element * out_apart + 4 * column, 4 * word(job, _COLUMNS),
        word(job, _NO_BIAS), 0, word(entry, 2), np.float32(-np.inf), np.float32(np.inf),
    )  # fmt: skip


@device
def _directly(job: int, x: int, y: int, others: int, image: int, line: int, column: int) -> None:
    """One window, for all channels, as convolution is defined."""
    height, width, channels = word(job, _HEIGHT), word(job, _WIDTH), word(job, _CHANNELS)
    numbers, filters = word(job, _NUMBERS), word(job, _FILTER)
    top, left = line - word(job, _ABOVE), column - word(job, _BEFORE)
    for o in range(word(job, _COLUMNS)):
        total = np.float32(0)
        for a in range(3):
            for b in range(3):
                if 0 <= top + a < height and 0 <= left + b < width:
                    start = ((image * height + top + a) * width + left + b) * channels
                    for c in range(channels):
                        total += number(x, start + c) * number(filters, ((o * channels + c) * 3 + a) * 3 + b)
        total = total * number(word(job, _SCALE), o) + number(word(job, _BIAS), o)
        if others != 0:
            total += number(others, o)
        if total < number(numbers, 0):
            total = number(numbers, 0)
        if total > number(numbers, 1):
            total = number(numbers, 1)
        put_number(y, o, total)


@routine(*[types.int64] * 11)
def _tiles_out(
    job: int, x: int, y: int, first: int, second: int, tiles: int, apart: int, begin: int, end: int, places: int,
    spare: int,
) -> None:  # fmt: skip
    """Transform some tiles back; those that are not finite are computed anew."""
    tall, wide, columns = word(job, _TALL), word(job, _WIDE), word(job, _COLUMNS)
    down, across = (tall + 3) // 4, (wide + 3) // 4
    words, numbers, size = word(job, _WORDS), word(job, _NUMBERS), 4 * columns
    summed = word(words, 0) != 0
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
                put(places, 4 * a + b, y + at if lies else spare)
                put(others, 4 * a + b, first + at if lies else spare)
        from_tiles(
            tiles + (tile - begin) * size, apart, places, others if summed else 0, word(job, _BIAS),
            columns // LANES, check, number(numbers, 0), number(numbers, 1),
        )  # fmt: skip
        if number(check, 0) != 0:
            for a in range(rows):
                for b in range(count):
                    at = corner + (a * wide + b) * size
                    _directly(job, x, y + at, first + at if summed else 0, image, top + a, left + b)
        if word(words, 1) > 0:
            for a in range(rows):
                finish(words, numbers, first, second, y, corner + a * wide * size, 0, count, columns, size)


@device
def _in_blocks(
    counter: int, job: int, x: int, y: int, first: int, second: int, source: int, target: int, before: int,
    after: int, tiles: int, table: int, spare: int,
) -> None:  # fmt: skip
    """Each thread on blocks of its own, from the first phase to the last."""
    block = word(job, _BLOCK_SIZE)
    while True:
        unit = take(counter)
        if unit >= word(job, _BLOCKS):
            break
        begin = unit * block
        end = min(begin + block, tiles)
        _tiles_in(job, x, source, before, begin, end, table)
        for index in range(SIDE * word(job, _PANELS)):
            _product(job, index, end - begin, source, before, target, after, table)
        _tiles_out(job, x, y, first, second, target, after, begin, end, table, spare)


@device
def _in_phases(
    counter: int, job: int, x: int, y: int, first: int, source: int, target: int, before: int, after: int,
    tiles: int, table: int, spare: int,
) -> None:  # fmt: skip
    """All threads on each phase."""
    while True:
        tile = take(counter)
        if tile >= tiles:
            break
        _tiles_in(job, x, source + 4 * tile * word(job, _CHANNELS), before, tile, tile + 1, table)
        take(counter + 8)
    join(counter + 8, tiles)
    products = SIDE * word(job, _PANELS)
    while True:
        index = take(counter + 16)
        if index >= products:
            break
        _product(job, index, tiles, source, before, target, after, table)
        take(counter + 24)
    join(counter + 24, products)
    while True:
        tile = take(counter + 32)
        if tile >= tiles:
            break
        moved = target + 4 * tile * word(job, _COLUMNS)
        _tiles_out(job, x, y, first, 0, moved, after, tile, tile + 1, table, spare)


def _work(call: int) -> None:
    job, y, x, first, second, counter = given(call)
    channels, columns, block = word(job, _CHANNELS), word(job, _COLUMNS), word(job, _BLOCK_SIZE)
    tiles = word(job, _IMAGES) * ((word(job, _TALL) + 3) // 4) * ((word(job, _WIDE) + 3) // 4)
    # A vector more between the elements: strides of a power of two share few lines of the cache.
    before, after = 4 * (block * channels + LANES), 4 * (block * columns + LANES)
    table = room(8 * (block + 40))
    spare = room(4 * columns)
    if word(job, _SHARED) != 0:
        _in_phases(
            counter, job, x, y, first, second, second + SIDE * before, before, after, tiles, table, spare
        )
    else:
        source = room(SIDE * (before + after))
        target = source + SIDE * before
        _in_blocks(counter, job, x, y, first, second, source, target, before, after, tiles, table, spare)
        done_with(source)
    done_with(table)
    done_with(spare)


WORKER = Worker(_work)
"""Convolves; `_winograd` makes its job, the words above in order."""
