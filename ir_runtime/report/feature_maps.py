"""Feature maps: layer outputs as small pictures, for two runtimes together with their difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.array import Array

__all__ = ["FeatureMaps", "feature_maps"]

_PIXELS = 4096
"""The pixels of all channels together."""
_MOST = 16
"""The most channels."""
_SIDE = 32
_MATRIX_SIDE = 64
_LEAST = 16
"""The fewest elements that make a picture."""
_LEVELS = 127
_NOT_FINITE = -128


@dataclass(frozen=True)
class FeatureMaps:
    """Downsampled channels of a layer output, with 255 levels per pixel.

    Args:
        channels: the numbers of the channels.
        of: the total number of channels.
        size: height and width of a channel before downsampling.
        scale: the magnitude of the highest level.
        maps: the levels of this run, then those of the other runtime if there is one: i8 ``[channel, height, width]``.
        error: the levels of the difference.
        error_scale: the magnitude of the highest level of the difference.
    """

    channels: Sequence[int]
    of: int
    size: tuple[int, int]
    scale: float
    maps: Sequence[Array]
    error: Array | None = None
    error_scale: float = 0.0

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        record: dict[str, Any] = {
            "channels": list(self.channels), "of": self.of, "full": list(self.size), "size": list(self.maps[0].shape[1:]),
            "scale": _short(self.scale), "maps": [levels.tobytes() for levels in self.maps],
        }  # fmt: skip
        if self.error is not None:
            record |= {"error": self.error.tobytes(), "errorScale": _short(self.error_scale)}
        return record


def feature_maps(ours: Array, theirs: Array | None = None) -> FeatureMaps | None:
    """Return the channels of the first batch item that differ most, or without ``theirs``, have the largest values.

    >>> maps = feature_maps(np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4))
    >>> maps.channels, maps.size, maps.scale, maps.maps[0].max()
    ([0, 1], (4, 4), 31.0, np.int8(127))
    >>> feature_maps(np.ones(3)) is None
    True

    Args:
        ours: the output of a layer.
        theirs: the same output of another runtime, in any shape.

    Returns:
        the feature maps; ``None`` if the output does not look like a picture.
    """
    own = _channels(ours)
    if own is None:
        return None
    other = None if theirs is None or theirs.size != ours.size else _channels(theirs.reshape(ours.shape))
    with np.errstate(all="ignore"):
        error = None if other is None else other - own
        order = _order(own if error is None else error)
    side = _MATRIX_SIDE if len(own) == 1 else _SIDE
    height, width = min(own.shape[1], side), min(own.shape[2], side)
    channels = sorted(order[: max(1, min(_MOST, _PIXELS // (height * width)))])
    sides = [_downsample(one[channels], height, width) for one in (own, other) if one is not None]
    scale = max(map(_largest, sides))
    maps = [_levels(one, scale) for one in sides]
    size = (own.shape[1], own.shape[2])
    if error is None:
        return FeatureMaps(channels, len(own), size, scale, maps)
    difference = _downsample(error[channels], height, width)
    largest = _largest(difference)
    return FeatureMaps(channels, len(own), size, scale, maps, _levels(difference, largest), largest)


def _channels(array: Array) -> Array | None:
    """Return the first batch item as f64 ``[channel, height, width]``; ``None`` if it is too small or has fewer than two axes."""
    if array.dtype.kind not in "fiub" or array.ndim < 2 or array.size < _LEAST:
        return None
    first = array[0] if array.ndim > 2 else array
    if first.size < _LEAST:
        return None
    wide: Array = first.reshape(-1, *first.shape[-2:]).astype(np.float64)
    return wide


def _order(channels: Array) -> list[int]:
    """Return channel indices by descending maximum magnitude; NaN and infinity come first."""
    magnitudes = np.abs(channels).max(axis=(1, 2))
    magnitudes[np.isnan(magnitudes)] = np.inf
    order: list[int] = np.argsort(-magnitudes, kind="stable").tolist()
    return order


def _downsample(channels: Array, height: int, width: int) -> Array:
    """Downsample channels: each pixel is the value of largest magnitude in its block."""
    rows = np.arange(height) * channels.shape[1] // height
    columns = np.arange(width) * channels.shape[2] // width
    ends = [
        reduce.reduceat(reduce.reduceat(channels, rows, axis=1), columns, axis=2)
        for reduce in (np.maximum, np.minimum)
    ]
    larger: Array = np.where(np.abs(ends[0]) >= np.abs(ends[1]), ends[0], ends[1])
    return larger


def _largest(channels: Array) -> float:
    """Return the largest finite magnitude."""
    return float(np.abs(channels[np.isfinite(channels)]).max(initial=0))


def _levels(channels: Array, scale: float) -> Array:
    finite = np.isfinite(channels)
    part = np.where(finite, channels, 0) / scale if scale else np.zeros(channels.shape)
    levels: Array = np.where(finite, np.rint(part * _LEVELS), _NOT_FINITE).astype(np.int8)
    return levels


def _short(number: float) -> float:
    return float(f"{number:.5g}")
