"""Keys and values of attention in 8 bits, as variables hold them between runs.

A row, which is one token of one head, has a scale and a smallest number: a number is ``code * scale + low`` with a code
from 0 to 255. A row of ``width`` numbers takes ``width + 8`` bytes: the scale and ``low`` as f32, then the codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .tensor import Array

__all__ = ["PREFIX", "Held", "QuantizedCache", "pack_rows", "unpack_rows", "unpacked_shape"]

PREFIX = 8
"""Bytes of a row before its codes."""
_LEVELS = np.float32(255)


@dataclass(frozen=True, slots=True)
class QuantizedCache:
    """The contents of a variable with quantized rows.

    >>> cache = QuantizedCache(pack_rows(np.float32([[-1, 0.5, 1]])))
    >>> np.abs(cache.unpacked() - np.float32([[-1, 0.5, 1]])).max() < 1 / 255
    np.True_

    Args:
        packed: the rows, u8.
    """

    packed: Array

    def unpacked(self) -> Array:
        """Return the numbers as f32."""
        return unpack_rows(self.packed)


Held: TypeAlias = "Array | QuantizedCache"
"""The value of a variable."""


def unpacked_shape(packed: Array) -> tuple[int, ...]:
    """Return the shape of the numbers in packed rows.

    >>> unpacked_shape(np.zeros((2, 4, 72), np.uint8))
    (2, 4, 64)
    """
    return (*packed.shape[:-1], packed.shape[-1] - PREFIX)


def pack_rows(x: Array) -> Array:
    """Quantize rows of f32. A row with NaN or infinity becomes NaN, and so does one whose range exceeds f32.

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
    """Return the numbers of packed rows as f32.

    >>> unpack_rows(pack_rows(np.float32([[7, 7, 7]])))
    array([[7., 7., 7.]], dtype=float32)
    """
    scale = np.ascontiguousarray(packed[..., :4]).view(np.float32)
    low = np.ascontiguousarray(packed[..., 4:PREFIX]).view(np.float32)
    with np.errstate(all="ignore"):
        return packed[..., PREFIX:] * scale + low
