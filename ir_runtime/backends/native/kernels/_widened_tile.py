"""GEMM tiles of rows of f32 by columns of bf16, which registers widen to f32: half as much is read as for columns of f32.

Products and sums are f32. Widening takes as long as the products of one row, so these are tiles for few rows, which wait
for the columns to be read.
"""

from __future__ import annotations

from ..codegen.bf16 import high_of_pairs, low_of_pairs
from ..codegen.language import routine
from ..codegen.vectors import F32, INTS, Emit, Value
from ._gemm_tile import PANEL_KINDS, WordProduct, panel_instruction, store_f32_tile

__all__ = ["widened_panel"]


def _factors(emit: Emit, line: Value, along: Value, word: int) -> list[Value]:
    """Broadcast the two numbers of a row that are multiplied with the words of columns at ``along``."""
    start = emit.at(emit.at(line, emit.builder.mul(along, emit.i64(2))), 8 * word)
    return [emit.splat(emit.load(emit.at(start, place), F32)) for place in (0, 4)]


def _add_products(emit: Emit, total: Value, factors: list[Value], words: Value) -> Value:
    for factor, half in zip(factors, (low_of_pairs, high_of_pairs), strict=True):
        total = emit.fma(factor, half(emit, words), total)
    return total


_panel = panel_instruction(WordProduct(INTS, _factors, _add_products, store_f32_tile))


@routine(*PANEL_KINDS)
def widened_panel(  # noqa: PLR0913 (values in registers)
    vectors: int, rows: int, places: int, step: int, zeros: int, taps: int, count: int, depth: int, panel: int, out: int,
    stride: int, bias: int, bias_stride: int, other: int, last: int, low: float, high: float,
) -> None:  # fmt: skip
    """Multiply rows of f32 by a panel of bf16; a tap has ``2 * depth`` numbers, other parameters are as for `gemm_panel`."""
    _panel(vectors, rows, places, step, zeros, taps, count, depth, panel, out, stride, bias, bias_stride, other, last, low, high)  # fmt: skip
