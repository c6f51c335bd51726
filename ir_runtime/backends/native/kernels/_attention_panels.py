"""Packing of keys and values in panels, and products with them."""

from __future__ import annotations

import numpy as np

from ..codegen.language import Device, Routine, device, routine, types
from ..codegen.vectors import LANES
from ._gemm_tile import SINGLE, TALL, WIDE, gemm_panel
from ._rows import copy_padded, copy_row, transpose_part, transpose_square

__all__ = ["multiply_panels", "next_panel", "pack_rows", "pack_transposed", "panels_product", "zero_tail"]


@device
def next_panel(columns: int) -> tuple[int, int]:
    """Return the number of vectors of the next panel, and of its columns, given the number of remaining columns."""
    count = (columns + LANES - 1) // LANES
    vectors = WIDE if count >= WIDE else TALL if count >= TALL else SINGLE
    return vectors, min(columns, vectors * LANES)


@routine(*[types.int64] * 5)
def pack_transposed(x: int, stride: int, rows: int, width: int, out: int) -> None:
    """Pack rows of ``width`` numbers as the columns of panels."""
    done = 0
    while done < rows:
        vectors, columns = next_panel(rows - done)
        apart = 4 * LANES * vectors
        for first in range(0, columns, LANES):
            some = min(LANES, columns - first)
            source, target = x + (done + first) * stride, out + 4 * first
            for k in range(0, width, LANES):
                count = min(LANES, width - k)
                if some == LANES and count == LANES:
                    transpose_square(source + 4 * k, stride, target + k * apart, apart)
                else:
                    transpose_part(source + 4 * k, stride, some, count, target + k * apart, apart)
        out += apart * width
        done += columns


@device
def pack_rows(x: int, stride: int, rows: int, width: int, out: int) -> None:
    """Pack ``rows`` rows of ``width`` columns in panels.

    Unused columns are filled with zeros: arbitrary memory contents, such as addresses, may be subnormal
    numbers, whose products take more than ten times as long.
    """
    done = 0
    while done < width:
        vectors, columns = next_panel(width - done)
        for row in range(rows):
            copy_padded(x + row * stride + 4 * done, columns, out + 4 * LANES * vectors * row)
        out += 4 * LANES * vectors * rows
        done += columns


def panels_product(multiply_panel: Routine | Device[..., None]) -> Device[..., None]:
    """Return a function that multiplies rows by panels of ``length`` words, using ``depth`` of them, up to a column.

    Args:
        multiply_panel: multiplies rows by one panel, like `gemm_panel`.
    """

    def multiply(  # noqa: PLR0913 (values in registers)
        places: int, rows: int, panels: int, length: int, depth: int, columns: int, until: int, offset: int,
        none: int, out: int, stride: int,
    ) -> None:  # fmt: skip
        done = 0
        while done < until:
            vectors, some = next_panel(columns - done)
            last = some - (vectors - 1) * LANES
            multiply_panel(
                vectors, rows, places, 0, 0, offset, 1, depth, panels, out + 4 * done, stride, none, 0, 0, last, -np.inf,
                np.inf,
            )  # fmt: skip
            panels += 4 * LANES * vectors * length
            done += some

    return device(multiply)


multiply_panels = panels_product(gemm_panel)
"""Multiply rows of f32 by panels."""


@device
def zero_tail(row: int, first: int, count: int, none: int) -> None:
    """Zero the elements of a row from ``first`` to ``count``."""
    while first < count:
        some = min(count - first, WIDE * LANES)
        copy_row(none, some, row + 4 * first)
        first += some
