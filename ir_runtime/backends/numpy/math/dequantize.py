"""Dequantize compressed matrices in NumPy: quantized values in panels of columns, runs of rows at a time.

A run has so few rows that its numbers stay in the second cache from the first step to the product. Codes of
4 bits lie four by four, one of each quarter of a run: each quarter is unpacked by one or two calls. Rows of a
scale or a zero point are laid side by side first, for NumPy takes twice as long where inner loops are shorter
than its buffer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from ....cached import cached_property
from ....ir.compressed import Compressed
from ....ir.element import ElementType as E
from ....ir.tensor import Array
from ...common.layout import LOOP

__all__ = [
    "BLOCK",
    "Form",
    "LookedUp",
    "Quarters",
    "Room",
    "Runs",
    "Step",
    "Whole",
    "along",
    "packed",
    "places",
]

# Rows of a run at most, and columns of a panel: together as many numbers as are unpacked at a time.
RUN, WIDTH = 128, 1024
BLOCK = RUN * WIDTH
# Columns of all panels but the last are a multiple of this, whole vectors.
GRAIN = 16

Step: TypeAlias = tuple[np.ufunc, Array]
"""What to do to numbers, with a row for each run ``[runs, columns]``, or one number."""


class Room:
    """Memory to unpack in; for one thread."""

    def __init__(self) -> None:
        self.small = np.empty(BLOCK, np.int16)
        self.other = np.empty(BLOCK, np.float32)
        self.tile = np.empty(BLOCK, np.float32)


@dataclass(frozen=True)
class Runs:
    """How rows are stored: each group in pieces of at most `RUN`, of a multiple of 4; what they lack is zero."""

    groups: int
    size: int
    """Rows of a group in the file."""

    @cached_property
    def pieces(self) -> int:
        """Runs of a group."""
        return -(-self.size // RUN)

    @cached_property
    def length(self) -> int:
        """Rows of a run, but the last of a group may have fewer."""
        return -(-self.size // self.pieces)

    @cached_property
    def stored(self) -> int:
        """Rows of each run as stored."""
        return -(-self.length // 4) * 4

    @cached_property
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
    def empty(self, runs: int, stored: int, columns: int) -> Array:
        """What to keep of so many codes."""

    @abstractmethod
    def store(self, codes: Array) -> Array:
        """What to keep of codes; of columns in even number."""

    @abstractmethod
    def numbers(self, kept: Array, steps: Sequence[Step], out: Array, room: Room) -> None:
        """Write what the codes of some runs stand for, once each step has been taken."""


class Counted(Form):
    """Codes that are whole numbers. Steps whose rows are int16 are taken in int16, in half the time."""

    @abstractmethod
    def codes(self, kept: Array, out: Array) -> None:
        """Write codes as int16."""

    def real(self, kept: Array, out: Array, room: Room) -> None:
        """Write codes as f32."""
        codes = room.small[: out.size].reshape(out.shape)
        self.codes(kept, codes)
        np.copyto(out, codes)

    def numbers(self, kept: Array, steps: Sequence[Step], out: Array, room: Room) -> None:
        whole = [step for step in steps if step[1].dtype == np.int16]
        if whole:
            codes = room.small[: out.size].reshape(out.shape)
            self.codes(kept, codes)
            for ufunc, rows in whole:
                along(ufunc, codes, rows, room)
            np.copyto(out, codes)
        else:
            self.real(kept, out, room)
        for ufunc, rows in steps[len(whole) :]:
            along(ufunc, out, rows, room)


class Quarters(Counted):
    """Codes of 4 bits from 0 to 15, one of each quarter of a run in 16 bits."""

    def empty(self, runs: int, stored: int, columns: int) -> Array:
        return np.empty((runs, stored // 4, columns), np.uint16)

    def store(self, codes: Array) -> Array:
        runs, stored, columns = codes.shape
        parts = codes.reshape(runs, 4, stored // 4, columns)
        both = np.empty((runs, stored // 4, columns, 2), np.uint8)
        both[..., 0] = parts[:, 0] | parts[:, 1] << 4
        both[..., 1] = parts[:, 2] | parts[:, 3] << 4
        return both.view("<u2")[..., 0]

    def codes(self, kept: Array, out: Array) -> None:
        runs, quarter, columns = kept.shape
        parts = out.view(np.uint16).reshape(runs, 4, quarter, columns)
        np.bitwise_and(kept, 15, out=parts[:, 0])
        for index in (1, 2, 3):
            np.right_shift(kept, 4 * index, out=parts[:, index])
        np.bitwise_and(parts[:, 1:3], 15, out=parts[:, 1:3])


@dataclass(frozen=True)
class Whole(Counted):
    """Codes of 8 bits, with or without a sign."""

    kind: type[np.int8 | np.uint8]

    def empty(self, runs: int, stored: int, columns: int) -> Array:
        return np.empty((runs, stored, columns), np.uint8)

    def store(self, codes: Array) -> Array:
        return codes

    def codes(self, kept: Array, out: Array) -> None:
        np.copyto(out, kept.view(self.kind))

    def real(self, kept: Array, out: Array, room: Room) -> None:
        self.codes(kept, out)


class LookedUp(Form):
    """Codes of 4 bits that stand for any numbers: those of two columns beside each other are one byte."""

    def __init__(self, table: Array) -> None:
        both = np.empty((16, 16, 2), np.float32)
        both[..., 0], both[..., 1] = table, table[:, None]
        self._pairs = both.view(np.float64).reshape(-1)
        """For each byte both numbers, as if they were one: so NumPy moves them together."""

    def empty(self, runs: int, stored: int, columns: int) -> Array:
        return np.empty((runs, stored, columns // 2), np.uint8)

    def store(self, codes: Array) -> Array:
        return np.asarray(codes[..., ::2] | codes[..., 1::2] << 4)

    def numbers(self, kept: Array, steps: Sequence[Step], out: Array, room: Room) -> None:
        # Any mode but this would check, and NumPy then writes to memory of its own first.
        np.take(self._pairs, kept, out=out.view(np.float64), mode="clip")
        for ufunc, rows in steps:
            along(ufunc, out, rows, room)


def along(ufunc: np.ufunc, block: Array, rows: Array, room: Room) -> None:
    """Apply a ufunc in place to a contiguous block ``[runs, stored, columns]`` and a row for each run, or a scalar."""
    if rows.dtype != block.dtype:
        rows = rows.astype(block.dtype)
    if not rows.ndim:
        ufunc(block, rows, out=block)
        return
    runs, stored, columns = block.shape
    times = _times(stored, columns)
    tile = room.tile.view(block.dtype)[: runs * times * columns].reshape(runs, times, columns)
    np.copyto(tile, rows[:, None])
    wide = block.reshape(runs, stored // times, times * columns)
    ufunc(wide, tile.reshape(runs, 1, -1), out=wide)


@lru_cache
def _times(stored: int, columns: int) -> int:
    """How many equal rows to lay side by side, of as many as are stored."""
    return max(n for n in range(1, stored + 1) if stored % n == 0 and n <= max(LOOP // columns, 1))


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
