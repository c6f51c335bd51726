"""Compressed matrices as NumPy unpacks them: codes in panels of columns, runs of rows at a time.

A run has so few rows that its numbers stay in the second cache from the first step to the product. Codes of
4 bits share their bytes so that the lower halves of a run are its first rows, and the upper halves the rest:
each half is unpacked by one call. Rows of a scale or a zero point are laid side by side first, for NumPy takes
twice as long where inner loops are shorter than its buffer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...ir.compressed import Compressed
from ...ir.element import ElementType as E
from ...ir.tensor import Array
from ._memory import LOOP

__all__ = ["BLOCK", "Form", "Halves", "LookedUp", "Room", "Runs", "Whole", "along", "packed", "places"]

# Rows of a run at most, and columns of a panel: together as many numbers as are unpacked at a time.
RUN, WIDTH = 128, 512
BLOCK = RUN * WIDTH
# Columns of all panels but the last are a multiple of this, whole vectors.
GRAIN = 16


class Room:
    """Memory to unpack in; for one thread."""

    def __init__(self) -> None:
        self.small = np.empty(BLOCK, np.int8)
        self.other = np.empty(BLOCK, np.float32)
        self.tile = np.empty(BLOCK, np.float32)


@dataclass(frozen=True)
class Runs:
    """How rows are stored: each group in pieces of at most `RUN`, of an even length; what they lack is zero."""

    groups: int
    size: int
    """Rows of a group in the file."""

    @property
    def pieces(self) -> int:
        """Runs of a group."""
        return -(-self.size // RUN)

    @property
    def length(self) -> int:
        """Rows of a run, but the last of a group may have fewer."""
        return -(-self.size // self.pieces)

    @property
    def stored(self) -> int:
        """Rows of each run as stored."""
        return self.length + self.length % 2

    @property
    def count(self) -> int:
        """Runs in all."""
        return self.groups * self.pieces

    def spread(self, rows: Array) -> Array:
        """``[..., depth]`` as ``[..., count * stored]``, with zeros where that has gaps."""
        *outer, depth = rows.shape
        if depth == self.count * self.stored:
            return np.ascontiguousarray(rows)
        filled = np.zeros((*outer, self.groups, self.pieces * self.length), rows.dtype)
        filled[..., : self.size] = rows.reshape(*outer, self.groups, self.size)
        wide = np.zeros((*outer, self.count, self.stored), rows.dtype)
        wide[..., : self.length] = filled.reshape(*outer, self.count, self.length)
        return wide.reshape(*outer, self.count * self.stored)

    def rows(self) -> Iterator[tuple[int, int]]:
        """The rows of each run in the file: first and last."""
        for group in range(self.groups):
            for start in range(0, self.size, self.length):
                yield group * self.size + start, group * self.size + min(start + self.length, self.size)


class Form(ABC):
    """How codes are stored, and become numbers. Codes are bytes ``[runs, stored, columns]``."""

    @abstractmethod
    def shape(self, stored: int, columns: int) -> tuple[int, int]:
        """Of the bytes of a run."""

    @abstractmethod
    def store(self, codes: Array) -> Array:
        """What to keep of codes; rows and columns are even numbers."""

    @abstractmethod
    def numbers(self, kept: Array, zero: Array | None, out: Array, room: Room) -> None:
        """Write what the codes of some runs stand for, less the zero points."""


class Halves(Form):
    """Codes of 4 bits, whole numbers from 0 to 15. Zero points that are whole numbers of 8 bits cost a quarter."""

    def shape(self, stored: int, columns: int) -> tuple[int, int]:
        return stored // 2, columns

    def store(self, codes: Array) -> Array:
        half = codes.shape[1] // 2
        return np.asarray(codes[:, :half] | codes[:, half:] << 4)

    def numbers(self, kept: Array, zero: Array | None, out: Array, room: Room) -> None:
        runs, half, columns = kept.shape
        codes = room.small[: out.size].reshape(out.shape)
        bytes = codes.view(np.uint8).reshape(runs, 2, half, columns)
        np.bitwise_and(kept, 15, out=bytes[:, 0])
        np.right_shift(kept, 4, out=bytes[:, 1])
        if zero is not None and zero.dtype == codes.dtype:
            along(np.subtract, codes, zero, room)
            zero = None
        np.copyto(out, codes)
        if zero is not None:
            along(np.subtract, out, zero, room)


@dataclass(frozen=True)
class Whole(Form):
    """Codes of 8 bits, whole numbers with or without a sign."""

    kind: type[np.int8 | np.uint8]

    def shape(self, stored: int, columns: int) -> tuple[int, int]:
        return stored, columns

    def store(self, codes: Array) -> Array:
        return codes

    def numbers(self, kept: Array, zero: Array | None, out: Array, room: Room) -> None:
        np.copyto(out, kept.view(self.kind))
        if zero is not None:
            along(np.subtract, out, zero, room)


class LookedUp(Form):
    """Codes of 4 bits that stand for any numbers: those of two columns beside each other are one byte."""

    def __init__(self, table: Array) -> None:
        both = np.empty((16, 16, 2), np.float32)
        both[..., 0], both[..., 1] = table, table[:, None]
        self._pairs = both.view(np.float64).reshape(-1)
        """For each byte both numbers, as if they were one: so NumPy moves them together."""

    def shape(self, stored: int, columns: int) -> tuple[int, int]:
        return stored, columns // 2

    def store(self, codes: Array) -> Array:
        return np.asarray(codes[..., ::2] | codes[..., 1::2] << 4)

    def numbers(self, kept: Array, zero: Array | None, out: Array, room: Room) -> None:
        # Any mode but this would check, and NumPy then writes to memory of its own first.
        np.take(self._pairs, kept, out=out.view(np.float64), mode="clip")


def along(ufunc: np.ufunc, block: Array, rows: Array, room: Room) -> None:
    """Apply a ufunc in place to a contiguous block ``[runs, stored, columns]`` and a row for each run, or a scalar."""
    rows = rows.astype(block.dtype, copy=False)
    if not rows.ndim:
        ufunc(block, rows, out=block)
        return
    runs, stored, columns = block.shape
    times = max(LOOP // columns, 1)
    while stored % times:
        times -= 1
    tile = room.tile.view(block.dtype)[: runs * times * columns].reshape(runs, times, columns)
    np.copyto(tile, rows[:, None])
    wide = block.reshape(runs, stored // times, times * columns)
    ufunc(wide, tile.reshape(runs, 1, -1), out=wide)


def places(columns: int) -> list[slice]:
    """Columns of each panel: an even number of panels, so that two threads have the same to do."""
    pairs = -(-columns // (2 * WIDTH))
    width = -(-columns // (2 * pairs * GRAIN)) * GRAIN
    return [slice(start, min(start + width, columns)) for start in range(0, columns, width)]


def packed(
    weights: Compressed, by_rows: bool, runs: Runs, panels: Sequence[slice]
) -> Iterator[tuple[int, int, Array]]:
    """The codes as bytes ``[runs, stored, columns]``, some at a time: of which panel, from which run on.

    Args:
        weights: the matrix.
        by_rows: whether the columns of the product are its rows.
        runs: how rows are stored.
        panels: which columns are in each.
    """
    if by_rows:
        for index, place in enumerate(panels):
            codes = runs.spread(_bits(weights, place.start, place.stop))
            yield index, 0, _even(codes.reshape(-1, runs.count, runs.stored).transpose(1, 2, 0))
        return
    for run, (first, last) in enumerate(runs.rows()):
        codes = np.zeros((1, runs.stored, weights.shape[1]), np.uint8)
        codes[0, : last - first] = _bits(weights, first, last)
        for index, place in enumerate(panels):
            yield index, run, _even(codes[..., place])


def _bits(weights: Compressed, first: int, last: int) -> Array:
    """Codes of some rows of the weights, one a byte; those of i4 begin with that of the lowest number."""
    codes = weights.codes_of(first, last).view(np.uint8)
    if weights.element is E.i4:
        return codes & 15 ^ 8
    return codes


def _even(codes: Array) -> Array:
    """The same with a last column of zeros if their number is odd."""
    return np.pad(codes, ((0, 0), (0, 0), (0, 1))) if codes.shape[2] % 2 else codes
