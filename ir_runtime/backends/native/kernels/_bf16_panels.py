"""Columns in bf16: matrices in panels as those of f32, with the numbers of two rows in each 32-bit word."""

from __future__ import annotations

import numpy as np

from ...._util.cached import cached_property
from ....ir.tensor import Array
from ..codegen.bf16 import as_bf16
from ..codegen.language import device, instruction, types
from ..codegen.vectors import INTS, LANES, Emit, Value, splat_bits
from ._gemm_tile import WIDE
from ._pack_panels import pack_block, pack_task, packed_by
from ._panels import PackedPanels

__all__ = ["Bf16Panels", "pack_bf16_panels", "pair_rows"]

_EXPONENT = np.uint16(0x7F80)


class Bf16Panels(PackedPanels):
    """A packed matrix of bf16; rows of an odd number are followed by zeros."""

    @cached_property
    def is_finite(self) -> bool:
        """Whether all numbers are finite: then products with zeros may be left out."""
        return not bool((self.numbers.view(np.uint16) & _EXPONENT == _EXPONENT).any())


@instruction(returns=types.int64)
def _zeroed_block(emit: Emit) -> Value:
    """Return the address of zeros for `LANES` rows of the widest panel, on the stack."""
    return emit.stack_words(LANES * LANES * WIDE // 2)


@instruction(*[types.int64] * 4)
def pair_rows(emit: Emit, target: Value, first: Value, second: Value, width: Value) -> None:
    """Round two rows, and store their numbers in turn."""
    builder = emit.builder
    with emit.loop(builder.sdiv(width, emit.i64(LANES))) as (i, _, _following):
        offset = builder.mul(i, emit.i64(4 * LANES))
        low, high = (
            builder.zext(as_bf16(emit, emit.load(emit.at(row, offset))), INTS) for row in (first, second)
        )
        above = builder.shl(high, splat_bits(16))
        emit.store(builder.or_(low, above), emit.at(target, offset))


@device
def _pack_pairs(
    target: int, width: int, count: int, rows: int, source: int, by_column: int, by_row: int, factors: int
) -> None:
    """Pack some rows of a panel."""
    block = _zeroed_block()
    pack_block(block, width, count, rows, source, by_column, by_row, factors)
    for row in range(0, rows, 2):
        at = block + 4 * row * width
        pair_rows(target + 2 * row * width, at, at + 4 * width, width)


_PACK_PAIRS = pack_task("_pack_pairs", _pack_pairs, 2)


def pack_bf16_panels(
    filters: Array, scale: Array | None, bias: Array | None, across: int = 0
) -> PackedPanels:
    """Pack matrices, one for each group; parameters as those of `pack_panels`. Scaled columns are rounded."""
    found = packed_by(_PACK_PAIRS, filters, -(-filters.shape[3] // 2), scale, bias, across)
    return Bf16Panels(found.numbers, found.bias, found.table)
