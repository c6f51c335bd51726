"""Constant matrices, packed in panels: the columns of a tile side by side, row after row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.tensor import Array
from ._tile import SINGLE, TALL, WIDE
from ._vectors import LANES

__all__ = ["WORDS", "Panels", "aligned", "packed", "split"]

WORDS = 6
"""Numbers for a panel: bytes from the first one, vectors, columns of its last vector, first column of the
result, bytes from the first bias, bytes from the first offset of a tap."""

_ALIGNMENT = 64


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


def packed(groups: list[Array], scale: Array | None, bias: Array | None, across: int = 0) -> Panels:
    """Pack matrices ``[K, N]``, one for each group.

    Args:
        groups: the matrices; of any strides.
        scale: what each column of all groups is multiplied with; ``None`` for 1.
        bias: what is added to each column of all groups; ``None`` for 0.
        across: bytes between the offsets of taps of two groups.
    """
    depth, columns = groups[0].shape
    bias = np.zeros(len(groups) * columns, np.float32) if bias is None else bias
    parts = split(columns)
    widths = [vectors * LANES for _, vectors, _ in parts]
    numbers = aligned(len(groups) * depth * sum(widths))
    biases = aligned(len(groups) * sum(widths))
    table, start, before = [], 0, 0
    for group, matrix in enumerate(groups):
        for (first, vectors, last), width in zip(parts, widths, strict=True):
            count = width - LANES + last
            panel = numbers[start : start + depth * width].reshape(depth, width)
            panel[:, :count] = matrix[:, first : first + count]
            panel[:, count:] = 0
            column = group * columns + first
            if scale is not None:
                panel[:, :count] *= scale[column : column + count]
            biases[before : before + count] = bias[column : column + count]
            biases[before + count : before + width] = 0
            table.append((4 * start, vectors, last, column, 4 * before, group * across))
            start, before = start + panel.size, before + width
    return Panels(numbers, biases, np.array(table, np.int64).reshape(-1, WORDS))


def aligned(size: int) -> Array:
    """So many f32, not yet set, that begin where a line of the cache does."""
    raw = np.empty(4 * size + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + 4 * size].view(np.float32)
