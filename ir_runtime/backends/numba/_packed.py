"""Compressed matrices in panels, and how their codes are put there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.compressed import Compressed
from ...ir.element import ElementType as E
from ...ir.tensor import Array, Packed
from ...ops._convert import NF4
from ._codes import COLUMNS, Kind, bytes_of_row
from ._compile import kernel
from ._vectors import LANES

__all__ = ["PackedPanels", "pack"]

_KINDS = {
    E.u4: Kind.NIBBLE, E.i4: Kind.NIBBLE, E.u2: Kind.NIBBLE, E.nf4: Kind.TABLE, E.f4e2m1: Kind.TABLE,
    E.u8: Kind.BYTE, E.i8: Kind.BYTE, E.f16: Kind.HALF, E.bf16: Kind.BRAIN, E.f8e4m3: Kind.HALF,
    E.f8e5m2: Kind.HALF,
}  # fmt: skip
# Numbers without a sign are stored with these subtracted, as their zero points are: sums cancel less.
_SHIFTS = {E.u4: 8, E.u8: 128}
# Which bits of a code to flip for that; a nibble has 8 more than the number.
_FLIPS = {E.i4: 8, E.u8: 128}
# Panels that are made at a time.
_STEP = 8
# Bytes of a row at a time: they and what is made of them stay in the first cache.
_RUN = 128


@dataclass(frozen=True)
class PackedPanels:
    """A compressed matrix of ``depth`` rows, in panels.

    Args:
        kind: how the codes are stored.
        codes: the panels, u8.
        scale: ``[panels, groups, columns]``.
        zero: likewise; empty if there are none.
        table: the numbers that 16 codes stand for.
        depth: rows.
        columns: those of the matrix; the last panel may have more.
    """

    kind: Kind
    codes: Array
    scale: Array
    zero: Array
    table: Array
    depth: int
    columns: int

    @property
    def groups(self) -> int:
        """Groups of rows with a scale each."""
        return int(self.scale.shape[1])

    @property
    def panels(self) -> int:
        """How many there are."""
        return len(self.scale)


def pack(weights: Compressed, rows: bool) -> PackedPanels | None:
    """Panels of a matrix whose outputs are its rows, or its columns; ``None`` for types that have no kernel."""
    kind, groups = _KINDS.get(weights.element), weights.groups(rows)
    if kind is None or groups is None:
        return None
    outputs, depth = weights.shape if rows else weights.shape[::-1]
    count = -(-outputs // COLUMNS)
    codes = _aligned(count * depth * bytes_of_row(kind)).reshape(count, depth, -1)
    _fill(kind, weights, rows, codes)
    scale, zero = weights.scales(rows)
    shift = _SHIFTS.get(weights.element, 0)
    if zero is not None or shift:
        zero = np.broadcast_to(np.float32(-shift) if zero is None else zero - np.float32(shift), scale.shape)
    points = np.empty((0, 0, 0), np.float32) if zero is None else _per_panel(zero, count)
    return PackedPanels(
        kind, codes, _per_panel(scale, count), points, _table(weights.element), depth, outputs
    )


def _fill(kind: Kind, weights: Compressed, rows: bool, panels: Array) -> None:
    four, flips = kind in (Kind.NIBBLE, Kind.TABLE), _FLIPS.get(weights.element, 0)
    if four and rows and isinstance(weights.codes, Packed) and weights.shape[1] % 2 == 0:
        raw = weights.codes.raw[: weights.codes.size // 2].reshape(weights.shape[0], -1)
        _put_pairs(raw, 17 * flips, panels)
        return
    for first, some in weights.blocks(rows, _STEP * COLUMNS):
        place = panels[first // COLUMNS : first // COLUMNS + _STEP]
        codes = np.ascontiguousarray(_stored(weights.element, some))
        if four:
            _put_nibbles(codes, flips, place)
        else:
            _put_whole(codes, flips, place.view(codes.dtype))


def _per_panel(numbers: Array, count: int) -> Array:
    """``[outputs, groups]`` as ``[panels, groups, columns]``."""
    outputs, groups = numbers.shape
    full = np.zeros((count * COLUMNS, groups), np.float32)
    full[:outputs] = numbers
    return np.ascontiguousarray(full.reshape(count, COLUMNS, groups).transpose(0, 2, 1))


def _aligned(size: int) -> Array:
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


def _table(element: E) -> Array:
    if element is E.nf4:
        return NF4
    if element is E.f4e2m1:
        return np.arange(16, dtype=np.uint8).view(element.dtype).astype(np.float32)
    return np.arange(-8, 8, dtype=np.float32)


def _stored(element: E, codes: Array) -> Array:
    """Codes as bits: u8 or u16."""
    if element in (E.f8e4m3, E.f8e5m2):
        codes = codes.astype(np.float16)
    codes = codes.view(np.uint16 if codes.itemsize == 2 else np.uint8)
    return codes + np.uint8(8) if element is E.u2 else codes


@kernel
def _put_pairs(raw: Array, flips: int, panels: Array) -> None:
    """Rows of packed nibbles: two rows of a panel at a time."""
    outputs, pairs = raw.shape
    for panel in range(len(panels)):
        for start in range(0, pairs, _RUN):
            for byte in range(COLUMNS // 2):
                low = panel * COLUMNS + byte // LANES * 2 * LANES + byte % LANES
                first, second = min(low, outputs - 1), min(low + LANES, outputs - 1)
                for k in range(start, min(start + _RUN, pairs)):
                    a, b = raw[first, k] ^ flips, raw[second, k] ^ flips
                    panels[panel, 2 * k, byte] = a & 15 | (b & 15) << 4
                    panels[panel, 2 * k + 1, byte] = a >> 4 | b & 240


@kernel
def _put_nibbles(codes: Array, flips: int, panels: Array) -> None:
    outputs, depth = codes.shape
    for panel in range(len(panels)):
        for byte in range(COLUMNS // 2):
            low = panel * COLUMNS + byte // LANES * 2 * LANES + byte % LANES
            first, second = min(low, outputs - 1), min(low + LANES, outputs - 1)
            for k in range(depth):
                a, b = codes[first, k] ^ flips, codes[second, k] ^ flips
                panels[panel, k, byte] = a & 15 | (b & 15) << 4


@kernel
def _put_whole(codes: Array, flips: int, panels: Array) -> None:
    outputs, depth = codes.shape
    for panel in range(len(panels)):
        for column in range(COLUMNS):
            output = min(panel * COLUMNS + column, outputs - 1)
            for k in range(depth):
                panels[panel, k, column] = codes[output, k] ^ flips
