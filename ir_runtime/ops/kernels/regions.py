"""Bilinear sampling of feature maps, for ROI pooling."""

from __future__ import annotations

import numpy as np

from ..._util.arrays import Array, Float

__all__ = ["bilinear", "inside", "sample_offsets"]


def sample_offsets(bins: int, samples: int, size: Array | Float) -> Array:
    """Return the positions of samples in equal bins of a length: [bins, samples]."""
    step = size / bins
    spacing = step / max(samples, 1)
    return np.asarray(np.arange(bins, dtype=step.dtype)[:, None] * step) + spacing * (
        np.arange(samples, dtype=step.dtype) + step.dtype.type(0.5)
    )


def inside(y: Array, x: Array, height: int, width: int) -> Array:
    """Return a mask of the points at most 1 outside of a map."""
    return np.asarray((y >= -1) & (y <= height) & (x >= -1) & (x <= width))


def bilinear(maps: Array, y: Array, x: Array, *, each: bool = False) -> Array:
    """Interpolate bilinearly between elements of maps, clamping to the edge.

    Args:
        maps: [C, H, W]
        y: rows, which broadcast against ``x``.
        x: columns.
        each: whether each map has its own point.

    Returns:
        [C, ...] with the shape of the points, or one number for each map.
    """
    height, width = maps.shape[1:]
    (top, bottom, low), (left, right, near) = _around(y, height), _around(x, width)
    of = np.arange(len(maps)) if each else slice(None)
    upper = maps[of, top, left] * (1 - near) + maps[of, top, right] * near
    lower = maps[of, bottom, left] * (1 - near) + maps[of, bottom, right] * near
    return np.asarray(upper * (1 - low) + lower * low)


def _around(places: Array, length: int) -> tuple[Array, Array, Array]:
    """Return the two elements around each position, and the fraction between them."""
    places = np.clip(places, 0, max(length - 1, 0))
    first = np.nan_to_num(np.floor(places)).astype(np.int64)
    return first, np.minimum(first + 1, length - 1), places - first.astype(places.dtype)
