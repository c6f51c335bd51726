"""Rows times compressed matrices, of which a block at a time is unpacked."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ....ir.tensor import Array
from ...common.epilogue import RowEpilogue
from ..threading.parallel import parallel_for
from .dequantize import BLOCK, Form, Room, Runs, Step, along
from .gemm import apply_epilogue

__all__ = ["CodedMatrix", "Panel"]

# Unpacking a number takes as long as so many multiplications of a product.
UNPACKING = 24
# For so many rows, more is unpacked before it is multiplied: sums that are not finished are then read and
# written less often. For fewer, it is all short calls of NumPy, after each of which threads wait for the
# interpreter: two took 1.4 times as long as one for a token of a Llama.
MANY, LARGE = 16, 1 << 19


@dataclass(frozen=True)
class Panel:
    """Some columns of a matrix.

    Args:
        place: which ones.
        kept: their codes.
        steps: what makes numbers of them that are rounded then.
        scale: factors behind that, for each run ``[runs, columns]``; ``None`` for 1.
    """

    place: slice
    kept: Array
    steps: tuple[Step, ...]
    scale: Array | None


@dataclass(frozen=True)
class CodedMatrix:
    """A compressed matrix, cut into panels of columns.

    Args:
        columns: those of the product.
        runs: how rows are stored.
        form: how codes are stored.
        panels: the codes, and what belongs to them.
        dropped: how many binary digits numbers lose to the file's arithmetic; 0 for none.
        gain: a factor for each column of the result, or for all.
    """

    columns: int
    runs: Runs
    form: Form
    panels: tuple[Panel, ...]
    dropped: int
    gain: Array

    def multiply(self, x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        """Rows times the matrix, finished."""
        rows = self.runs.spread(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]))
        y = np.empty((len(rows), self.columns), np.float32)
        if len(rows):
            size = (len(rows) + UNPACKING) * rows.shape[1] * self.columns if len(rows) >= MANY else 0
            parallel_for(lambda panel: self._multiply(rows, panel, y[:, panel.place]), self.panels, size)
        apply_epilogue(y, epilogue)
        return y.reshape(*x.shape[:-1], self.columns)

    def _multiply(self, rows: Array, panel: Panel, out: Array) -> None:
        columns, room = out.shape[1] + out.shape[1] % 2, Room()
        most = self._at_once(columns, BLOCK if len(rows) < MANY else LARGE)
        memory = np.empty((min(most, self.runs.count), self.runs.stored, columns), np.float32)
        for first in range(0, self.runs.count, most):
            some = slice(first, min(first + most, self.runs.count))
            numbers = memory[: some.stop - first]
            found = self._product(rows, panel, some, numbers, room)[:, : out.shape[1]]
            if first:
                out += found
            else:
                out[...] = found
        out *= self.gain[panel.place] if self.gain.ndim else self.gain

    def _product(self, rows: Array, panel: Panel, some: slice, numbers: Array, room: Room) -> Array:
        """The share of some runs in a product. For a few rows, scales are multiplied afterwards, if they may be."""
        stored = self.runs.stored
        afterwards = panel.scale is not None and len(rows) < MANY
        self._unpack(panel, some, numbers, room, scaled=not afterwards)
        taken = rows[:, some.start * stored : some.stop * stored]
        if not afterwards or panel.scale is None:
            return np.asarray(np.matmul(taken, numbers.reshape(taken.shape[1], -1)))
        scale = panel.scale[some].astype(np.float32)
        if len(scale) == 1:
            return np.asarray(np.matmul(taken, numbers[0]) * scale)
        apart = taken.reshape(len(rows), -1, stored).swapaxes(0, 1)
        return np.asarray(np.add.reduce(np.matmul(apart, numbers) * scale[:, None], axis=0))

    def _unpack(self, panel: Panel, some: slice, out: Array, room: Room, scaled: bool) -> None:
        """The numbers of some runs ``[runs, stored, columns]``, but for `gain`, and scales unless ``scaled``."""
        most = self._at_once(out.shape[2], BLOCK)
        for first in range(some.start, some.stop, most):
            part = slice(first, min(first + most, some.stop))
            numbers = out[first - some.start : part.stop - some.start]
            steps = [(ufunc, _of(rows, part)) for ufunc, rows in panel.steps]
            self.form.numbers(panel.kept[part], steps, numbers, room)
            if self.dropped:
                _round(numbers, self.dropped, room)
            if scaled and panel.scale is not None:
                along(np.multiply, numbers, panel.scale[part], room)

    def _at_once(self, columns: int, most: int) -> int:
        """How many runs have so many numbers."""
        return max(most // (self.runs.stored * columns), 1)


def _of(rows: Array, runs: slice) -> Array:
    return rows[runs] if rows.ndim else rows


def _round(numbers: Array, dropped: int, room: Room) -> None:
    """Round to so many binary digits less than f32 has, ties to even, and divide by two to that power.

    ``x + x / 2**dropped`` is rounded where ``x / 2**dropped`` ends, and taking ``x`` away again is exact.
    That holds for numbers that have two digits less than f32 themselves, as products with scales have.
    """
    other = room.other[: numbers.size].reshape(numbers.shape)
    np.multiply(numbers, np.float32(1 + 2.0**-dropped), out=other)
    np.subtract(other, numbers, out=numbers)
