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
    """Sub-byte elements, packed as in the file until they are used."""

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
        """Return zeros in new memory."""
        return cls(np.zeros(packed_size(element.bits, math.prod(shape)), np.uint8), element, shape)

    @classmethod
    def of(cls, array: Array, element: ElementType) -> Packed:
        """Pack an array with an entry for each element."""
        codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & np.uint8((1 << element.bits) - 1)
        return cls(pack(codes, element.bits), element, array.shape)

    def unpack(self) -> Array:
        """Return the elements, one per byte, in a new array."""
        codes = unpack(self.raw, self.element.bits, self.size)
        return codes.view(self.element.dtype).reshape(self.shape)


def as_booleans(array: Array) -> Array:
    """Return an array whose booleans have the bytes 0 and 1: itself where it has, else a copy. Others stay as they are.

    Any byte but 0 is true. Kernels compute with the bytes, so this is called wherever arrays enter a model: inputs,
    constants, variables, and what operations from outside the package compute.

    >>> as_booleans(np.array([0, 1, 2], np.uint8).view(bool)).view(np.uint8)
    array([0, 1, 1], dtype=uint8)
    """
    if array.dtype != np.bool_ or array.view(np.uint8).max(initial=0) <= 1:
        return array
    return np.asarray(np.not_equal(array.view(np.uint8), 0))  # of one number, NumPy gives no array
