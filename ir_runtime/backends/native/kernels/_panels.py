"""Packed weights: matrices in panels as wide as a GEMM tile, the columns of each row contiguous (GotoBLAS, BLIS)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...._util.cached import cached_property
from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device
from ..codegen.vectors import LANES
from ..packed_memory import aligned_empty
from ._gemm_tile import ROW_MULTIPLE, SINGLE, TALL, WIDE, WIDE_ROWS

__all__ = [
    "CachedBytes",
    "PackedPanels",
    "Panel",
    "allocate_panels",
    "chunk_rows",
    "split",
    "unit_place",
]

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
