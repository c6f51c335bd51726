"""Dequantize matrices with NumPy: quantized values are stored in panels of columns, and dequantized block by block of rows.

A block is small enough that its values stay in the L2 cache from unpacking to the product. Four 4-bit values, one of each
quarter of a block, share a 16-bit word, so that one or two calls unpack a quarter. Rows of scales and zero points are
repeated first, since NumPy takes twice as long if inner loops are shorter than its buffer.
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

# The maximum rows of a block and columns of a panel; their product is the number of values dequantized at a time.
BLOCK_ROWS, PANEL_WIDTH = 128, 1024
BLOCK_SIZE = BLOCK_ROWS * PANEL_WIDTH
# The columns of every panel but the last are a multiple of this, for whole vectors.
COLUMN_ALIGNMENT = 16

Step: TypeAlias = tuple[np.ufunc, Array]
"""A ufunc to apply to blocks, and its second operand: a row for each block, ``[blocks, columns]``, or a scalar."""


class DequantizeScratch:
    """The scratch memory that a thread uses to dequantize."""

    def __init__(self) -> None:
        self.int16 = np.empty(BLOCK_SIZE, np.int16)
        self.f32 = np.empty(BLOCK_SIZE, np.float32)
        self.repeated = np.empty(BLOCK_SIZE, np.float32)


@dataclass(frozen=True)
class RowBlocks:
    """The layout of rows: each group is split into blocks of at most `BLOCK_ROWS`, padded with zeros to a multiple of 4."""

    groups: int
    size: int
    """The number of rows of a group in the file."""

    @cached_property
    def blocks_per_group(self) -> int:
        """The number of blocks in a group."""
        return -(-self.size // BLOCK_ROWS)

    @cached_property
    def length(self) -> int:
        """The number of rows of a block without padding; the last block of a group may have fewer."""
        return -(-self.size // self.blocks_per_group)

    @cached_property
    def stored(self) -> int:
        """The number of rows of a block with padding."""
        return -(-self.length // 4) * 4

    @cached_property
    def count(self) -> int:
        """The number of blocks."""
        return self.groups * self.blocks_per_group

    def pad_rows(self, rows: Array) -> Array:
        """Pad the last axis of ``[..., depth]`` with zeros, like the stored rows: ``[..., count * stored]``."""
        *outer, depth = rows.shape
        if depth == self.count * self.stored:
            return np.ascontiguousarray(rows)
        filled = np.zeros((*outer, self.groups, self.blocks_per_group * self.length), rows.dtype)
        filled[..., : self.size] = rows.reshape(*outer, self.groups, self.size)
        wide = np.zeros((*outer, self.count, self.stored), rows.dtype)
        wide[..., : self.length] = filled.reshape(*outer, self.count, self.length)
        return wide.reshape(*outer, self.count * self.stored)

    def rows(self) -> Iterator[tuple[int, int]]:
        """Yield the range of rows ``(start, stop)`` of each block in the file."""
        for group in range(self.groups):
            for start in range(0, self.size, self.length):
                yield group * self.size + start, group * self.size + min(start + self.length, self.size)

    def stored_rows(self) -> Iterator[tuple[int, int]]:
        """Yield the range of rows ``(start, stop)`` of each block as stored, without padding."""
        for block, (first, last) in enumerate(self.rows()):
            yield block * self.stored, block * self.stored + last - first


class StorageFormat(ABC):
    """A packed format of quantized values ``[blocks, stored, columns]``, u8, and how it is dequantized.

    ``stored`` is the number of rows of a block with padding, as in `RowBlocks`.
    """

    @abstractmethod
    def allocate(self, blocks: int, stored: int, columns: int) -> Array:
        """Allocate packed storage for values ``[blocks, stored, columns]``."""

    @abstractmethod
    def pack(self, values: Array) -> Array:
        """Pack values; their number of columns is even."""

    @abstractmethod
    def dequantize(
        self, packed: Array, steps: Sequence[Step], out: Array, scratch: DequantizeScratch
    ) -> None:
        """Unpack blocks to f32, apply each step, and write the values into ``out``."""


class IntegerFormat(StorageFormat):
    """Quantized integers. Steps with an int16 operand are computed in int16, in half the time."""

    @abstractmethod
    def unpack(self, packed: Array, out: Array) -> None:
        """Unpack blocks into ``out``, as int16."""

    def unpack_f32(self, packed: Array, out: Array, scratch: DequantizeScratch) -> None:
        """Unpack blocks into ``out``, as f32."""
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
    """Unsigned 4-bit integers; four of them, one of each quarter of a block, share a 16-bit word."""

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
    """8-bit integers, signed or unsigned."""

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
    """4-bit indices into a table of values (such as nf4); the indices of two adjacent columns share a byte."""

    def __init__(self, table: Array) -> None:
        both = np.empty((16, 16, 2), np.float32)
        both[..., 0], both[..., 1] = table, table[:, None]
        self._pairs = both.view(np.float64).reshape(-1)
        """The two f32 values of each byte, as an f64, so that NumPy copies both at once."""

    def allocate(self, blocks: int, stored: int, columns: int) -> Array:
        return np.empty((blocks, stored, columns // 2), np.uint8)

    def pack(self, values: Array) -> Array:
        return np.asarray(values[..., ::2] | values[..., 1::2] << 4)

    def dequantize(
        self, packed: Array, steps: Sequence[Step], out: Array, scratch: DequantizeScratch
    ) -> None:
        # In other modes, NumPy checks the indices, and writes to a buffer of its own first.
        np.take(self._pairs, packed, out=out.view(np.float64), mode="clip")
        for ufunc, rows in steps:
            apply_rows(ufunc, out, rows, scratch)


def apply_rows(ufunc: np.ufunc, block: Array, rows: Array, scratch: DequantizeScratch) -> None:
    """Apply a binary ufunc in place to contiguous ``block[blocks, stored, columns]``, with ``rows`` as its second operand.

    Args:
        ufunc: the ufunc.
        block: the values.
        rows: a row for each block, ``[blocks, columns]``, or a scalar.
        scratch: the scratch memory of the thread.
    """
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
    """Return how often to repeat a row to fill an inner loop; a divisor of ``stored``."""
    return max(n for n in range(1, stored + 1) if stored % n == 0 and n <= max(INNER_LOOP // columns, 1))


def panel_columns(columns: int) -> list[slice]:
    """Split columns into panels of equal width, the last of which may be narrower.

    Unless there are few columns, the number of panels is about even, so that two threads have equal work.
    """
    pairs = -(-columns // (2 * PANEL_WIDTH))
    width = -(-columns // (2 * pairs * COLUMN_ALIGNMENT)) * COLUMN_ALIGNMENT
    return [slice(start, min(start + width, columns)) for start in range(0, columns, width)]


def quantized_blocks(
    weights: QuantizedWeights, transposed: bool, blocks: RowBlocks, panels: Sequence[slice]
) -> Iterator[tuple[int, int, Array]]:
    """Yield the quantized values in pieces: the index of a panel, of its first block, and values ``[blocks, stored, columns]``.

    Args:
        weights: the matrix.
        transposed: whether the rows of the weights are the columns of the product.
        blocks: the layout of rows.
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
    """Return the quantized values of rows ``[first, last)`` as bytes; i4 values are biased by 8 to be unsigned."""
    values = weights.rows_of(first, last).view(np.uint8)
    if weights.element is E.i4:
        return values & 15 ^ 8
    return values


def _pad_to_even(values: Array) -> Array:
    """Append a column of zeros if the number of columns is odd."""
    return np.pad(values, ((0, 0), (0, 0), (0, 1))) if values.shape[2] % 2 else values
