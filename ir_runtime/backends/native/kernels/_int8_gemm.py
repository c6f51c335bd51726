"""Tasks that multiply levels by integer weights: convolutions as implicit GEMMs over maps with borders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device
from ..codegen.levels import LEVEL_SIZE, WEIGHT_DTYPE
from ..codegen.memory import load_i64, scratch_memory, store_i64
from ..codegen.vectors import LANES
from ..packed_memory import aligned_empty
from ..threading.task import Task, shared_counters
from ._int8_maps import MapJob, fill_borders, first_share, share_of_lines, take_units
from ._int8_tile import column_order, levels_panel
from ._panels import Panel, split

__all__ = ["levels_gemm", "AheadRecord", "LevelsGemmJob", "LevelsPanels", "pack_levels"]


class LevelsGemmJob(MapJob):
    """The job of `levels_gemm`; ``depth`` counts the 32-bit words of a tap, ``chunk`` rows, or panels if threads share panels.

    ``ahead`` points to one `AheadRecord` per share.
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
    """The address range of the first weights of the next product."""

    start: i64
    end: i64


@device
def _addresses(  # noqa: PLR0913 (values in registers)
    table: int, base: int, first: int, rows: int, width: int, plane: int, image: int, line: int, pixel: int
) -> None:  # fmt: skip
    """Write the addresses of pixels of a map."""
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
def _tables(
    job: LevelsGemmJob, tables: int, out: int, x: int, other: int, start: int, count: int, size: int
) -> None:
    """Write the pixel addresses of data, result and residual to three tables of ``size`` bytes each."""
    width, plane = job.width, job.plane
    _addresses(tables, x + job.x_offset, start, count, width, plane, job.x_image, job.x_line, job.x_pixel)
    _addresses(
        tables + size, out + job.y_offset, start, count, width, plane, job.y_image, job.y_line, job.y_pixel
    )
    if job.has_other != 0:
        _addresses(
            tables + 2 * size, other + job.other_offset, start, count, width, plane,
            job.other_image, job.other_line,
            job.other_pixel,
        )  # fmt: skip


@device
def _panels(
    job: LevelsGemmJob, tables: int, size: int, rows: int, first: int, count: int, share: int
) -> None:  # fmt: skip
    """Multiply rows, addressed by the tables, by panels, prefetching the next panel, and finally that of the next product."""
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
def _borders(job: LevelsGemmJob, out: int, first: int, count: int) -> None:
    """Write the border around rows, or the panels' part of it."""
    width = job.width
    if job.by_panel != 0:
        lines = job.rows // width
        line, more = share_of_lines(lines, first, count, job.panels)
    else:
        line, more = first // width, (first + count) // width - first // width
    fill_borders(job.borders, out, line, more)


@Task
def levels_gemm(call: int, job: LevelsGemmJob, out: int, x: int, other: int) -> None:
    """Multiply rows of A by packed weights, add levels of B as a residual, and store levels.

    A unit is a row or a panel.
    """
    counter = shared_counters(call)
    rows, panels = job.rows, job.panels
    by_panel, chunk = job.by_panel, job.chunk
    starts, shares = job.starts, job.shares
    size = 8 * (rows if by_panel != 0 else chunk)
    tables = scratch_memory(3 * size)
    if by_panel != 0:
        _tables(job, tables, out, x, other, 0, rows, size)
    share, empty = first_share(call, shares), 0
    while True:
        first, count, share, empty = take_units(counter, starts, chunk, shares, share, empty)
        if count == 0:
            break
        _borders(job, out, first, count)
        if by_panel != 0:
            _panels(job, tables, size, rows, first, count, share)
        else:
            _tables(job, tables, out, x, other, first, count, size)
            _panels(job, tables, size, count, 0, panels, share)


@dataclass(frozen=True)
class LevelsPanels:
    """Packed integer weights, with one `Panel` per panel."""

    weights: Array
    table: Array

    def in_order(self, row: Array) -> Array:
        """Reorder a row of numbers per column to the order of the lanes."""
        return np.concatenate(
            [row[first + column_order(count)] for _, count, _, first, *_ in self.table.tolist()]
        )


def pack_levels(w: Array, columns: Sequence[int]) -> LevelsPanels:
    """Pack weights ``[outputs, depth]`` in words of `GROUP` weights along the depth, in panels of columns.

    The depth of all taps is a multiple of `GROUP`. Columns are padded with zeros and in `column_order`. No
    panel crosses any of the given ``columns``, which are multiples of `LANES`; the last is the total number.
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
