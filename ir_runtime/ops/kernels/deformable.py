"""Deformable convolution by bilinear sampling, one kernel element after another."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ..._util.arrays import Array
from .matmul import from_accumulator

__all__ = ["deformable_convolution"]


def deformable_convolution(
    x: Array,
    offsets: Array,
    w: Array,
    mask: Array | None,
    starts: Sequence[Array],
    dilations: Sequence[int],
    parts: int,
    zeros: bool,
) -> Array:
    """Correlate ``x[N, G*C, Y, X]`` with ``w[G, O, C, kernel...]``, sampling it at offsets.

    Args:
        x: the images.
        offsets: ``[N, parts * elements * 2, rows, columns]``, added to the positions of kernel elements.
        w: the filters.
        mask: ``[N, parts * elements, rows, columns]``, weights of the samples.
        starts: where the windows of each row and column start.
        dilations: distance between kernel elements.
        parts: groups of input channels, each of which has its own offsets.
        zeros: whether samples interpolate with zeros around the images; otherwise, positions before the first pixel are outside, those after the last are clamped to it.
    """
    groups, outputs, channels, *kernel = w.shape
    rows, columns = map(len, starts)
    work = np.float64 if x.dtype.kind in "iu" or x.dtype == np.float64 else np.float32
    y = np.zeros((len(x), groups, outputs, rows * columns), work)
    weights = w.astype(work)
    for n, (image, shifts) in enumerate(
        zip(x.astype(work, copy=False), offsets.astype(work, copy=False), strict=True)
    ):
        planes = image.reshape(parts, -1, *image.shape[1:])
        shifts = shifts.reshape(parts, -1, 2, rows, columns)
        for number, (i, j) in enumerate(itertools.product(*map(range, kernel))):
            down = starts[0][:, None] + i * dilations[0] + shifts[:, number, 0]
            right = starts[1] + j * dilations[1] + shifts[:, number, 1]
            seen = _sample(planes, down.reshape(parts, -1), right.reshape(parts, -1), zeros)
            if mask is not None:
                each = mask[n].reshape(parts, -1, 1, rows * columns)[:, number]
                seen = seen * each.astype(work, copy=False)
            y[n] += weights[..., i, j] @ seen.reshape(groups, channels, rows * columns)
    return from_accumulator(y.reshape(len(x), groups * outputs, rows, columns), x.dtype)


def _sample(planes: Array, y: Array, x: Array, zeros: bool) -> Array:
    """Sample ``planes[P, C, Y, X]`` at points ``[P, positions]``: ``[P, C, positions]``."""
    height, width = planes.shape[2:]
    flat = planes.reshape(*planes.shape[:2], height * width)
    least: np.ufunc = np.greater if zeros else np.greater_equal
    edge = -1 if zeros else 0
    inside = least(y, edge) & least(x, edge) & (y < height) & (x < width)
    y, x = np.where(inside, y, 0), np.where(inside, x, 0)
    top, left = np.floor(y), np.floor(x)
    samples = np.zeros((*planes.shape[:2], y.shape[-1]), planes.dtype)
    for row, across in ((top, 1 - (y - top)), (np.ceil(y), y - top)):
        for column, along in ((left, 1 - (x - left)), (np.ceil(x), x - left)):
            r, c = row.clip(0, height - 1), column.clip(0, width - 1)
            seen = inside & (r == row) & (c == column) if zeros else inside
            pixels = np.take_along_axis(flat, (r * width + c).astype(np.int64)[:, None], 2)
            samples += (across * along)[:, None] * np.where(seen[:, None], pixels, 0)
    return samples
