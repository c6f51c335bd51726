"""Arrays, and packed arrays of sub-byte elements."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..arrays import Array
from .element import ElementType
from .packing import unpack

__all__ = ["Array", "Packed"]


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

    def unpack(self) -> Array:
        """Return the elements, one per byte, in a new array."""
        codes = unpack(self.raw, self.element.bits, self.size)
        return codes.view(self.element.dtype).reshape(self.shape)
