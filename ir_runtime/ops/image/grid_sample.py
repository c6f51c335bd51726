"""Grid sampling: images sampled at given points."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.formula import Count
from ...ir.operands import Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from ...kernels.resample import cubic_weights
from .._define.operation import Element, Input, Op, Output, attr, op
from .._define.types import FLOATS, T_PLAIN
from .._ranks import of_rank
from .._resampling import BILINEAR

T_GRID = Element("T1", FLOATS, "any floating-point type")


@op("GridSample-9")
class GridSample(Op):
    """Sample ``data`` at the points of ``grid``, whose coordinates go from -1 to 1 over the image."""

    data = Input(T_PLAIN, "[N, C, H, W]")
    grid = Input(T_GRID, "[N, rows, columns, 2]; for each sample, where it is: horizontally, then vertically")
    samples = Output(T_PLAIN, "[N, C, rows, columns]")

    align_corners: bool = attr(
        False, doc="whether -1 and 1 are the centres of the outermost pixels, not their edges"
    )
    mode: Literal["bilinear", "bicubic", "nearest"] = attr(
        "bilinear",
        doc="how to compute samples between pixels: from 2 x 2 or 4 x 4 of them, or as the nearest",
    )
    padding_mode: Literal["zeros", "border", "reflection"] = attr(
        "zeros", doc="the values outside the image: zeros, its outermost pixels, or its mirror images"
    )

    def infer(self, data: Value, grid: Value) -> PartialShape:
        batch, channels, *pixels = of_rank(data, "data", "[N, C, H, W]")
        entries, rows, columns, pair = of_rank(grid, "grid", "[N, rows, columns, 2]")
        if not pair.compatible(Dimension(2)):
            raise InferenceError(f"grid must be [N, rows, columns, 2], x and y last, found {grid.shape}")
        if (common := batch.merge(entries)) is None:
            raise InferenceError(f"data {data.shape} and grid {grid.shape} differ in batch size")
        if 0 in pixels and all(d.min for d in (common, channels, rows, columns)):
            raise InferenceError(f"data {data.shape} has no pixels to sample")
        return PartialShape([common, channels, rows, columns])

    def evaluate(self, data: Array, grid: Array) -> Array:
        shape = self.infer(Value.constant(data), Value.constant(grid)).static
        samples = np.zeros(shape, data.dtype)
        if not samples.size:
            return samples
        double = np.dtype(np.float64) in (data.dtype, grid.dtype)
        points = grid.astype(np.float64 if double else np.float32, copy=False)
        for planes, where, out in zip(data, points, samples, strict=True):
            y, x = self._place(where[..., 1], data.shape[2]), self._place(where[..., 0], data.shape[3])
            out[...] = getattr(self, f"_{self.mode}")(planes, y, x)
        return samples

    def _place(self, coordinates: Array, length: int) -> Array:
        """On the pixels, whose centres are integers."""
        if self.align_corners:
            return (coordinates + 1) * (length - 1) / 2
        return ((coordinates + 1) * length - 1) / 2

    def _nearest(self, planes: Array, y: Array, x: Array) -> Array:
        return self._pixels(planes, np.rint(y), np.rint(x))

    def _bilinear(self, planes: Array, y: Array, x: Array) -> Array:
        top, left = np.floor(y), np.floor(x)
        dy, dx = y - top, x - left
        rows = [
            (1 - dx) * self._pixels(planes, row, left) + dx * self._pixels(planes, row, left + 1)
            for row in (top, top + 1)
        ]
        return np.asarray(dy * rows[1] + (1 - dy) * rows[0])

    def _bicubic(self, planes: Array, y: Array, x: Array) -> Array:
        """Round once, as OpenVINO's plugin does; its reference rounds each partial sum to the data's type."""
        top, left = np.floor(y), np.floor(x)
        down, across = cubic_weights(y - top, -0.75), cubic_weights(x - left, -0.75)
        total = np.zeros((), y.dtype)
        for i in range(4):
            row = np.zeros((), y.dtype)
            for j in range(4):
                pixels = self._pixels(planes, top + (i - 1), left + (j - 1))
                row = row + across[..., j] * pixels
            total = total + down[..., i] * row
        return total

    def _pixels(self, planes: Array, y: Array, x: Array) -> Array:
        """Return the pixels at whole coordinates, ``[C, rows, columns]``."""
        _, height, width = planes.shape
        y, x = y.astype(np.int64), x.astype(np.int64)
        rows, columns = self._inside(y, height), self._inside(x, width)
        found = planes[:, rows, columns]
        if self.padding_mode == "zeros":
            found[:, (y != rows) | (x != columns)] = 0
        return found

    def _inside(self, index: Array, length: int) -> Array:
        if self.padding_mode == "reflection":
            if self.align_corners:
                period = max(2 * (length - 1), 1)
                index = np.abs(index) % period
                index = np.where(index >= length, period - index, index)
            else:
                index = index % (2 * length)
                index = np.where(index >= length, 2 * length - 1 - index, index)
        return index.clip(0, length - 1)

    def flops(self, operands: Operands) -> Count:
        """Return two for each neighbour of a sample and each factor of it."""
        return {"nearest": 0, "bilinear": BILINEAR, "bicubic": 4 * BILINEAR}[self.mode] * operands.result
