"""Attention keys and values quantized to 8 bits, as variables hold them between runs.

Each row, that is one token of one head, has its own scale and minimum: a value is ``code * scale + low`` with a code
from 0 to 255. A row of ``width`` values takes ``width + 8`` bytes: the scale and ``low`` as f32, then the codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .tensor import Array

__all__ = ["PREFIX", "Held", "QuantizedCache", "pack_rows", "unpack_rows", "unpacked_shape"]

PREFIX = 8
"""The bytes of a row that precede its codes."""
_LEVELS = np.float32(255)


@dataclass(frozen=True, slots=True)
class QuantizedCache:
    """The contents of a variable whose rows are quantized.

    >>> cache = QuantizedCache(pack_rows(np.float32([[-1, 0.5, 1]])))
    >>> np.abs(cache.unpacked() - np.float32([[-1, 0.5, 1]])).max() < 1 / 255
    np.True_

    Args:
        packed: the rows, u8.
    """

    packed: Array

    def unpacked(self) -> Array:
        """Return the dequantized values as f32."""
        return unpack_rows(self.packed)


Held: TypeAlias = "Array | QuantizedCache"
"""The contents of a variable, quantized or not."""


def unpacked_shape(packed: Array) -> tuple[int, ...]:
    """Return the shape of the values in packed rows.

    >>> unpacked_shape(np.zeros((2, 4, 72), np.uint8))
    (2, 4, 64)
    """
    return (*packed.shape[:-1], packed.shape[-1] - PREFIX)


def pack_rows(x: Array) -> Array:
    """Quantize f32 rows ``x[..., width]`` into bytes ``[..., width + 8]``.

    A row that contains NaN or infinity, or whose range overflows f32, becomes NaN.

    >>> pack_rows(np.float32([[1, 2, 3.5]]))[:, PREFIX:].tolist()
    [[0, 102, 255]]
    """
    packed = np.empty((*x.shape[:-1], x.shape[-1] + PREFIX), np.uint8)
    if not x.size:
        return packed
    with np.errstate(all="ignore"):
        low = x.min(axis=-1, keepdims=True)
        scale = (x.max(axis=-1, keepdims=True) - low) / _LEVELS
        is_usable = (scale > 0) & (scale < np.inf)
        codes = np.minimum(np.rint((x - low) / np.where(is_usable, scale, 1)), _LEVELS)
        low = np.where(np.isfinite(scale), low, np.float32(np.nan))
    packed[..., :4] = scale.view(np.uint8)
    packed[..., 4:PREFIX] = low.view(np.uint8)
    packed[..., PREFIX:] = np.where(is_usable, codes, 0)
    return packed


def unpack_rows(packed: Array) -> Array:
    """Dequantize packed rows ``[..., width + 8]`` to f32 values ``[..., width]``.

    >>> unpack_rows(pack_rows(np.float32([[7, 7, 7]])))
    array([[7., 7., 7.]], dtype=float32)
    """
    scale = np.ascontiguousarray(packed[..., :4]).view(np.float32)
    low = np.ascontiguousarray(packed[..., 4:PREFIX]).view(np.float32)
    with np.errstate(all="ignore"):
        return packed[..., PREFIX:] * scale + low
