"""Dequantize matrices with NumPy: quantized values in panels of columns, some blocks of rows at a time.

A block has so few rows that its numbers stay in the L2 cache from unpacking to the product. Four values of 4 bits, one
of each quarter of a block, share 16 bits: each quarter is unpacked by one or two calls. Rows of scales or zero points
are repeated first, since NumPy takes twice as long where inner loops are shorter than its buffer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from ...._util.forks import cached_property
from ....ir.element import ElementType as E
from ....ir.quantized_weights import QuantizedWeights
from ....ir.tensor import Array
from ...common.layout import INNER_LOOP

__all__ = [
    "apply_rows",
    "BLOCK_SIZE",
    "DequantizeScratch",
    "Int4Format",
    "Int8Format",
    "LookupFormat",
    "panel_columns",
    "quantized_blocks",
    "RowBlocks",
    "Step",
    "StorageFormat",
]

# The most rows of a block, and columns of a panel: together as many numbers as are dequantized at a time.
BLOCK_ROWS, PANEL_WIDTH = 128, 1024
BLOCK_SIZE = BLOCK_ROWS * PANEL_WIDTH
# Columns of all panels but the last are a multiple of this: whole vectors.
COLUMN_ALIGNMENT = 16

Step: TypeAlias = tuple[np.ufunc, Array]
"""A ufunc to apply, with a row for each block ``[blocks, columns]``, or a scalar."""


class DequantizeScratch:
    """Scratch memory of one thread."""

    def __init__(self) -> None:
        self.int16 = np.empty(BLOCK_SIZE, np.int16)
        self.f32 = np.empty(BLOCK_SIZE, np.float32)
        self.repeated = np.empty(BLOCK_SIZE, np.float32)


@dataclass(frozen=True)
class RowBlocks:
    """How rows are stored: each group in blocks of at most `BLOCK_ROWS`, padded with zeros to a multiple of 4."""

    groups: int
    size: int
    """Rows of a group in the file."""

    @cached_property
    def blocks_per_group(self) -> int:
        """The number of blocks of a group."""
        return -(-self.size // BLOCK_ROWS)

    @cached_property
    def length(self) -> int:
        """Rows of a block; the last of a group may have fewer."""
        return -(-self.size // self.blocks_per_group)

    @cached_property
    def stored(self) -> int:
        """Rows of each block as stored."""
        return -(-self.length // 4) * 4

    @cached_property
    def count(self) -> int:
        """The number of blocks."""
        return self.groups * self.blocks_per_group

    def pad_rows(self, rows: Array) -> Array:
        """Pad ``[..., depth]`` to ``[..., count * stored]`` with zeros, as the rows are stored."""
        *outer, depth = rows.shape
        if depth == self.count * self.stored:
            return np.ascontiguousarray(rows)
        filled = np.zeros((*outer, self.groups, self.blocks_per_group * self.length), rows.dtype)
        filled[..., : self.size] = rows.reshape(*outer, self.groups, self.size)
        wide = np.zeros((*outer, self.count, self.stored), rows.dtype)
        wide[..., : self.length] = filled.reshape(*outer, self.count, self.length)
        return wide.reshape(*outer, self.count * self.stored)

    def rows(self) -> Iterator[tuple[int, int]]:
        """Yield the first row of each block in the file, and the one after its last."""
        for group in range(self.groups):
            for start in range(0, self.size, self.length):
                yield group * self.size + start, group * self.size + min(start + self.length, self.size)

    def stored_rows(self) -> Iterator[tuple[int, int]]:
        """Yield the first row of each block as stored, and the one after its last that is not padding."""
        for block, (first, last) in enumerate(self.rows()):
            yield block * self.stored, block * self.stored + last - first


class StorageFormat(ABC):
    """How quantized values, bytes ``[blocks, stored, columns]``, are stored and dequantized."""

    @abstractmethod
    def allocate(self, blocks: int, stored: int, columns: int) -> Array:
        """Allocate storage for this many values."""

    @abstractmethod
    def pack(self, values: Array) -> Array:
        """Pack values; the number of columns is even."""

    @abstractmethod
    def dequantize(
        self, packed: Array, steps: Sequence[Step], out: Array, scratch: DequantizeScratch
    ) -> None:
        """Write the numbers of some blocks, after applying each step."""


class IntegerFormat(StorageFormat):
    """Quantized integers. Steps whose rows are int16 are computed in int16, in half the time."""

    @abstractmethod
    def unpack(self, packed: Array, out: Array) -> None:
        """Write values as int16."""

    def unpack_f32(self, packed: Array, out: Array, scratch: DequantizeScratch) -> None:
        """Write values as f32."""
        values = scratch.int16[: out.size].reshape(out.shape)
        self.unpack(packed, values)
        np.copyto(out, values)

    def dequantize(
        self, packed: Array, steps: Sequence[Step], out: Array, scratch: DequantizeScratch
    ) -> None:
        int16_steps = [step for step in steps if step[1].dtype == np.int16]
        if int16_steps:
            values = scratch.int16[: out.size].reshape(out.shape)
            self.unpack(packed, values)
            for ufunc, rows in int16_steps:
                apply_rows(ufunc, values, rows, scratch)
            np.copyto(out, values)
        else:
            self.unpack_f32(packed, out, scratch)
        for ufunc, rows in steps[len(int16_steps) :]:
            apply_rows(ufunc, out, rows, scratch)


class Int4Format(IntegerFormat):
    """Integers of 4 bits from 0 to 15, four of them, one of each quarter of a block, in 16 bits."""

    def allocate(self, blocks: int, stored: int, columns: int) -> Array:
        return np.empty((blocks, stored // 4, columns), np.uint16)

    def pack(self, values: Array) -> Array:
        blocks, stored, columns = values.shape
        quarters = values.reshape(blocks, 4, stored // 4, columns)
        both = np.empty((blocks, stored // 4, columns, 2), np.uint8)
        both[..., 0] = quarters[:, 0] | quarters[:, 1] << 4
        both[..., 1] = quarters[:, 2] | quarters[:, 3] << 4
        return both.view("<u2")[..., 0]

    def unpack(self, packed: Array, out: Array) -> None:
        blocks, quarter, columns = packed.shape
        quarters = out.view(np.uint16).reshape(blocks, 4, quarter, columns)
        np.bitwise_and(packed, 15, out=quarters[:, 0])
        for index in (1, 2, 3):
            np.right_shift(packed, 4 * index, out=quarters[:, index])
        np.bitwise_and(quarters[:, 1:3], 15, out=quarters[:, 1:3])


@dataclass(frozen=True)
class Int8Format(IntegerFormat):
    """Integers of 8 bits, signed or unsigned."""

    kind: type[np.int8 | np.uint8]

    def allocate(self, blocks: int, stored: int, columns: int) -> Array:
        return np.empty((blocks, stored, columns), np.uint8)

    def pack(self, values: Array) -> Array:
        return values

    def unpack(self, packed: Array, out: Array) -> None:
        np.copyto(out, packed.view(self.kind))

    def unpack_f32(self, packed: Array, out: Array, scratch: DequantizeScratch) -> None:
        self.unpack(packed, out)


class LookupFormat(StorageFormat):
    """Indices of 4 bits into a table of numbers (such as nf4): those of two adjacent columns are one byte."""

    def __init__(self, table: Array) -> None:
        both = np.empty((16, 16, 2), np.float32)
        both[..., 0], both[..., 1] = table, table[:, None]
        self._pairs = both.view(np.float64).reshape(-1)
        """Both numbers of each byte as one f64, so that NumPy copies them together."""

    def allocate(self, blocks: int, stored: int, columns: int) -> Array:
        return np.empty((blocks, stored, columns // 2), np.uint8)

    def pack(self, values: Array) -> Array:
        return np.asarray(values[..., ::2] | values[..., 1::2] << 4)

    def dequantize(
        self, packed: Array, steps: Sequence[Step], out: Array, scratch: DequantizeScratch
    ) -> None:
        # With other modes, NumPy checks the indices and writes to its own buffer first.
        np.take(self._pairs, packed, out=out.view(np.float64), mode="clip")
        for ufunc, rows in steps:
            apply_rows(ufunc, out, rows, scratch)


def apply_rows(ufunc: np.ufunc, block: Array, rows: Array, scratch: DequantizeScratch) -> None:
    """Apply a ufunc in place to a contiguous block ``[blocks, stored, columns]`` and a row for each block, or a scalar."""
    if rows.dtype != block.dtype:
        rows = rows.astype(block.dtype)
    if not rows.ndim:
        ufunc(block, rows, out=block)
        return
    blocks, stored, columns = block.shape
    times = _repeats(stored, columns)
    repeated = scratch.repeated.view(block.dtype)[: blocks * times * columns].reshape(blocks, times, columns)
    np.copyto(repeated, rows[:, None])
    wide = block.reshape(blocks, stored // times, times * columns)
    ufunc(wide, repeated.reshape(blocks, 1, -1), out=wide)


@lru_cache
def _repeats(stored: int, columns: int) -> int:
    """Return how often to repeat a row: a divisor of the stored rows."""
    return max(n for n in range(1, stored + 1) if stored % n == 0 and n <= max(INNER_LOOP // columns, 1))


def panel_columns(columns: int) -> list[slice]:
    """Return the columns of each panel: an even number of panels, so that two threads have equal work."""
    pairs = -(-columns // (2 * PANEL_WIDTH))
    width = -(-columns // (2 * pairs * COLUMN_ALIGNMENT)) * COLUMN_ALIGNMENT
    return [slice(start, min(start + width, columns)) for start in range(0, columns, width)]


def quantized_blocks(
    weights: QuantizedWeights, transposed: bool, blocks: RowBlocks, panels: Sequence[slice]
) -> Iterator[tuple[int, int, Array]]:
    """Yield the index of a panel, that of a block, and the values from there on as bytes ``[blocks, stored, columns]``.

    Args:
        weights: the matrix.
        transposed: whether the columns of the product are the rows of the weights.
        blocks: how rows are stored.
        panels: the columns of each panel.
    """
    if transposed:
        for index, place in enumerate(panels):
            values = blocks.pad_rows(_quantized_bytes(weights, place.start, place.stop))
            yield index, 0, _pad_to_even(values.reshape(-1, blocks.count, blocks.stored).transpose(1, 2, 0))
        return
    for run, (first, last) in enumerate(blocks.rows()):
        values = np.zeros((1, blocks.stored, weights.shape[1]), np.uint8)
        values[0, : last - first] = _quantized_bytes(weights, first, last)
        for index, place in enumerate(panels):
            yield index, run, _pad_to_even(values[..., place])


def _quantized_bytes(weights: QuantizedWeights, first: int, last: int) -> Array:
    """Return the values of some rows of the weights, one in a byte; those of i4 are biased by 8, so that they are unsigned."""
    values = weights.rows_of(first, last).view(np.uint8)
    if weights.element is E.i4:
        return values & 15 ^ 8
    return values


def _pad_to_even(values: Array) -> Array:
    """Append a column of zeros if the number of columns is odd."""
    return np.pad(values, ((0, 0), (0, 0), (0, 1))) if values.shape[2] % 2 else values
