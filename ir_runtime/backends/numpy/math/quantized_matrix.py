"""Products with quantized matrices, which are dequantized block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ....ir.tensor import Array
from ...common.epilogue import RowEpilogue
from ..parallel import parallel_for
from .dequantize import BLOCK_SIZE, DequantizeScratch, RowBlocks, Step, StorageFormat, apply_rows
from .gemm import apply_epilogue

__all__ = ["QuantizedMatrix", "QuantizedPanel"]

# To dequantize a number takes as long as this many multiplications of a GEMM.
DEQUANTIZE_COST = 24
# With this many rows, larger blocks are dequantized at a time: accumulators are then read and written less often. With
# fewer, all are short calls of NumPy, after each of which threads wait for the GIL: two took 1.4 times as long as one
# for a token of a Llama.
MANY_ROWS, LARGE_BLOCK = 16, 1 << 19


@dataclass(frozen=True)
class QuantizedPanel:
    """A panel of columns of a matrix.

    Args:
        place: the columns of the panel.
        packed: their quantized values.
        steps: the steps that dequantize them, before rounding.
        scale: factors after rounding, for each block ``[blocks, columns]``; ``None`` for 1.
    """

    place: slice
    packed: Array
    steps: tuple[Step, ...]
    scale: Array | None


@dataclass(frozen=True)
class QuantizedMatrix:
    """A quantized matrix, cut into panels of columns.

    Args:
        columns: the number of columns of the product.
        blocks: how rows are stored.
        storage: how quantized values are stored.
        panels: the panels.
        dropped_bits: how many bits of the f32 mantissa are rounded off by the file's arithmetic; 0 for none.
        gain: a factor for each column of the result, or one for all.
    """

    columns: int
    blocks: RowBlocks
    storage: StorageFormat
    panels: tuple[QuantizedPanel, ...]
    dropped_bits: int
    gain: Array

    def dequantized(self) -> Array:
        """Return the matrix as f32, ``[depth, columns]``."""
        rows = np.concatenate([np.arange(first, last) for first, last in self.blocks.stored_rows()])
        numbers = np.empty((len(rows), self.columns), np.float32)
        for panel in self.panels:
            width = panel.place.stop - panel.place.start
            stored = np.empty((self.blocks.count, self.blocks.stored, width + width % 2), np.float32)
            self._dequantize(panel, slice(0, self.blocks.count), stored, DequantizeScratch(), scaled=True)
            gain = self.gain[panel.place] if self.gain.ndim else self.gain
            np.multiply(stored.reshape(-1, stored.shape[2])[rows, :width], gain, out=numbers[:, panel.place])
        return numbers

    def multiply(self, x: Array, _: Array, epilogue: RowEpilogue) -> Array:
        """Multiply rows by the matrix, and apply the epilogue."""
        rows = self.blocks.pad_rows(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]))
        y = np.empty((len(rows), self.columns), np.float32)
        if count := len(rows):
            cost = (count + DEQUANTIZE_COST) * rows.shape[1] * self.columns
            size = cost if count >= MANY_ROWS else 0
            parallel_for(lambda panel: self._multiply(rows, panel, y[:, panel.place]), self.panels, size)
        apply_epilogue(y, epilogue)
        return y.reshape(*x.shape[:-1], self.columns)

    def _multiply(self, rows: Array, panel: QuantizedPanel, out: Array) -> None:
        columns, scratch = out.shape[1] + out.shape[1] % 2, DequantizeScratch()
        max_blocks = self._blocks_at_once(columns, BLOCK_SIZE if len(rows) < MANY_ROWS else LARGE_BLOCK)
        memory = np.empty((min(max_blocks, self.blocks.count), self.blocks.stored, columns), np.float32)
        for first in range(0, self.blocks.count, max_blocks):
            some = slice(first, min(first + max_blocks, self.blocks.count))
            numbers = memory[: some.stop - first]
            found = self._product(rows, panel, some, numbers, scratch)[:, : out.shape[1]]
            if first:
                out += found
            else:
                out[...] = found
        out *= self.gain[panel.place] if self.gain.ndim else self.gain

    def _product(
        self, rows: Array, panel: QuantizedPanel, some: slice, numbers: Array, scratch: DequantizeScratch
    ) -> Array:
        """Return the partial product of some blocks. With few rows, scales are applied afterwards, if rounding allows."""
        stored = self.blocks.stored
        scale_after = panel.scale is not None and len(rows) < MANY_ROWS
        self._dequantize(panel, some, numbers, scratch, scaled=not scale_after)
        selected = rows[:, some.start * stored : some.stop * stored]
        if not scale_after or panel.scale is None:
            return np.asarray(np.matmul(selected, numbers.reshape(selected.shape[1], -1)))
        scale = panel.scale[some].astype(np.float32)
        if len(scale) == 1:
            return np.asarray(np.matmul(selected, numbers[0]) * scale)
        by_block = selected.reshape(len(rows), -1, stored).swapaxes(0, 1)
        return np.asarray(np.add.reduce(np.matmul(by_block, numbers) * scale[:, None], axis=0))

    def _dequantize(
        self, panel: QuantizedPanel, some: slice, out: Array, scratch: DequantizeScratch, scaled: bool
    ) -> None:
        """Dequantize some blocks ``[blocks, stored, columns]``, except for `gain`, and for scales unless ``scaled``."""
        max_blocks = self._blocks_at_once(out.shape[2], BLOCK_SIZE)
        for first in range(some.start, some.stop, max_blocks):
            part = slice(first, min(first + max_blocks, some.stop))
            numbers = out[first - some.start : part.stop - some.start]
            steps = [(ufunc, _rows_of(rows, part)) for ufunc, rows in panel.steps]
            self.storage.dequantize(panel.packed[part], steps, numbers, scratch)
            if self.dropped_bits:
                _round(numbers, self.dropped_bits, scratch)
            if scaled and panel.scale is not None:
                apply_rows(np.multiply, numbers, panel.scale[part], scratch)

    def _blocks_at_once(self, columns: int, max_size: int) -> int:
        """Return the number of blocks of at most this size."""
        return max(max_size // (self.blocks.stored * columns), 1)


def _rows_of(rows: Array, blocks: slice) -> Array:
    return rows[blocks] if rows.ndim else rows


def _round(numbers: Array, dropped_bits: int, scratch: DequantizeScratch) -> None:
    """Round to this many bits less than f32 has, ties to even, and divide by two to that power.

    ``x + x / 2**dropped`` is rounded where ``x / 2**dropped`` ends, and subtracting ``x`` again is exact.
    That holds for numbers that have two bits less than f32 themselves, as products with scales have.
    """
    f32 = scratch.f32[: numbers.size].reshape(numbers.shape)
    np.multiply(numbers, np.float32(1 + 2.0**-dropped_bits), out=f32)
    np.subtract(f32, numbers, out=numbers)
