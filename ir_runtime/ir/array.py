"""Arrays, and packed arrays of sub-byte elements."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._util.arrays import Array
from .element import ElementType, pack, packed_size, unpack

__all__ = ["Array", "Packed", "as_booleans"]


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """An array of sub-byte elements that stays packed, as in the file, until a kernel reads it."""

    raw: Array
    """The bytes, a view of the file."""
    element: ElementType
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @classmethod
    def zeros(cls, element: ElementType, shape: tuple[int, ...]) -> Packed:
        """Return a new packed array filled with zeros."""
        return cls(np.zeros(packed_size(element.bits, math.prod(shape)), np.uint8), element, shape)

    @classmethod
    def of(cls, array: Array, element: ElementType) -> Packed:
        """Pack an array that holds one element per byte."""
        codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & np.uint8((1 << element.bits) - 1)
        return cls(pack(codes, element.bits), element, array.shape)

    def unpack(self) -> Array:
        """Return the elements, one per byte, in a new array."""
        codes = unpack(self.raw, self.element.bits, self.size)
        return codes.view(self.element.dtype).reshape(self.shape)


def as_booleans(array: Array) -> Array:
    """Normalize the bytes of a boolean array to 0 and 1; return arrays of other types unchanged.

    Any nonzero byte counts as true. Kernels compute with the bytes, so this is called wherever arrays enter a model:
    inputs, constants, variables, and the results of third-party operations. Copies only if some byte exceeds 1.

    >>> as_booleans(np.array([0, 1, 2], np.uint8).view(bool)).view(np.uint8)
    array([0, 1, 1], dtype=uint8)
    """
    if array.dtype != np.bool_ or array.view(np.uint8).max(initial=0) <= 1:
        return array
    return np.asarray(
        np.not_equal(array.view(np.uint8), 0)
    )  # NumPy returns a scalar, not an array, for rank 0
