"""Products with a constant matrix, in tiles so small that BLAS multiplies them where they are.

For larger products BLAS first packs both matrices into the order of its kernels, constant or not: a tenth
of the time with hundreds of rows, most of it with a few. On processors with AVX-512, OpenBLAS has kernels
that do without for up to `UNPACKED` multiplications. So the matrix is cut into panels of a few columns,
when the model is compiled, and rows are taken as many at a time as that allows; NumPy goes over all the
tiles in one call. Two threads then do not pack the same twice, either.

With other kernels, all columns are one panel, and all rows one tile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

import numpy as np

from ....ir.pages import let_go
from ....ir.tensor import Array
from ...common.blas import AVX512
from ...common.tape import Call, Tape, replay
from ..threading.parallel import defer

__all__ = ["TILED", "WIDTH", "Panels", "tiled_product"]

# With AVX-512, OpenBLAS has kernels that pack nothing, for up to so many multiplications.
TILED = AVX512
UNPACKED = 10**6
# Columns of a panel: two vectors of 16. A tile then has 12 rows or more for up to 2600 channels.
WIDTH = 32
# Elements of panels that stay in the second cache while all rows go by.
CACHED = 1 << 17
# Rows that the kernels take at once.
ROWS = 6
# Elements that are packed at once: some milliseconds, as other threads wait that long for each other.
PIECE = 1 << 21
# Columns that are copied together.
BLOCK = 128


Write: TypeAlias = Callable[[slice, Array], None]
"""Writes some columns of a matrix into an array ``[..., panel, depth, column]``."""


class Panels:
    """A constant matrix ``[depth, columns]``, or a stack of them, cut into panels; the last may be narrower.

    They are filled by the time that the model is compiled.
    """

    def __init__(
        self, shape: tuple[int, ...], write: Write, source: Array, tiled: bool | None = None
    ) -> None:
        """Make room for a matrix, which is written into it piece by piece, on several threads.

        Args:
            shape: ``[..., depth, columns]``, none of them 0.
            write: writes some of the columns, f32.
            source: the constant that they are made of; what lies in a mapped file is let go then.
            tiled: whether to cut it; by default, whether BLAS has kernels for that.
        """
        *stack, self.depth, self.columns = shape
        self.size = self.depth * self.columns
        """Multiplications for each row."""
        tiled = TILED if tiled is None else tiled
        if not tiled or UNPACKED // (self.depth * WIDTH) < ROWS:
            self.width, self._most = self.columns, 0
        else:
            self.width = min(WIDTH, self.columns)
            self._most = UNPACKED // (self.depth * self.width)
        whole, rest = divmod(self.columns, self.width)
        self._panels = np.empty((*stack, whole, self.depth, self.width), np.float32)
        self._rest = np.empty((*stack, 1, self.depth, rest), np.float32) if rest else None
        self.count = whole + (self._rest is not None)
        """How many panels there are."""
        defer(lambda piece: write(*piece), self._pieces(), partial(let_go, source))

    @classmethod
    def of(cls, matrix: Array, source: Array, tiled: bool | None = None) -> Panels:
        """Copy a matrix ``[..., depth, columns]`` that lies in any order."""
        return cls(matrix.shape, partial(_copy, matrix), source, tiled)

    def _pieces(self) -> list[tuple[slice, Array]]:
        """Columns, and where to write them."""
        whole = self._panels.shape[-3]
        most = max(PIECE // (self._panels.size // whole), 1)
        starts = range(0, whole, most)
        parts = [self._panels[..., start : start + most, :, :] for start in starts]
        pieces = [
            (slice(start * self.width, (start + part.shape[-3]) * self.width), part)
            for start, part in zip(starts, parts, strict=True)
        ]
        return pieces if self._rest is None else [*pieces, (slice(whole * self.width, None), self._rest)]

    def multiply(self, rows: Array, out: Array, panels: slice = slice(None)) -> None:
        """``rows @ matrix`` into ``out``, or only the columns of some panels; for a stack, one by one."""
        first, last, _ = panels.indices(self.count)
        replay(self.tape(rows, out[..., first * self.width : last * self.width], panels))

    def tape_of_columns(self, rows: Array, out: Array, columns: slice) -> Tape:
        """The calls that make some columns; the first of them begins a panel, if there are several."""
        if self.count > 1:
            panels = slice(columns.start // self.width, -(-columns.stop // self.width))
            return self.tape(rows, out, panels)
        cuts = self._cuts(rows.shape[-2], 0, 1)
        panel = self._panels[..., columns]
        return [_product(rows[..., cut.lines, :], panel, out[..., cut.lines, :], cut.step, 1) for cut in cuts]

    def tape(self, rows: Array, out: Array, panels: slice = slice(None)) -> Tape:
        """The calls that multiply; ``out`` has the columns of those panels only."""
        tape = Tape()
        first, last, _ = panels.indices(self.count)
        whole = self._panels.shape[-3]
        edge = (whole - first) * self.width
        for lines, step, part, together in self._cuts(rows.shape[-2], first, min(last, whole)):
            columns = slice((part.start - first) * self.width, (part.stop - first) * self.width)
            some = self._panels[..., part, :, :]
            tape.append(_product(rows[..., lines, :], some, out[..., lines, columns], step, together))
        if last > whole and self._rest is not None:
            for lines, step, _, _ in self._cuts(rows.shape[-2], 0, 1):
                tape.append(_product(rows[..., lines, :], self._rest, out[..., lines, edge:], step, 1))
        return tape

    def _cuts(self, count: int, first: int, last: int) -> tuple[Cut, ...]:
        return _cut(count, first, last, self._most, max(CACHED // (self.depth * self.width), 1))


class Cut(NamedTuple):
    """What is multiplied with one call."""

    lines: slice
    step: int
    """Rows of a tile."""
    panels: slice
    together: int
    """Panels that meet all the tiles before the next panels do."""


@lru_cache(maxsize=4096)
def _cut(count: int, first: int, last: int, most: int, cached: int) -> tuple[Cut, ...]:
    """For so many rows and some panels: what to multiply with each call.

    Args:
        count: the rows.
        first: the first panel.
        last: the one behind the last.
        most: rows of a tile, or 0 for all.
        cached: panels that stay in the cache.
    """
    if not count or first >= last:
        return ()
    step = _step(count, most)
    whole = count // step * step
    if 0 < count - whole <= most - step:
        whole -= step  # a row alone would take as long as several
    groups = [(slice(first, last), last - first)]
    if count > step:
        groups = _groups(first, last, cached, apart=whole < count)
    parts = [(slice(0, whole), step), (slice(whole, count), count - whole)]
    return tuple(
        Cut(lines, tall, panels, together)
        for panels, together in groups
        for lines, tall in parts
        if lines.start < lines.stop
    )


def _step(count: int, most: int) -> int:
    """Rows of a tile: as many in all, or nearly so and multiples of what the kernels take at once."""
    if not most or count <= most:
        return count
    even = next((n for n in range(most, most // 2, -1) if count % n == 0), 0)
    if even >= 2 * ROWS:
        return even
    most = most // ROWS * ROWS or most
    each = -(-count // -(-count // most))
    return min(-(-each // ROWS) * ROWS, most)


def _groups(first: int, last: int, most: int, apart: bool) -> list[tuple[slice, int]]:
    """Panels in groups of at most so many, of about the same size; each apart, or in as few calls as that takes."""
    count = last - first
    each = -(-count // -(-count // most))
    if apart:
        return [(slice(at, min(at + each, last)), min(each, last - at)) for at in range(first, last, each)]
    edge = last - count % each
    groups = [(slice(first, edge), each), (slice(edge, last), last - edge)]
    return [group for group in groups if group[1]]


def _product(rows: Array, panels: Array, out: Array, step: int, together: int) -> Call:
    """Tiles of rows times panels ``[..., panel, depth, column]``: NumPy loops over groups, tiles, and panels."""
    *stack, count, depth, width = panels.shape
    tiles = rows.reshape(*stack, 1, -1, 1, step, depth)
    some = panels.reshape(*stack, count // together, 1, together, depth, width)
    places = out.reshape(*stack, tiles.shape[-4], step, count // together, together, width)
    order = [*range(len(stack)), *(len(stack) + axis for axis in (2, 0, 3, 1, 4))]
    return np.matmul, (tiles, some, places.transpose(order))


def tiled_product(matrix: Array, columns: Array) -> Array:
    """``matrix @ columns`` of a small matrix and many columns, some of them at a time."""
    rows, depth = matrix.shape
    count = columns.shape[1]
    out = np.empty((rows, count), np.float32)
    width = UNPACKED // matrix.size // WIDTH * WIDTH if TILED else count
    whole = count // max(width, 1) * width
    if whole:
        some = columns[:, :whole].reshape(depth, -1, width).transpose(1, 0, 2)
        np.matmul(matrix, some, out=out[:, :whole].reshape(rows, -1, width).transpose(1, 0, 2))
    if whole < count:
        np.matmul(matrix, columns[:, whole:], out=out[:, whole:])
    return out


def _copy(matrix: Array, columns: slice, out: Array) -> None:
    """Copy columns of ``[..., depth, columns]`` into ``[..., panel, depth, column]``."""
    some = matrix[..., columns]
    width = out.shape[-1]
    apart = some.reshape(*some.shape[:-1], -1, width).swapaxes(-2, -3)
    # Rows that are turned into columns are still in the cache when the rest of their lines is read.
    for start in range(0, width, BLOCK):
        out[..., start : start + BLOCK] = apart[..., start : start + BLOCK]
