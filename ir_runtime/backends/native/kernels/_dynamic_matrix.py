"""Packed integer matrices for products with activations of 8 bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....ir.array import Packed
from ....ir.pages import let_go
from ....ir.tensor import Array
from ...common.dynamic_quantization import IntegerMatrix
from ..codegen.descriptor import Descriptor, i64
from ..packed_memory import aligned_empty
from ._activation_groups import UNIT
from ._quantized import PANEL_COLUMNS, panel_count

__all__ = ["DynamicJob", "DynamicMatrix", "pack_integers"]

# Columns that are packed at a time.
_BLOCK_COLUMNS = 8 * PANEL_COLUMNS


class DynamicJob(Descriptor):
    """The job of `DYNAMIC_MATMUL`.

    A group of the weights has ``length`` rows in ``parts`` groups of ``part_length`` activations, each of which is stored
    as ``units`` times `UNIT` numbers. Scales and zero points are ``[panels, groups, columns]``; if all zero points are the
    same, their address is 0. The sum of a group of activations is multiplied by ``sum_factor``. The epilogue is 0 for none.
    """

    bits: i64
    rows: i64
    panels: i64
    columns: i64
    groups: i64
    length: i64
    parts: i64
    part_length: i64
    units: i64
    weights: i64
    scales: i64
    zeros: i64
    sum_factor: i64
    column_scale: i64
    bias: i64
    epilogue_words: i64
    epilogue_numbers: i64


@dataclass(frozen=True)
class DynamicMatrix:
    """An integer matrix as kernels read it.

    Args:
        record: the fields of `DynamicJob` that describe it.
        columns: of the product.
        depth: rows of the matrix.
        stored: rows as stored.
        groups: of the activations in a row.
        kept: arrays that ``record`` points to.
    """

    record: dict[str, int]
    columns: int
    depth: int
    stored: int
    groups: int
    kept: tuple[Array, ...]

    @property
    def panels(self) -> int:
        """The number of panels of the product."""
        return panel_count(self.columns)


def pack_integers(matrix: IntegerMatrix, rows: bool) -> DynamicMatrix:
    """Pack a matrix whose outputs are its rows, or its columns. What the file has is not needed any more."""
    weights, groups = matrix.weights, matrix.groups
    outputs, depth = weights.shape if rows else weights.shape[::-1]
    units = -(-groups.size // UNIT)
    stored = groups.groups * groups.parts * units * UNIT
    panels = panel_count(outputs)
    bits = weights.element.bits
    packed = aligned_empty(panels * PANEL_COLUMNS * stored * bits // 32).view(np.uint32).reshape(panels, -1)
    for first, codes in weights.blocks(rows, _BLOCK_COLUMNS):
        unsigned = (codes.view(np.uint8) + np.uint8(matrix.offset)) & np.uint8(2**bits - 1)
        words = _words(unsigned, matrix, units, bits)
        full = np.zeros((panel_count(len(words)) * PANEL_COLUMNS, words.shape[1]), np.uint32)
        full[: len(words)] = words
        place = first // PANEL_COLUMNS
        some = full.reshape(-1, PANEL_COLUMNS, words.shape[1]).transpose(0, 2, 1)
        packed[place : place + len(some)].reshape(some.shape)[...] = some
    let_go(weights.codes.raw if isinstance(weights.codes, Packed) else weights.codes)
    scales, zeros = _panels(matrix.scale), _panels(matrix.zero)
    zero = int(matrix.zero[0, 0])
    is_uniform = bool((matrix.zero == zero).all())
    record = {
        "bits": bits, "panels": panels, "groups": groups.groups, "length": groups.length, "parts": groups.parts,
        "part_length": groups.size, "units": units, "weights": packed.ctypes.data, "scales": scales.ctypes.data,
        "zeros": 0 if is_uniform else zeros.ctypes.data, "sum_factor": -zero if is_uniform else -1,
    }  # fmt: skip
    return DynamicMatrix(
        record, outputs, depth, stored, groups.groups * groups.parts, (packed, scales, zeros)
    )


def _words(codes: Array, matrix: IntegerMatrix, units: int, bits: int) -> Array:
    """Return columns ``[columns, words]`` of four rows a word; of 4 bits, those of two words beside each other."""
    groups = matrix.groups
    wide = np.zeros((len(codes), groups.groups, groups.parts, units * UNIT), np.uint8)
    for part in range(groups.parts):
        start = part * groups.size
        stop = min(start + groups.size, groups.length)
        wide[:, :, part, : stop - start] = codes.reshape(len(codes), groups.groups, -1)[:, :, start:stop]
    words = wide.reshape(len(codes), -1).view("<u4")
    return words if bits == 8 else words[:, ::2] | (words[:, 1::2] << np.uint32(4))


def _panels(rows: Array) -> Array:
    """Return numbers ``[columns, groups]`` as ``[panels, groups, columns of a panel]``."""
    columns, groups = rows.shape
    panels = panel_count(columns)
    full = np.zeros((panels * PANEL_COLUMNS, groups), rows.dtype)
    full[:columns] = rows
    return np.ascontiguousarray(full.reshape(panels, PANEL_COLUMNS, groups).transpose(0, 2, 1))
