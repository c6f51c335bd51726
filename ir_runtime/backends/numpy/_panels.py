"""Products with a constant matrix, in tiles so small that BLAS multiplies them where they are.

For larger products BLAS first packs both matrices into the order of its kernels, constant or not: a tenth
of the time with hundreds of rows, most of it with a few. On processors with AVX-512, OpenBLAS has kernels
that do without for up to `UNPACKED` multiplications. So the matrix is cut into panels of a few columns,
when the model is compiled, and rows are taken as many at a time as that allows; NumPy goes over all the
tiles in one call. Two threads then do not pack the same twice, either.

With other kernels, all columns are one panel, and all rows one tile.
"""

from __future__ import annotations

import numpy as np

from ...ir.tensor import Array
from ._blas import kernels
from ._memory import transposed

__all__ = ["Panels"]

# Multiplications up to which OpenBLAS packs nothing, and the processors for which it has kernels for that.
UNPACKED = 10**6
PROCESSORS = {"SkylakeX", "Cooperlake", "SapphireRapids"}
# Columns of a panel: two vectors of 16. A tile then has 12 rows or more for up to 2600 channels.
WIDTH = 32
# Fewer rows in a tile leave registers of the kernels empty.
LEAST = 4


class Panels:
    """A constant matrix ``[depth, columns]``, cut into panels; the last one may be narrower."""

    def __init__(self, matrix: Array, tiled: bool | None = None) -> None:
        """Copy a matrix that lies in any order.

        Args:
            matrix: f32, with at least one element.
            tiled: whether to cut it; by default, whether BLAS has kernels for that.
        """
        self.depth, self.columns = matrix.shape
        self.size = matrix.size
        tiled = TILED if tiled is None else tiled
        if not tiled or UNPACKED // (self.depth * WIDTH) < LEAST:
            self.width, self._most = self.columns, 0
        else:
            self.width = min(WIDTH, self.columns)
            self._most = UNPACKED // (self.depth * self.width)
        whole = self.columns // self.width
        self._panels = _cut(matrix[:, : whole * self.width], self.width)
        rest = matrix[:, whole * self.width :]
        self._rest = np.ascontiguousarray(rest) if rest.size else None
        self.count = whole + (self._rest is not None)
        """How many panels there are."""

    def multiply(self, rows: Array, out: Array, panels: slice = slice(None)) -> None:
        """``rows @ matrix`` into ``out``, or only the columns of some panels."""
        count = len(rows)
        if not count:
            return
        step = self._step(count)
        whole = count // step * step
        self._tiles(rows[:whole], out[:whole], step, panels)
        if whole < count:
            self._tiles(rows[whole:], out[whole:], count - whole, panels)

    def _step(self, count: int) -> int:
        """Rows of a tile: all tiles but the last are the same, and that one is not much smaller."""
        if not self._most:
            return count
        tiles = -(-count // self._most)
        return -(-count // tiles)

    def _tiles(self, rows: Array, out: Array, step: int, panels: slice) -> None:
        first, last, _ = panels.indices(self.count)
        some = self._panels[first:last]
        tiles = rows.reshape(-1, 1, step, self.depth)
        if len(some):
            start, end = first * self.width, (first + len(some)) * self.width
            target = out[:, start:end].reshape(-1, step, len(some), self.width)
            np.matmul(tiles, some, out=target.transpose(0, 2, 1, 3))
        if self._rest is not None and last == self.count:
            others = out[:, len(self._panels) * self.width :]
            np.matmul(tiles[:, 0], self._rest, out=others.reshape(-1, step, others.shape[1]))


def _cut(matrix: Array, width: int) -> Array:
    """``[panel, depth, column]``, contiguous."""
    depth, columns = matrix.shape
    if width == columns:
        whole = (
            transposed(matrix.T)
            if matrix.T.flags.c_contiguous
            else np.require(matrix, requirements=["C", "A"])
        )
        return whole[None]
    panels = np.empty((columns // width, depth, width), matrix.dtype)
    for index, panel in enumerate(panels):
        panel[...] = matrix[:, index * width : (index + 1) * width]
    return panels


TILED = kernels() in PROCESSORS
