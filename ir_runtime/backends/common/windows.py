"""Windows of convolutions: padding and number, computed once for each shape of the data, and filters of deformed ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from ...ir.tensor import Array, Value
from ...ops.convolution import DeformableConvolutionBase
from ...ops.window import Pads, SlidingWindow
from .layout import is_f32

__all__ = ["filters_of", "window_fit", "WindowFit"]


class WindowFit(NamedTuple):
    """The padding and the number of windows for data of one shape."""

    pads: Pads
    out: tuple[int, ...]


def window_fit(op: SlidingWindow, kernel: tuple[int, ...]) -> Callable[[tuple[int, ...]], WindowFit]:
    """Return a function from the lengths of the data to the `WindowFit`; it raises if no window fits."""

    @lru_cache(maxsize=64)
    def fit(lengths: tuple[int, ...]) -> WindowFit:
        return WindowFit(op.pads(lengths, kernel), op.windows(lengths, kernel))

    return fit


RANK = 4


def filters_of(
    op: DeformableConvolutionBase, data: Value, offsets: Value, filters: Value, *mask: Value
) -> Array | None:
    """Return the filters of such a convolution, ``None`` for others."""
    w = filters.known()
    if op.group != 1 or w is None or not w.size or not is_f32(data, offsets, filters, *mask):
        return None
    return w if all(value.shape.rank == RANK for value in (data, offsets, *mask)) else None
