"""Attention with products of bf16 and sums of f32: queries, keys, values and the terms of softmax are rounded."""

from __future__ import annotations

from ..codegen.language import device
from ..codegen.vectors import LANES
from ._attention import blocked_task
from ._attention_panels import next_panel, pack_transposed, panels_product
from ._bf16_panels import pair_rows
from ._bf16_tile import bf16_panel, round_row
from ._gemm_tile import WIDE
from ._rows import copy_row

__all__ = ["BLOCKED_BF16"]


@device
def _panel(  # noqa: PLR0913 (values in registers)
    vectors: int, rows: int, places: int, step: int, zeros: int, taps: int, count: int, depth: int, panel: int, out: int,
    stride: int, bias: int, bias_stride: int, other: int, last: int, low: float, high: float,
) -> None:  # fmt: skip
    """Multiply rows by a panel; the result is f32."""
    bf16_panel(
        vectors, rows, places, step, zeros, taps, count, depth, panel, out, stride, bias, bias_stride, other, last, low,
        high, 0, 0,
    )  # fmt: skip


@device
def _words(count: int) -> int:
    return (count + 1) // 2


@device
def _round(row: int, count: int, out: int) -> int:
    """Round a row, also in place; an odd number is followed by a zero."""
    round_row(row, count, out, 2 * _words(count))
    return out


@device
def _pack_keys(x: int, stride: int, rows: int, width: int, out: int, spare: int) -> None:
    """Pack keys as the columns of panels: words of rounded rows are what a column has one below the other."""
    words = _words(width)
    for row in range(rows):
        _round(x + row * stride, width, spare + 4 * words * row)
    pack_transposed(spare, 4 * words, rows, words, out)


@device
def _pack_values(x: int, stride: int, rows: int, width: int, out: int, spare: int, zeros: int) -> None:
    """Pack values as rows of panels, two rows in one of words."""
    done, second_spare = 0, spare + 4 * WIDE * LANES
    while done < width:
        vectors, columns = next_panel(width - done)
        for row in range(0, rows, 2):
            first = x + row * stride + 4 * done
            second = first + stride if row + 1 < rows else zeros
            if columns < vectors * LANES:  # vectors would reach beyond the row
                copy_row(first, columns, spare)
                copy_row(second, columns, second_spare)
                first, second = spare, second_spare
            pair_rows(out, first, second, vectors * LANES)
            out += 4 * LANES * vectors
        done += columns


BLOCKED_BF16 = blocked_task(
    "_blocked_bf16", _words, panels_product(_panel), _pack_keys, _pack_values, _round
)  # fmt: skip
