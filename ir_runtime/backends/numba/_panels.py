"""Constant matrices, packed in panels: the columns of a tile side by side, row after row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.tensor import Array
from ._threads import threads
from ._tile import SINGLE, TALL, WIDE
from ._vectors import LANES
from ._work import CALL_JOB, CALL_OUT, COUNTER, NOTHING, Worker, number, put_number, share, take, word

__all__ = ["WORDS", "Panels", "aligned", "arranged", "packed", "split"]

WORDS = 6
"""Numbers for a panel: bytes from the first one, vectors, columns of its last vector, first column of the
result, bytes from the first bias, bytes from the first offset of a tap."""

_ALIGNMENT = 64

# Numbers of panels that are worth a second thread; and rows that are copied at once, a column at a time.
LARGE = 1 << 17
AT_ONCE = 16


@dataclass(frozen=True)
class Panels:
    """A packed matrix.

    Args:
        numbers: the panels, one after the other.
        bias: one number for each column, with gaps as in the panels.
        table: `WORDS` numbers for each panel.
    """

    numbers: Array
    bias: Array
    table: Array

    def __len__(self) -> int:
        return len(self.table)


def split(columns: int) -> list[tuple[int, int, int]]:
    """Panels for so many columns: first column, vectors, and columns of the last vector."""
    found, first = [], 0
    while first < columns:
        vectors = -(-(columns - first) // LANES)
        vectors = next(n for n in (WIDE, TALL, SINGLE) if n <= vectors)
        last = min(columns - first - (vectors - 1) * LANES, LANES)
        found.append((first, vectors, last))
        first += vectors * LANES
    return found


def packed(filters: Array, scale: Array | None, bias: Array | None, across: int = 0) -> Panels:
    """Pack matrices, one for each group.

    Args:
        filters: ``[G, N, taps, depth]``, of any strides: for each column its rows, in the order of use.
        scale: what each column of all groups is multiplied with; ``None`` for 1.
        bias: what is added to each column of all groups; ``None`` for 0.
        across: bytes between the offsets of taps of two groups.
    """
    groups, columns, taps, depth = filters.shape
    panels = arranged(groups, columns, taps * depth, bias, across)
    factors = np.ones(groups * columns, np.float32) if scale is None else np.ascontiguousarray(scale)
    words = [
        len(panels), panels.table.ctypes.data, filters.ctypes.data, factors.ctypes.data, taps, depth, columns,
        *filters.strides,
    ]  # fmt: skip
    count = threads() if panels.numbers.size >= LARGE else 1
    share(_FILL.address, np.array(words, np.int64), panels.numbers, NOTHING, NOTHING, NOTHING, count)
    return panels


def arranged(groups: int, columns: int, depth: int, bias: Array | None = None, across: int = 0) -> Panels:
    """Panels for matrices of ``depth`` rows, whose numbers are not yet set."""
    parts = split(columns)
    table, start, before = [], 0, 0
    for group in range(groups):
        for first, vectors, last in parts:
            table.append((4 * start, vectors, last, group * columns + first, 4 * before, group * across))
            start, before = start + depth * vectors * LANES, before + vectors * LANES
    biases = aligned(before)
    biases[...] = 0
    if bias is not None:
        for _, vectors, last, column, place, _ in table:
            count = (vectors - 1) * LANES + last
            biases[place // 4 : place // 4 + count] = bias[column : column + count]
    return Panels(aligned(start), biases, np.array(table, np.int64).reshape(-1, WORDS))


def _fill(call: int) -> None:
    """Copy what the panels hold, a unit for each."""
    job, out = word(call, CALL_JOB), word(call, CALL_OUT)
    taps, depth, columns = word(job, 4), word(job, 5), word(job, 6)
    by_group, by_column, by_tap, by_row = word(job, 7), word(job, 8), word(job, 9), word(job, 10)
    while True:
        unit = take(call + 8 * COUNTER)
        if unit >= word(job, 0):
            break
        entry = word(job, 1) + 8 * WORDS * unit
        width, column = word(entry, 1) * LANES, word(entry, 3)
        count = width - LANES + word(entry, 2)
        group = column // columns
        source = word(job, 2) + group * by_group + (column - group * columns) * by_column
        for tap in range(taps):
            for first in range(0, depth, AT_ONCE):
                rows = min(AT_ONCE, depth - first)
                target = out + word(entry, 0) + 4 * (tap * depth + first) * width
                for j in range(width):
                    exists = j < count
                    factor = number(word(job, 3), column + j) if exists else np.float32(0)
                    start = source + j * by_column + tap * by_tap + first * by_row
                    for k in range(rows):
                        value = number(start + k * by_row, 0) * factor if exists else np.float32(0)
                        put_number(target, k * width + j, value)


_FILL = Worker(_fill)


def aligned(size: int) -> Array:
    """So many f32, not yet set, that begin where a line of the cache does."""
    raw = np.empty(4 * size + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + 4 * size].view(np.float32)
