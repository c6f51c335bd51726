"""Padding and number of the windows of a convolution, computed once for each shape of the data."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from ...ops.window import Pads, SlidingWindow

__all__ = ["WindowFit", "window_fit"]


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
