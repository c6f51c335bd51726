"""Compressed matrices in panels, and how their codes are put there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.compressed import Compressed, Grouped
from ...ir.element import ElementType as E
from ...ir.tensor import Array
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
# Codes without a sign are stored with these subtracted, as their zero points are: sums cancel less.
_SHIFTS = {E.u4: 8, E.u8: 128}
# Panels that are made at a time.
_STEP = 8
_NONE = np.empty(0, np.float32)


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
    scale = np.zeros((count, groups, COLUMNS), np.float32)
    shift = _SHIFTS.get(weights.element, 0)
    has_zero = weights.zero is not None or shift
    zero = np.zeros((count, groups, COLUMNS) if has_zero else 0, np.float32)
    for first, part in weights.blocks(rows, _STEP * COLUMNS):
        panel = first // COLUMNS
        _put(kind, _stored(weights.element, part), codes[panel : panel + _STEP])
        for i in range(0, len(part.scale), COLUMNS):
            place, some = panel + i // COLUMNS, slice(i, i + COLUMNS)
            scale[place, :, : len(part.scale[some])] = part.scale[some].T
            if has_zero:
                points = _NONE if part.zero is None else part.zero[some].astype(np.float32).T
                zero[place, :, : len(part.scale[some])] = (points if part.zero is not None else 0) - np.float32(shift)
    return PackedPanels(kind, codes, scale, zero, _table(weights.element), depth, outputs)


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


def _stored(element: E, part: Grouped) -> Array:
    """Codes ``[outputs, inputs]`` as they are put into panels: u8 or u16."""
    codes = part.codes.reshape(len(part.codes), -1)
    if element in (E.f8e4m3, E.f8e5m2):
        return codes.astype(np.float16).view(np.uint16)
    if element in (E.f16, E.bf16):
        return codes.view(np.uint16) if codes.flags.c_contiguous else np.ascontiguousarray(codes).view(np.uint16)
    raw = codes.view(np.uint8)
    if element is E.i4:
        return (raw ^ 8) & 15
    if element is E.u2:
        return raw + 8
    return raw ^ 128 if element is E.u8 else raw


def _put(kind: Kind, codes: Array, panels: Array) -> None:
    codes = np.ascontiguousarray(codes)
    if kind in (Kind.NIBBLE, Kind.TABLE):
        _put_nibbles(codes, panels)
    else:
        _put_whole(codes, panels.view(codes.dtype))


@kernel
def _put_nibbles(codes: Array, panels: Array) -> None:
    outputs, depth = codes.shape
    for panel in range(len(panels)):
        for k in range(depth):
            for byte in range(COLUMNS // 2):
                low = panel * COLUMNS + byte // LANES * 2 * LANES + byte % LANES
                high = low + LANES
                first = codes[low, k] & 15 if low < outputs else 8
                second = codes[high, k] & 15 if high < outputs else 8
                panels[panel, k, byte] = first | second << 4


@kernel
def _put_whole(codes: Array, panels: Array) -> None:
    outputs, depth = codes.shape
    for panel in range(len(panels)):
        for k in range(depth):
            for column in range(COLUMNS):
                output = panel * COLUMNS + column
                panels[panel, k, column] = codes[output, k] if output < outputs else 0
