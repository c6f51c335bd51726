"""Padding and output lengths of sliding windows, cached by shape; and the filters of deformable convolutions."""

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
    """The padding, and the number of windows along each spatial axis, for data of one shape."""

    pads: Pads
    out: tuple[int, ...]


def window_fit(op: SlidingWindow, kernel: tuple[int, ...]) -> Callable[[tuple[int, ...]], WindowFit]:
    """Return a cached function from the spatial lengths of the data to a `WindowFit`; it raises if no window fits."""

    @lru_cache(maxsize=64)
    def fit(lengths: tuple[int, ...]) -> WindowFit:
        return WindowFit(op.pads(lengths, kernel), op.windows(lengths, kernel))

    return fit


RANK = 4


def filters_of(
    op: DeformableConvolutionBase, data: Value, offsets: Value, filters: Value, *mask: Value
) -> Array | None:
    """Return the constant filters of a 2-D f32 deformable convolution of one group, or ``None`` if it is unsupported."""
    w = filters.known()
    if op.group != 1 or w is None or not w.size or not is_f32(data, offsets, filters, *mask):
        return None
    return w if all(value.shape.rank == RANK for value in (data, offsets, *mask)) else None
