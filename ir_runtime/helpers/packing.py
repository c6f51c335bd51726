"""Pack and unpack elements of less than a byte, as OpenVINO's ``helpers`` do.

Unlike in tensors and files, elements of 2 and 4 bits start at the high end of a byte here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..codes import Code
from ..errors import InputError
from ..ir import packing
from ..ir.element import ElementType
from ..ir.tensor import Array

__all__ = ["pack_data", "unpack_data"]


def pack_data(array: Any, type: ElementType) -> Array:
    """Return the bytes of an array's numbers, as `unpack_data` reads them; the last byte is filled with 0.

    >>> pack_data(np.array([7, 8]), ElementType.u4)
    array([120], dtype=uint8)

    Args:
        array: integers that the type holds.
        type: an element type of less than a byte.

    Raises:
        InputError: if the type takes a byte or more, or the numbers are not integers of 8 bits.
    """
    _check(type)
    given, whole = np.asarray(array), np.int8 if type is ElementType.i4 else np.uint8
    numbers = given.astype(whole)
    if not np.array_equal(numbers, given):
        raise InputError(f"the array has numbers that are not integers of {type}", code=Code.BAD_REQUEST)
    codes = numbers.reshape(-1).view(np.uint8) & ((1 << type.bits) - 1)
    if type.bits not in (2, 4):
        return packing.pack(codes, type.bits)
    padded = np.zeros(packing.packed_size(type.bits, codes.size) * 8 // type.bits, np.uint8)
    padded[: codes.size] = codes
    fields = padded.reshape(-1, 8 // type.bits) << _shifts(type)
    return np.asarray(np.bitwise_or.reduce(fields, axis=1, dtype=np.uint8))


def unpack_data(array: Any, type: ElementType, shape: Sequence[int]) -> Array:
    """Return the numbers in bytes that `pack_data` returned, in ``int8`` for ``i4``, else in ``uint8``.

    The contents of a tensor of such a type, which are not packed here, are returned as numbers, too.

    >>> unpack_data(np.array([120], np.uint8), ElementType.u4, [2])
    array([7, 8], dtype=uint8)

    Args:
        array: the bytes.
        type: an element type of less than a byte.
        shape: of the result.

    Raises:
        InputError: if the type takes a byte or more, or the bytes are too few.
    """
    _check(type)
    given, count = np.asarray(array), math.prod(shape)
    whole = np.int8 if type is ElementType.i4 else np.uint8
    if given.dtype == type.dtype and given.dtype != np.uint8:
        return given.astype(whole).reshape(tuple(shape))
    raw = np.ascontiguousarray(given).reshape(-1).view(np.uint8)
    if raw.size < packing.packed_size(type.bits, count):
        raise InputError(
            f"{type}{list(shape)} takes {packing.packed_size(type.bits, count)} packed bytes, got {raw.size}",
            code=Code.BAD_REQUEST,
        )
    return _codes(raw, type, count).astype(whole).reshape(tuple(shape))


def _codes(raw: Array, type: ElementType, count: int) -> Array:
    if type.bits not in (2, 4):
        return packing.unpack(raw, type.bits, count)
    codes = (raw[:, None] >> _shifts(type) & ((1 << type.bits) - 1)).reshape(-1)[:count]
    return np.where(codes < 8, codes, codes.astype(np.int8) - 16) if type is ElementType.i4 else codes


def _shifts(type: ElementType) -> Array:
    return np.arange(8 - type.bits, -1, -type.bits, dtype=np.uint8)


def _check(type: ElementType) -> None:
    if not 0 < type.bits < 8:
        raise InputError(
            f"elements of {type} are not packed: expected a type of less than a byte", code=Code.BAD_REQUEST
        )
