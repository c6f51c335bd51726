"""Packed quantized matrices: the bytes of the file if whole vectors can be read, else with padded groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....ir.array import Packed
from ....ir.element import ElementType as E
from ....ir.pages import held
from ....ir.quantized_weights import QuantizedWeights
from ....ir.tensor import Array
from ...common.rounding import ROUNDINGS, dequantized_table, is_exact
from ..codegen.vectors import LANES
from ._quantized import BITS, Storage, panel_count

__all__ = ["PackedMatrix", "pack"]

_STORAGE = {
    E.u4: Storage.LUT4, E.i4: Storage.LUT4, E.u2: Storage.LUT4, E.nf4: Storage.LUT4, E.f4e2m1: Storage.LUT4,
    E.u8: Storage.U8, E.i8: Storage.I8, E.f16: Storage.F16, E.bf16: Storage.BF16, E.f8e4m3: Storage.F16,
    E.f8e5m2: Storage.F16,
}  # fmt: skip
_SMALL_FLOATS = (E.f8e4m3, E.f8e5m2)
_ROUNDED_STORAGE = {
    Storage.I8: Storage.I8_ROUNDED, Storage.U8: Storage.U8_ROUNDED, Storage.F16: Storage.F16_ROUNDED,
}  # fmt: skip
_RANGES = {E.u8: (0.0, 255.0), E.i8: (-128.0, 127.0)}
# Columns that are packed at a time.
_BLOCK_COLUMNS = 512


@dataclass(frozen=True)
class PackedMatrix:
    """A quantized matrix as kernels read it.

    Args:
        kind: the storage format.
        record: the fields of `MatrixRecord` but ``column_scale``.
        columns: of the product.
        groups: of a column.
        size: rows of a group in the file.
        padded: rows of a group as stored; rows after ``size`` must be multiplied with zeros.
        kept: arrays that ``record`` points to.
    """

    kind: Storage
    record: dict[str, int]
    columns: int
    groups: int
    size: int
    padded: int
    kept: tuple[object, ...]

    @property
    def panels(self) -> int:
        """The number of panels of the product."""
        return panel_count(self.columns)

    @property
    def depth(self) -> int:
        """Rows as stored."""
        return self.groups * self.padded

    def pad_rows(self, x: Array) -> Array:
        """Return the rows of the left operand with zeros where groups are padded, contiguous."""
        if self.padded == self.size:
            return np.ascontiguousarray(x)
        wide = np.zeros((len(x), self.groups, self.padded), np.float32)
        wide[:, :, : self.size] = x.reshape(len(x), self.groups, self.size)
        return wide.reshape(len(x), -1)


def pack(weights: QuantizedWeights, rows: bool) -> PackedMatrix | None:
    """Pack a matrix whose outputs are its rows, or its columns; ``None`` if kernels cannot dequantize it exactly."""
    kind, groups, rounding = (
        _STORAGE.get(weights.element),
        weights.groups(rows),
        ROUNDINGS[weights.arithmetic],
    )
    if kind is None or groups is None:
        return None
    if rounding.dropped_bits and weights.scale is not None and kind is not Storage.LUT4:
        if weights.arithmetic is not E.f16 or kind not in _ROUNDED_STORAGE:
            return None
        kind = _ROUNDED_STORAGE[kind]
    scale, zero = weights.scales(rows)
    outputs, depth = weights.shape if rows else weights.shape[::-1]
    size = depth // groups
    padded = -(-size // LANES) * LANES
    values = _packed_values(weights, rows, kind, groups, padded)
    table = _table(weights.element, weights.arithmetic)
    if kind not in (Storage.F16, Storage.BF16) and not is_exact(
        _range(weights.element, values, table), scale, zero, rounding
    ):
        return None
    zeros = np.zeros((1, 1), np.float32) if zero is None else zero
    zeros = np.broadcast_to(zeros, (outputs, groups))
    factor = 1.5 * 2.0**rounding.dropped_bits if rounding.dropped_bits else 0
    steps = np.array([rounding.min_normal, factor], np.float32)  # of `round_mantissa`
    record = {
        "storage": kind, "values": values.ctypes.data, "column_stride": values.strides[0], "table": table.ctypes.data,
        "groups": groups, "group_size": padded, "last_column": outputs - 1, "scale": scale.ctypes.data,
        "scale_column": scale.strides[0], "scale_group": scale.strides[1], "zero": zeros.ctypes.data,
        "zero_column": zeros.strides[0], "zero_group": zeros.strides[1], "rounding": steps.ctypes.data,
    }  # fmt: skip
    return PackedMatrix(kind, record, outputs, groups, size, padded, (values, table, scale, zeros, steps))


def _range(element: E, codes: Array, table: Array) -> tuple[float, float]:
    if element in _RANGES:
        return _RANGES[element]
    numbers = table if _STORAGE[element] is Storage.LUT4 else codes.view(np.float16)
    return float(numbers.min()), float(numbers.max())


def _packed_values(weights: QuantizedWeights, rows: bool, kind: Storage, groups: int, padded: int) -> Array:
    """Return quantized values as ``[outputs, bytes]``."""
    outputs, depth = weights.shape if rows else weights.shape[::-1]
    if rows and groups * padded == depth and weights.element.bits == BITS[kind]:
        if isinstance(weights.codes, Packed):
            return held(weights.codes.raw[: outputs * depth // 2]).reshape(outputs, -1)
        if weights.element.bits >= 8:  # shorter ones have a byte each in an array, and are packed below
            return held(np.ascontiguousarray(weights.codes.reshape(outputs, depth))).view(np.uint8)
    found = np.zeros((outputs, groups * padded * BITS[kind] // 8), np.uint8)
    for first, some in weights.blocks(rows, _BLOCK_COLUMNS):
        found[first : first + len(some)] = _pad_groups(
            _as_bits(weights.element, some), groups, padded, kind is Storage.LUT4
        )
    return found


def _as_bits(element: E, codes: Array) -> Array:
    """Return quantized values as u8 or u16."""
    if element in _SMALL_FLOATS:
        codes = codes.astype(np.float16)
    codes = np.ascontiguousarray(codes)
    return codes.view(np.uint16 if codes.itemsize == 2 else np.uint8)


def _pad_groups(codes: Array, groups: int, padded: int, four: bool) -> Array:
    """Return rows of quantized values as bytes, with zeros after each group."""
    outputs, depth = codes.shape
    wide = np.zeros((outputs, groups, padded), codes.dtype)
    wide[:, :, : depth // groups] = codes.reshape(outputs, groups, -1)
    flat = wide.reshape(outputs, -1)
    return (flat[:, ::2] & 15) | (flat[:, 1::2] << 4) if four else flat.view(np.uint8)


def _table(element: E, arithmetic: E) -> Array:
    """Return the numbers of 4-bit values in the arithmetic of the model; zeros for other formats."""
    if _STORAGE[element] is not Storage.LUT4:
        return np.zeros(16, np.float32)
    return dequantized_table(element, arithmetic)
