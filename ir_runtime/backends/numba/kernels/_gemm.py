"""Rows, wherever they lie, by packed matrices: the work of products and convolutions alike.

A unit is some rows by one panel. The rows may be those of a matrix; windows that lie inside the data, of
which a tap is one row; or windows that reach into padding, of which a tap is one element, and where it
lies outside, its address is that of a row of zeros. So nothing is copied or padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from ....ir.tensor import Array
from ..codegen.language import device
from ..codegen.memory import alloc, fetch_add, free, load_f32, load_i64, store_i64
from ..codegen.vectors import LANES
from ..threading.parallel import parallel_for, threads
from ..threading.task import Task, load_args
from ._epilogue import Epilogue, Finish, finish
from ._gemm_tile import GRAIN, multiply
from ._panels import WORDS, Panels

__all__ = ["Dense", "Geometry", "Layout"]

# Multiplications that are worth a second thread.
WORTH = 100_000
# Bytes of rows that stay in the second cache beside a panel, while one panel after the other is used.
ROWS = 1 << 18
# Weights of more bytes than this do not: each panel is used for all rows, if they are fewer.
HEAVY = 1 << 19
# Units for a thread, so that one that is interrupted can be helped.
UNITS = 4


class Layout(IntEnum):
    """Where rows lie."""

    MATRIX = 0
    INSIDE = 1
    PADDED = 2


# The words of a job.
_ROWS, _CHUNK, _PANELS, _BY_PANEL, _TAPS, _DEPTH, _LAYOUT, _APART = range(8)
_TABLE, _WEIGHTS, _BIAS, _OFFSETS, _STRIDE, _WORDS, _NUMBERS, _ZEROS, _GEOMETRY = range(8, 17)


@dataclass(frozen=True)
class Geometry:
    """Where windows lie in images; per axis three numbers, of which those that are missing are 1 (padding: 0).

    Args:
        lengths: of the data.
        out: how many windows.
        strides: between windows.
        pads: before the data.
        kernel: elements of a window.
        dilations: between elements.
        element: bytes between neighbours along the last axis.
        image: bytes between images.
    """

    lengths: Sequence[int]
    out: Sequence[int]
    strides: Sequence[int]
    pads: Sequence[int]
    kernel: Sequence[int]
    dilations: Sequence[int]
    element: int
    image: int

    def words(self) -> Array:
        """As kernels read it."""
        fields = [self.lengths, self.out, self.strides, self.pads, self.kernel, self.dilations]
        numbers = [n for axis, f in enumerate(fields) for n in [int(axis != 3)] * (3 - len(f)) + list(f)]
        return np.array([*numbers, self.element, self.image], np.int64)


@dataclass(frozen=True)
class Dense:
    """A packed matrix, and what is done to its products.

    Args:
        panels: the matrix.
        epilogue: what follows.
        columns: of the result.
        taps: pieces of a row, ``depth`` numbers each.
        depth: numbers of a tap.
        zeros: as many as what lies side by side in the data.
    """

    panels: Panels
    epilogue: Epilogue
    columns: int
    taps: int
    depth: int
    zeros: Array
    finish: Finish = field(init=False)
    _jobs: dict[Any, tuple[Array, int, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "finish", Finish.of(self.epilogue))
        _worker.prepare()

    def run(self, x: Array, out: Array, extras: Sequence[Array], axis: int, key: Any, describe: Any) -> None:
        """Multiply the rows of ``x`` and finish them into ``out``, both 1-D.

        Args:
            x: what the rows lie in.
            out: where the result goes.
            extras: the other inputs of layers that were absorbed.
            axis: the columns of those.
            key: all that a job follows from.
            describe: called for a new job: gives rows, the layout, bytes between rows, offsets of taps for
                each group, and the geometry, if there are windows.
        """
        count = threads()
        found = self._jobs.get((key, count))
        if found is None:
            if len(self._jobs) >= 64:
                self._jobs.clear()
            found = self._jobs[key, count] = self._job(count, *describe())
        job, most, _ = found
        first, second = self.finish.partners(extras, axis)
        parallel_for(_worker.address, job, out, x, first, second, most)

    def _job(
        self, count: int, rows: int, layout: Layout, apart: int, offsets: Array, geometry: Geometry | None
    ) -> tuple[Array, int, Any]:
        where = geometry.words() if geometry is not None else np.zeros(1, np.int64)
        size = apart if layout is Layout.MATRIX else where[-2] * int(where[6:9].prod())
        most = count if rows * self.columns * (self.taps * self.depth + self.finish.cost) >= WORTH else 1
        chunk, by_panel = self._chunk(rows, max(int(size), 1), most)
        panels, finish = self.panels, self.finish
        words = [
            rows, chunk, len(panels), by_panel, self.taps, self.depth, layout, apart,
            panels.table.ctypes.data, panels.numbers.ctypes.data, panels.bias.ctypes.data,
            offsets.ctypes.data, 4 * self.columns, finish.words.ctypes.data, finish.numbers.ctypes.data,
            self.zeros.ctypes.data, where.ctypes.data,
        ]  # fmt: skip
        return np.array(words, np.int64), most, (where, offsets)

    def _chunk(self, rows: int, size: int, most: int) -> tuple[int, bool]:
        """Rows of a unit, and whether a panel is used for all of them before the next one."""
        weights = self.panels.numbers.nbytes
        heavy = weights > HEAVY and rows * size < weights
        chunk = max((2 * ROWS if heavy else ROWS) // size, 1)
        if not heavy:
            chunk = min(chunk, 4 * GRAIN)
        wanted = -(-UNITS * most // max(len(self.panels), 1)) if most > 1 else 1
        chunk = min(chunk, -(-rows // wanted))
        return max(-(-chunk // GRAIN), 1) * GRAIN, heavy


@device
def _matrix(places: int, base: int, rows: int, apart: int) -> None:
    for r in range(rows):
        store_i64(places, r, base + r * apart)


@device
def _window(g: int, index: int) -> Any:
    """Which window that is: of which image, and where along each axis."""
    deep, tall, wide = load_i64(g, 3), load_i64(g, 4), load_i64(g, 5)
    line = index // wide
    plane = line // tall
    image = plane // deep
    return image, plane - image * deep, line - plane * tall, index - line * wide


@device
def _inside(places: int, x: int, g: int, first: int, rows: int) -> None:
    """Addresses of windows: of their first elements."""
    element, image = load_i64(g, 18), load_i64(g, 19)
    tall, wide, wide_out = load_i64(g, 1), load_i64(g, 2), load_i64(g, 5)
    r, index = 0, first
    while r < rows:
        n, plane, line, column = _window(g, index)
        d, h = plane * load_i64(g, 6), line * load_i64(g, 7)
        start = x + n * image + (d * tall + h) * wide * element
        step = load_i64(g, 8) * element
        count = min(wide_out - column, rows - r)
        for i in range(count):
            store_i64(places, r + i, start + (column + i) * step)
        r, index = r + count, index + count


@device
def _padded(places: int, x: int, g: int, first: int, rows: int, step: int, zeros: int) -> None:
    """Addresses of every element of windows; a table of ``step`` bytes for each element."""
    element, image = load_i64(g, 18), load_i64(g, 19)
    deep, tall, wide, wide_out = load_i64(g, 0), load_i64(g, 1), load_i64(g, 2), load_i64(g, 5)
    r, index = 0, first
    while r < rows:
        n, plane, line, column = _window(g, index)
        top, left = plane * load_i64(g, 6) - load_i64(g, 9), line * load_i64(g, 7) - load_i64(g, 10)
        count = min(wide_out - column, rows - r)
        stride, before = load_i64(g, 8), load_i64(g, 11)
        table = places + 8 * r
        for a in range(load_i64(g, 12)):
            d = top + a * load_i64(g, 15)
            for b in range(load_i64(g, 13)):
                h = left + b * load_i64(g, 16)
                lies = 0 <= d < deep and 0 <= h < tall
                start = x + n * image + (d * tall + h) * wide * element
                for c in range(load_i64(g, 14)):
                    w = column * stride - before + c * load_i64(g, 17)
                    for i in range(count):
                        inside = lies and 0 <= w < wide
                        store_i64(table, i, start + w * element if inside else zeros)
                        w += stride
                    table += step
        r, index = r + count, index + count


@Task
def _worker(call: int) -> None:
    job, out, x, first, second, counter = load_args(call)
    rows, chunk, panels, taps = (
        load_i64(job, _ROWS),
        load_i64(job, _CHUNK),
        load_i64(job, _PANELS),
        load_i64(job, _TAPS),
    )
    layout, stride, geometry = load_i64(job, _LAYOUT), load_i64(job, _STRIDE), load_i64(job, _GEOMETRY)
    words, numbers, zeros = load_i64(job, _WORDS), load_i64(job, _NUMBERS), load_i64(job, _ZEROS)
    summed, stages = load_i64(words, 0), load_i64(words, 1)
    low, high = load_f32(numbers, 0), load_f32(numbers, 1)
    chunks = (rows + chunk - 1) // chunk
    step = 8 * chunk if layout == 2 else 0
    places = alloc(8 * chunk * (taps if layout == 2 else 1))
    known = -1
    while True:
        unit = fetch_add(counter)
        if unit >= chunks * panels:
            break
        if load_i64(job, _BY_PANEL) != 0:
            panel, part = unit // chunks, unit % chunks
        else:
            part, panel = unit // panels, unit % panels
        start = part * chunk
        count = min(chunk, rows - start)
        if part != known:
            if layout == 0:
                _matrix(places, x + start * load_i64(job, _APART), count, load_i64(job, _APART))
            elif layout == 1:
                _inside(places, x, geometry, start, count)
            else:
                _padded(places, x, geometry, start, count, step, zeros)
            known = part
        entry = load_i64(job, _TABLE) + 8 * WORDS * panel
        vectors, last, column = load_i64(entry, 1), load_i64(entry, 2), 4 * load_i64(entry, 3)
        at = start * stride + column
        multiply(
            vectors, count, places, step, load_i64(job, _OFFSETS) + load_i64(entry, 5), taps, load_i64(job, _DEPTH),
            load_i64(job, _WEIGHTS) + load_i64(entry, 0), out + at, stride, load_i64(job, _BIAS) + load_i64(entry, 4),
            first + at if summed != 0 else 0, last, low, high,
        )  # fmt: skip
        if stages > 0:
            width = (vectors - 1) * LANES + last
            finish(words, numbers, first, second, out, at, column, count, width, stride)
    free(places)
