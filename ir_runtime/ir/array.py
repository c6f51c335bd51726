"""Arrays of numbers, and the packed ones whose numbers take less than a byte."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from .element import ElementType
from .packing import unpack

__all__ = ["Array", "Packed"]

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Numbers of less than a byte, left as a file has them until somebody wants them."""

    raw: Array
    """The bytes, a view of the file."""
    element: ElementType
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return math.prod(self.shape)

    def unpack(self) -> Array:
        """The numbers, one a byte; a new array each time."""
        codes = unpack(self.raw, self.element.bits, self.size)
        return codes.view(self.element.dtype).reshape(self.shape)
