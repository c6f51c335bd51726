"""Write the ``.bin``: constants without gaps, equal ones once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import IO, NamedTuple

import numpy as np

from ...ir.array import Packed
from ...ir.element import ElementType, pack
from ...ir.tensor import Array
from ...ops.kernels.strings import pack_strings

__all__ = ["Place", "WeightsWriter", "raw_bytes"]


class Place(NamedTuple):
    """The offset and size of a constant."""

    offset: int
    size: int


class WeightsWriter:
    """Writes constants without gaps, as OpenVINO does; equal ones share their bytes.

    Only digests are kept in memory, so constants may be views of a file larger than memory.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._end = file, 0
        self._known: dict[bytes, Place] = {}

    def place(self, raw: Array) -> Place:
        """Write bytes unless equal ones were written before; return their place."""
        # A 256-bit digest identifies the content: no collisions are known.
        digest = hashlib.sha256(raw.data).digest()
        if digest not in self._known:
            self._file.write(raw.data)
            self._known[digest] = Place(self._end, raw.nbytes)
            self._end += raw.nbytes
        return self._known[digest]


def raw_bytes(value: Array | Packed | Callable[[], Array], element: ElementType, least: int = 1) -> Array:
    """Return the bytes of a tensor in file format; a view if memory has the same format.

    An empty tensor has ``least`` bytes: one in most of OpenVINO's files, none in others. A function is called
    to compute the tensor lazily.

    >>> raw_bytes(np.array([1, 2, 3], np.uint8), ElementType.u6).tolist()
    [18, 48, 0]
    """
    if isinstance(value, Packed):
        return value.raw
    if callable(value):
        value = value()
    if element is ElementType.string:
        return pack_strings(value)
    if not value.size:
        return np.zeros(least, np.uint8)
    flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return flat if element.bits >= 8 else pack(flat & ((1 << element.bits) - 1), element.bits)
