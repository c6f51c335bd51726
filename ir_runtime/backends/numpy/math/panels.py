"""GEMM with a constant packed matrix, in tiles so small that BLAS does not pack them again.

For larger products BLAS first packs both matrices into the order of its micro-kernels, constant or not: a tenth of the
time with hundreds of rows, most of it with a few. On processors with AVX-512, OpenBLAS has small-matrix kernels that do
not pack, for up to `UNPACKED_LIMIT` multiplications. So the matrix is packed into panels of a few columns when the model
is compiled, and tiles have as many rows as that limit allows; NumPy loops over all tiles in one call. Nor do two threads
pack the same matrix twice.

With other micro-kernels, all columns are one panel, and all rows one tile. So they are where panels are too deep for Intel's
processors, which multiply twice as much in a cycle as the L2 cache delivers to kernels that do not pack.
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
from ...core.processor import is_intel
from ..threading.parallel import defer

__all__ = ["TILED", "WIDTH", "Panels", "tiled_product"]

# With AVX-512, OpenBLAS has kernels that do not pack, for up to this many multiplications.
TILED = AVX512
UNPACKED_LIMIT = 10**6
# The most rows of a panel: on Intel's processors, it stays in the L1 cache, with the rows of a tile (20 KiB of 48).
MAX_DEPTH = 160 if is_intel() else UNPACKED_LIMIT
# Columns of a panel: two vectors of 16. A tile then has 12 rows or more for up to 2600 channels.
WIDTH = 32
# Elements of panels that stay in the L2 cache while all rows are multiplied.
CACHED_SIZE = 1 << 17
# Rows of a micro-kernel.
MICRO_ROWS = 6
# Elements that are packed at once: some milliseconds, for which other threads may have to wait.
PACK_SIZE = 1 << 21
# Columns that are copied together.
COPY_COLUMNS = 128


Write: TypeAlias = Callable[[slice, Array], None]
"""Writes some columns of a matrix into an array ``[..., panel, depth, column]``."""


class Panels:
    """A constant matrix ``[depth, columns]``, or a stack of them, packed into panels; the last may be narrower.

    The panels are filled by the end of the compilation.
    """

    def __init__(
        self, shape: tuple[int, ...], write: Write, source: Array, tiled: bool | None = None
    ) -> None:
        """Allocate the panels, which several threads fill chunk by chunk.

        Args:
            shape: ``[..., depth, columns]``, none of them 0.
            write: writes some of the columns, f32.
            source: the constant that they are packed from; its pages of a mapped file are released afterwards.
            tiled: whether to use panels; by default, whether BLAS has kernels that do not pack, and they are not too deep.
        """
        *stack, self.depth, self.columns = shape
        self.size = self.depth * self.columns
        """Multiplications for each row."""
        tiled = TILED and self.depth <= MAX_DEPTH if tiled is None else tiled
        if not tiled or UNPACKED_LIMIT // (self.depth * WIDTH) < MICRO_ROWS:
            self.width, self._max_tile_rows = self.columns, 0
        else:
            self.width = min(WIDTH, self.columns)
            self._max_tile_rows = UNPACKED_LIMIT // (self.depth * self.width)
        whole, rest = divmod(self.columns, self.width)
        self._panels = np.empty((*stack, whole, self.depth, self.width), np.float32)
        self._rest = np.empty((*stack, 1, self.depth, rest), np.float32) if rest else None
        self.count = whole + (self._rest is not None)
        """The number of panels."""
        self.is_tiled = bool(self._max_tile_rows)
        """Whether it is multiplied as it is packed; else BLAS packs it again in every call."""
        defer(lambda chunk: write(*chunk), self._pack_chunks(), partial(let_go, source))

    @classmethod
    def of(cls, matrix: Array, source: Array, tiled: bool | None = None) -> Panels:
        """Pack a matrix ``[..., depth, columns]`` of any memory layout."""
        return cls(matrix.shape, partial(_copy, matrix), source, tiled)

    def _pack_chunks(self) -> list[tuple[slice, Array]]:
        """Return slices of columns, and the panels to write them to."""
        whole = self._panels.shape[-3]
        max_rows = max(PACK_SIZE // (self._panels.size // whole), 1)
        starts = range(0, whole, max_rows)
        parts = [self._panels[..., start : start + max_rows, :, :] for start in starts]
        chunks = [
            (slice(start * self.width, (start + part.shape[-3]) * self.width), part)
            for start, part in zip(starts, parts, strict=True)
        ]
        return chunks if self._rest is None else [*chunks, (slice(whole * self.width, None), self._rest)]

    def multiply(self, rows: Array, out: Array, panels: slice = slice(None)) -> None:
        """Compute ``rows @ matrix`` into ``out``, or only the columns of some panels; for a stack, one by one."""
        first, last, _ = panels.indices(self.count)
        if (first, last) == (0, self._panels.shape[-3]) and self._is_one_call(rows):
            np.matmul(rows, self._panels, out=out.reshape(len(rows), last, self.width).swapaxes(0, 1))
            return
        replay(self.tape(rows, out[..., first * self.width : last * self.width], panels))

    def multiply_columns(self, rows: Array, out: Array, columns: slice) -> None:
        """Compute some columns of the product; with several panels, these begin with a panel."""
        replay(self.tape_of_columns(rows, out, columns))

    def _is_one_call(self, rows: Array) -> bool:
        """Return whether a tape for all panels would have one call, so that making it takes longer than the call."""
        few = not self._max_tile_rows or len(rows) <= self._max_tile_rows
        return self._rest is None and self._panels.ndim == 3 and len(rows) > 0 and few

    def tape_of_columns(self, rows: Array, out: Array, columns: slice) -> Tape:
        """Return the calls that compute some columns; with several panels, these begin with a panel."""
        if self.count > 1:
            panels = slice(columns.start // self.width, -(-columns.stop // self.width))
            return self.tape(rows, out, panels)
        calls = self._calls(rows.shape[-2], 0, 1)
        panel = self._panels[..., columns]
        return [
            _matmul_call(rows[..., call.rows, :], panel, out[..., call.rows, :], call.tile_rows, 1)
            for call in calls
        ]

    def tape(self, rows: Array, out: Array, panels: slice = slice(None)) -> Tape:
        """Return the calls that multiply; ``out`` has the columns of those panels only."""
        tape = Tape()
        first, last, _ = panels.indices(self.count)
        whole = self._panels.shape[-3]
        edge = (whole - first) * self.width
        for rows_of_call, tile_rows, part, panels_at_once in self._calls(
            rows.shape[-2], first, min(last, whole)
        ):
            columns = slice((part.start - first) * self.width, (part.stop - first) * self.width)
            some = self._panels[..., part, :, :]
            tape.append(
                _matmul_call(
                    rows[..., rows_of_call, :],
                    some,
                    out[..., rows_of_call, columns],
                    tile_rows,
                    panels_at_once,
                )
            )
        if last > whole and self._rest is not None:
            for rows_of_call, tile_rows, _, _ in self._calls(rows.shape[-2], 0, 1):
                tape.append(
                    _matmul_call(
                        rows[..., rows_of_call, :], self._rest, out[..., rows_of_call, edge:], tile_rows, 1
                    )
                )
        return tape

    def _calls(self, count: int, first: int, last: int) -> tuple[GemmCall, ...]:
        return _split_calls(
            count, first, last, self._max_tile_rows, max(CACHED_SIZE // (self.depth * self.width), 1)
        )


class GemmCall(NamedTuple):
    """The rows and panels of one call."""

    rows: slice
    tile_rows: int
    """Rows of a tile."""
    panels: slice
    panels_at_once: int
    """Panels that are multiplied with all tiles before the next panels."""


@lru_cache(maxsize=4096)
def _split_calls(count: int, first: int, last: int, max_rows: int, max_panels: int) -> tuple[GemmCall, ...]:
    """Split the product of this many rows and some panels into calls.

    Args:
        count: the number of rows.
        first: the first panel.
        last: the panel behind the last.
        max_rows: the most rows of a tile, or 0 for all.
        max_panels: panels that stay in the cache.
    """
    if not count or first >= last:
        return ()
    tile_rows = _tile_rows(count, max_rows)
    whole = count // tile_rows * tile_rows
    if 0 < count - whole <= max_rows - tile_rows:
        whole -= tile_rows  # a single row would take as long as several
    groups = [(slice(first, last), last - first)]
    if count > tile_rows:
        groups = _panel_groups(first, last, max_panels, separate=whole < count)
    parts = [(slice(0, whole), tile_rows), (slice(whole, count), count - whole)]
    return tuple(
        GemmCall(rows_of_call, height, panels, panels_at_once)
        for panels, panels_at_once in groups
        for rows_of_call, height in parts
        if rows_of_call.start < rows_of_call.stop
    )


def _tile_rows(count: int, max_rows: int) -> int:
    """Return the rows of a tile: a divisor of all, or multiples of a micro-kernel's rows of about equal size."""
    if not max_rows or count <= max_rows:
        return count
    even = next((n for n in range(max_rows, max_rows // 2, -1) if count % n == 0), 0)
    if even >= 2 * MICRO_ROWS:
        return even
    max_rows = max_rows // MICRO_ROWS * MICRO_ROWS or max_rows
    each = -(-count // -(-count // max_rows))
    return min(-(-each // MICRO_ROWS) * MICRO_ROWS, max_rows)


def _panel_groups(first: int, last: int, max_panels: int, separate: bool) -> list[tuple[slice, int]]:
    """Group panels, at most this many of about equal size; one call for each, or as few calls as possible."""
    count = last - first
    each = -(-count // -(-count // max_panels))
    if separate:
        return [(slice(at, min(at + each, last)), min(each, last - at)) for at in range(first, last, each)]
    edge = last - count % each
    groups = [(slice(first, edge), each), (slice(edge, last), last - edge)]
    return [group for group in groups if group[1]]


def _matmul_call(rows: Array, panels: Array, out: Array, tile_rows: int, panels_at_once: int) -> Call:
    """Multiply tiles of rows by panels ``[..., panel, depth, column]``: NumPy loops over groups, tiles and panels."""
    *stack, count, depth, width = panels.shape
    tiles = rows.reshape(*stack, 1, -1, 1, tile_rows, depth)
    some = panels.reshape(*stack, count // panels_at_once, 1, panels_at_once, depth, width)
    places = out.reshape(*stack, tiles.shape[-4], tile_rows, count // panels_at_once, panels_at_once, width)
    order = [*range(len(stack)), *(len(stack) + axis for axis in (2, 0, 3, 1, 4))]
    return np.matmul, (tiles, some, places.transpose(order))


def tiled_product(matrix: Array, columns: Array, out: Array) -> Tape:
    """Return the calls that compute ``matrix @ columns`` of a small matrix and many columns, some of them at a time."""
    rows, depth = matrix.shape
    count, tape = columns.shape[1], Tape()
    width = UNPACKED_LIMIT // matrix.size // WIDTH * WIDTH if TILED else count
    whole = count // max(width, 1) * width
    if whole:
        some = columns[:, :whole].reshape(depth, -1, width).transpose(1, 0, 2)
        tape.append((np.matmul, (matrix, some, out[:, :whole].reshape(rows, -1, width).transpose(1, 0, 2))))
    if whole < count:
        tape.append((np.matmul, (matrix, columns[:, whole:], out[:, whole:])))
    return tape


def _copy(matrix: Array, columns: slice, out: Array) -> None:
    """Copy columns of ``[..., depth, columns]`` into ``[..., panel, depth, column]``."""
    some = matrix[..., columns]
    width = out.shape[-1]
    panels = some.reshape(*some.shape[:-1], -1, width).swapaxes(-2, -3)
    # The cache lines of transposed rows are still in the cache when the rest of them is read.
    for start in range(0, width, COPY_COLUMNS):
        out[..., start : start + COPY_COLUMNS] = panels[..., start : start + COPY_COLUMNS]
