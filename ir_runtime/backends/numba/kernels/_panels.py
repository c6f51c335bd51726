"""Constant matrices, packed in panels: the columns of a tile side by side, row after row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir

from ....ir.tensor import Array
from ..codegen.language import device, instruction, types
from ..codegen.memory import fetch_add, load_f32, load_i64, store_f32
from ..codegen.vectors import INTS, LANES, Emit
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args
from ._gemm_tile import SINGLE, TALL, WIDE

__all__ = ["WORDS", "Panels", "aligned", "arranged", "packed", "split"]

WORDS = 6
"""Numbers for a panel: bytes from the first one, vectors, columns of its last vector, first column of the
result, bytes from the first bias, bytes from the first offset of a tap."""

_ALIGNMENT = 64

# Numbers of panels that are worth a second thread.
LARGE = 1 << 17


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
    parallel_for(_FILL.address, np.array(words, np.int64), panels.numbers, UNUSED, UNUSED, UNUSED, count)
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


def _turned(emit: Emit, vectors: list[Any]) -> list[Any]:
    """The rows of a square, given its columns: halves that are interleaved, again and again."""
    count = len(vectors)
    lanes = [lane for pair in zip(range(count), range(count, 2 * count), strict=True) for lane in pair]
    low, high = (ir.Constant(INTS, part) for part in (lanes[:count], lanes[count:]))
    for _ in range(count.bit_length() - 1):
        pairs = list(zip(vectors[: count // 2], vectors[count // 2 :], strict=True))
        vectors = [emit.builder.shuffle_vector(x, y, mask) for x, y in pairs for mask in (low, high)]
    return vectors


@instruction(*[types.int64] * 5)
def _square(emit: Emit, target: Any, apart: Any, source: Any, by_column: Any, factors: Any) -> None:
    """As many columns as a vector has lanes, of as many rows that lie side by side."""
    scale = emit.load(factors)
    places = [emit.at(source, emit.builder.mul(by_column, emit.i64(i))) for i in range(LANES)]
    for i, row in enumerate(_turned(emit, [emit.load(place) for place in places])):
        emit.store(emit.multiply(row, scale), emit.at(target, emit.builder.mul(apart, emit.i64(i))))


@instruction(*[types.int64] * 3)
def _line(emit: Emit, target: Any, source: Any, factors: Any) -> None:
    """As many columns as a vector has lanes, side by side, of one row."""
    emit.store(emit.multiply(emit.load(source), emit.load(factors)), target)


@device
def _block(
    target: int, width: int, count: int, rows: int, source: int, by_column: int, by_row: int, factors: int
) -> None:
    """Some rows of a panel."""
    for first in range(0, width, LANES):
        start, at, scale = source + first * by_column, target + 4 * first, factors + 4 * first
        whole = first + LANES <= count
        if whole and by_row == 4 and rows == LANES:
            _square(at, 4 * width, start, by_column, scale)
            continue
        for k in range(rows):
            row = at + 4 * k * width
            if whole and by_column == 4:
                _line(row, start + k * by_row, scale)
                continue
            for j in range(LANES):
                if first + j < count:
                    store_f32(row, j, load_f32(start + j * by_column + k * by_row, 0) * load_f32(scale, j))
                else:
                    store_f32(row, j, np.float32(0))


def _fill(call: int) -> None:
    """Copy what the panels hold, a unit for each."""
    job, out, _, _, _, counter = load_args(call)
    taps, depth, columns = load_i64(job, 4), load_i64(job, 5), load_i64(job, 6)
    by_group, by_column, by_tap, by_row = (
        load_i64(job, 7),
        load_i64(job, 8),
        load_i64(job, 9),
        load_i64(job, 10),
    )
    while True:
        unit = fetch_add(counter)
        if unit >= load_i64(job, 0):
            break
        entry = load_i64(job, 1) + 8 * WORDS * unit
        width, column = load_i64(entry, 1) * LANES, load_i64(entry, 3)
        count = width - LANES + load_i64(entry, 2)
        group = column // columns
        source = load_i64(job, 2) + group * by_group + (column - group * columns) * by_column
        for tap in range(taps):
            for first in range(0, depth, LANES):
                rows = min(LANES, depth - first)
                target = out + load_i64(entry, 0) + 4 * (tap * depth + first) * width
                start = source + tap * by_tap + first * by_row
                _block(target, width, count, rows, start, by_column, by_row, load_i64(job, 3) + 4 * column)


_FILL = Task(_fill)


def aligned(size: int) -> Array:
    """So many f32, not yet set, that begin where a line of the cache does."""
    raw = np.empty(4 * size + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + 4 * size].view(np.float32)
