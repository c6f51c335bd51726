"""Products of levels and integer weights as tasks: convolutions as implicit GEMMs over maps with borders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....ir.tensor import Array
from ..codegen.descriptor import i64
from ..codegen.language import device
from ..codegen.levels import LEVEL_SIZE, WEIGHT_DTYPE
from ..codegen.memory import alloc, fetch_add, free, load_i64, store_i64
from ..codegen.vectors import LANES
from ..threading.task import Task, load_args
from ._int8_maps import MapJob
from ._int8_tile import levels_panel
from ._panels import CachedBytes, Panel, split, unit_place

__all__ = ["CACHED", "LEVELS_GEMM", "LevelsGemmJob", "LevelsPanels", "pack_levels"]

CACHED = CachedBytes(rows=1 << 17, weights=1 << 18)


class LevelsGemmJob(MapJob):
    """The job of `LEVELS_GEMM`; ``depth`` counts 32-bit words of a tap."""

    rows: i64
    chunk: i64
    panels: i64
    by_panel: i64
    taps: i64
    depth: i64
    table: i64
    weights: i64
    tap_offsets: i64


@device
def _addresses(  # noqa: PLR0913 (values in registers)
    table: int, base: int, first: int, rows: int, width: int, plane: int, image: int, line: int, pixel: int
) -> None:  # fmt: skip
    """Write the addresses of some pixels of a map."""
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


def _levels_gemm(call: int) -> None:
    """Multiply rows by panels; a unit is a chunk of rows by one panel."""
    job, out, x, other, _, counter = load_args(call)
    rows, chunk = load_i64(job, LevelsGemmJob.rows), load_i64(job, LevelsGemmJob.chunk)
    panels, taps = load_i64(job, LevelsGemmJob.panels), load_i64(job, LevelsGemmJob.taps)
    width, plane = load_i64(job, LevelsGemmJob.width), load_i64(job, LevelsGemmJob.plane)
    added = load_i64(job, LevelsGemmJob.has_other) != 0
    chunks = (rows + chunk - 1) // chunk
    tables = alloc(3 * 8 * chunk)
    ys, others = tables + 8 * chunk, tables + 16 * chunk
    known = -1
    while True:
        unit = fetch_add(counter)
        if unit >= chunks * panels:
            break
        panel, part = unit_place(unit, load_i64(job, LevelsGemmJob.by_panel), chunks, panels)
        start = part * chunk
        count = min(chunk, rows - start)
        if part != known:
            _addresses(
                tables, x + load_i64(job, LevelsGemmJob.x_offset), start, count, width, plane,
                load_i64(job, LevelsGemmJob.x_image), load_i64(job, LevelsGemmJob.x_line),
                load_i64(job, LevelsGemmJob.x_pixel),
            )  # fmt: skip
            _addresses(
                ys, out + load_i64(job, LevelsGemmJob.y_offset), start, count, width, plane,
                load_i64(job, LevelsGemmJob.y_image), load_i64(job, LevelsGemmJob.y_line),
                load_i64(job, LevelsGemmJob.y_pixel),
            )  # fmt: skip
            if added:
                _addresses(
                    others, other + load_i64(job, LevelsGemmJob.other_offset), start, count, width, plane,
                    load_i64(job, LevelsGemmJob.other_image), load_i64(job, LevelsGemmJob.other_line),
                    load_i64(job, LevelsGemmJob.other_pixel),
                )  # fmt: skip
            known = part
        entry = load_i64(job, LevelsGemmJob.table) + 8 * Panel.words * panel
        column = load_i64(entry, Panel.column)
        levels_panel(
            load_i64(entry, Panel.vectors), count, tables, ys, others if added else 0,
            load_i64(job, LevelsGemmJob.tap_offsets), taps, load_i64(job, LevelsGemmJob.depth),
            load_i64(job, LevelsGemmJob.weights) + load_i64(entry, Panel.start),
            load_i64(job, LevelsGemmJob.scale) + 4 * column, load_i64(job, LevelsGemmJob.bias) + 4 * column,
            load_i64(job, LevelsGemmJob.bounds), LEVEL_SIZE * column,
        )  # fmt: skip
    free(tables)


LEVELS_GEMM = Task(_levels_gemm)
"""Multiplies rows of A with packed weights, adds levels of B if there is a residual, and stores levels."""


@dataclass(frozen=True)
class LevelsPanels:
    """Packed integer weights, and a `Panel` for each panel."""

    weights: Array
    table: Array


def pack_levels(w: Array, columns: int) -> LevelsPanels:
    """Pack weights ``[outputs, depth]``: words of `GROUP` weights along the depth, the columns of each side by side.

    The depth of all taps is a multiple of `GROUP`. Columns are padded with zeros to ``columns``, a multiple of `LANES`.
    """
    words = np.ascontiguousarray(w, WEIGHT_DTYPE).view(np.uint32)
    outputs, depth = words.shape
    packed, table = np.zeros(depth * columns, np.uint32), []
    for first, vectors, last in split(columns):
        start, width = depth * first, vectors * LANES
        panel = packed[start : start + depth * width].reshape(depth, width)
        panel[:, : max(outputs - first, 0)] = words[first : first + width].T
        table.append((packed.itemsize * start, vectors, last, first, 0, 0))
    return LevelsPanels(packed, np.array(table, np.int64).reshape(-1, Panel.words))
