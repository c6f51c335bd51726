"""Grid sampling: images sampled at given points."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.formula import Count
from ...ir.operands import Operands
from ...ir.shape import PartialShape
from ...ir.signature import FLOATS
from ...ir.tensor import Array, Value
from .._define.operation import T_PLAIN, Element, Input, Op, Output, attr, op
from .._lengths import of_rank
from .._resampling import BILINEAR
from ..kernels.resample import cubic_weights

T_GRID = Element("T1", FLOATS, "any floating-point type")
# Samples per chunk, so that they stay in the cache. Positions further away, and NaN, are clamped to:
# f64 has no fractions beyond it.
BLOCK = 1 << 16
MOST = 2.0**52


class _Places(NamedTuple):
    """Indices of pixels along an axis, and a mask of those that read zero."""

    pixels: Array
    outside: Array | None


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
            raise InferenceError(
                f"grid must be [N, rows, columns, 2], x and y last, found {grid.shape}",
                clause="grid is [N, rows, columns, 2]",
            )
        if (common := batch.merge(entries)) is None:
            raise InferenceError(
                f"data {data.shape} and grid {grid.shape} differ in batch size",
                clause="data and grid have the same batch size",
            )
        if 0 in pixels and all(d.min for d in (common, channels, rows, columns)):
            raise InferenceError(
                f"data {data.shape} has no pixels to sample",
                clause="data has pixels to sample, unless nothing is sampled",
            )
        return PartialShape([common, channels, rows, columns])

    def evaluate(self, data: Array, grid: Array) -> Array:
        shape = self.infer(Value.constant(data), Value.constant(grid)).static
        samples = np.zeros(shape, data.dtype)
        if not samples.size:
            return samples
        double = np.dtype(np.float64) in (data.dtype, grid.dtype)
        points = grid.astype(np.float64 if double else np.float32, copy=False)
        some = max(1, BLOCK * len(samples) // samples.size)
        for first in range(0, len(samples), some):
            block = slice(first, first + some)
            samples[block] = self._sample(data[block], points[block])
        return samples

    def _sample(self, images: Array, points: Array) -> Array:
        """Sample images at ``[N, rows, columns, 2]``: ``[N, C, rows, columns]``."""
        count, channels, height, width = images.shape
        where = points.reshape(count, 1, -1, 2)
        y, x = self._place(where[..., 1], height), self._place(where[..., 0], width)
        samples: Array = getattr(self, f"_{self.mode}")(images, y, x)
        return samples.reshape(count, channels, *points.shape[1:3])

    def _place(self, coordinates: Array, length: int) -> Array:
        """Convert coordinates to pixels, whose centres are integers."""
        if self.align_corners:
            return (coordinates + 1) * (length - 1) / 2
        return ((coordinates + 1) * length - 1) / 2

    def _nearest(self, images: Array, y: Array, x: Array) -> Array:
        rows, columns = self._along(np.rint(y), images.shape[2]), self._along(np.rint(x), images.shape[3])
        return _pixels(images, rows, columns)

    def _bilinear(self, images: Array, y: Array, x: Array) -> Array:
        top, left = np.floor(y), np.floor(x)
        dy, dx = y - top, x - left
        columns = [self._along(left, images.shape[3], step) for step in (0, 1)]
        corners = []
        for step in (0, 1):
            row = self._along(top, images.shape[2], step)
            before, after = (_pixels(images, row, column) for column in columns)
            corners.append((1 - dx) * before + dx * after)
        return np.asarray(dy * corners[1] + (1 - dy) * corners[0])

    def _bicubic(self, images: Array, y: Array, x: Array) -> Array:
        """Interpolate with a single rounding, as OpenVINO's plugin; its reference rounds each partial sum."""
        top, left = np.floor(y), np.floor(x)
        down, across = cubic_weights(y - top, -0.75), cubic_weights(x - left, -0.75)
        columns = [self._along(left, images.shape[3], step) for step in range(-1, 3)]
        total = np.zeros((), y.dtype)
        for i in range(4):
            places, row = self._along(top, images.shape[2], i - 1), np.zeros((), y.dtype)
            for j, column in enumerate(columns):
                row = row + across[..., j] * _pixels(images, places, column)
            total = total + down[..., i] * row
        return total

    def _along(self, positions: Array, length: int, step: int = 0) -> _Places:
        """Return the pixels at integer positions along an axis, shifted by a step."""
        bounded = np.minimum(np.fmax(positions, -MOST), MOST)
        index = (bounded + step).astype(np.int64)
        inside = self._inside(index, length)
        return _Places(inside, index != inside if self.padding_mode == "zeros" else None)

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
        """Return the FLOPs: two for each neighbour of a sample and each of its factors."""
        return {"nearest": 0, "bilinear": BILINEAR, "bicubic": 4 * BILINEAR}[self.mode] * operands.result


def _pixels(images: Array, rows: _Places, columns: _Places) -> Array:
    """Return the pixels of ``images[N, C, Y, X]`` at places ``[N, 1, points]``: ``[N, C, points]``."""
    if len(images) == 1:  # needs no indices for each channel
        pixels: Array = images[0][:, rows.pixels[0, 0], columns.pixels[0, 0]][None]
    else:
        count, channels, height, width = images.shape
        planes = np.arange(count * channels).reshape(count, channels, 1) * (height * width)
        pixels = images.reshape(-1).take(planes + (rows.pixels * width + columns.pixels))
    if rows.outside is not None and columns.outside is not None:
        np.copyto(pixels, np.zeros((), pixels.dtype), where=rows.outside | columns.outside)
    return pixels
