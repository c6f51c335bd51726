"""Maps of levels: channels last, padded to whole vectors, with a border of the level that stands for zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....ir.tensor import Array
from ....limits import check_array_size
from ..codegen.descriptor import Descriptor, i64
from ..codegen.levels import LEVEL_DTYPE, LEVEL_SIZE

__all__ = ["LevelMap", "MapJob"]


class MapJob(Descriptor):
    """How a task finds pixels: lengths of the result, and strides and offsets in bytes of the data, the result and the residual.

    Strides are between neighbours of the result: those of the data include the stride of windows.
    """

    width: i64
    plane: i64
    x_image: i64
    x_line: i64
    x_pixel: i64
    x_offset: i64
    y_image: i64
    y_line: i64
    y_pixel: i64
    y_offset: i64
    has_other: i64
    other_image: i64
    other_line: i64
    other_pixel: i64
    other_offset: i64
    scale: i64
    bias: i64
    bounds: i64


@dataclass
class LevelMap:
    """The geometry of a map of levels.

    Args:
        images: how many there are.
        height: rows of each, without borders.
        width: columns of each.
        channels: those that mean something.
        stored: channels with padding.
        zero: the level that stands for zero.
        border: pixels above, below, left and right; it grows with the windows of the layers that read the map.
    """

    images: int
    height: int
    width: int
    channels: int
    stored: int
    zero: int
    border: tuple[int, int, int, int] = (0, 0, 0, 0)

    def widen(self, border: tuple[int, int, int, int]) -> None:
        """Widen the border to at least that width."""
        top, bottom, left, right = (max(pair) for pair in zip(self.border, border, strict=True))
        self.border = top, bottom, left, right

    @property
    def pixel(self) -> int:
        """Bytes of a pixel."""
        return self.stored * LEVEL_SIZE

    @property
    def line(self) -> int:
        """Bytes of a row of pixels with its border."""
        return (self.border[2] + self.width + self.border[3]) * self.pixel

    @property
    def image(self) -> int:
        """Bytes of an image with its border."""
        return (self.border[0] + self.height + self.border[1]) * self.line

    def offset(self, above: int = 0, left: int = 0) -> int:
        """Return the byte offset of the pixel that many rows above and columns to the left of the first one."""
        return (self.border[0] - above) * self.line + (self.border[2] - left) * self.pixel

    def empty(self) -> Array:
        """Return an array ``[images, rows, columns, stored]`` with its border set to zero, and the rest uninitialised."""
        top, bottom, left, right = self.border
        rows, columns = top + self.height + bottom, left + self.width + right
        check_array_size(self.images * self.image, 1)
        levels = np.empty((self.images, rows, columns, self.stored), LEVEL_DTYPE)
        if top:
            levels[:, :top] = self.zero
        if bottom:
            levels[:, rows - bottom :] = self.zero
        if left:
            levels[:, top : rows - bottom, :left] = self.zero
        if right:
            levels[:, top : rows - bottom, columns - right :] = self.zero
        return levels

    def inside(self, levels: Array) -> Array:
        """Return a view of an array inside the border, without the channels of the padding."""
        top, _, left, _ = self.border
        return levels[:, top : top + self.height, left : left + self.width, : self.channels]
