"""Pack and unpack elements of less than a byte, as OpenVINO's ``helpers`` do, in the order of tensors and files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..codes import Code
from ..errors import InputError
from ..ir import element
from ..ir.element import ElementType
from ..ir.tensor import Array

__all__ = ["pack_data", "unpack_data"]


def pack_data(array: Any, type: ElementType) -> Array:
    """Return the bytes of an array's numbers, as `unpack_data` and tensors read them; the last byte is filled with 0.

    OpenVINO puts the first of two numbers of 4 bits into the high half of a byte, where its tensors have the second.

    >>> pack_data(np.array([7, 8]), ElementType.u4)
    array([135], dtype=uint8)

    Args:
        array: integers that the type holds.
        type: an element type of less than a byte.

    Raises:
        InputError: if the type takes a byte or more, or the numbers are not integers of 8 bits.
    """
    _check(type)
    given, whole = np.asarray(array), _whole(type)
    numbers = given.astype(whole)
    if not np.array_equal(numbers, given):
        raise InputError(
            f"the array has numbers that are not integers of {type.label}", code=Code.BAD_REQUEST
        )
    return element.pack(numbers.reshape(-1).view(np.uint8) & ((1 << type.bits) - 1), type.bits)


def unpack_data(array: Any, type: ElementType, shape: Sequence[int]) -> Array:
    """Return the numbers in bytes that `pack_data` returned, in ``int8`` for ``i4``, else in ``uint8``.

    The contents of a tensor of such a type, which has an entry for each element here, are returned as numbers, too.

    >>> unpack_data(np.array([135], np.uint8), ElementType.u4, [2])
    array([7, 8], dtype=uint8)

    Args:
        array: the bytes; of ``u1``, ``u3``, ``u6`` and ``nf4``, an array is bytes where it could be both.
        type: an element type of less than a byte.
        shape: of the result.

    Raises:
        InputError: if the type takes a byte or more, or the bytes are too few.
    """
    _check(type)
    given, count = np.asarray(array), math.prod(shape)
    needed = element.packed_size(type.bits, count)
    if given.dtype == type.dtype and (not type.is_encoded or given.size == count != needed):
        return given.astype(_whole(type)).reshape(tuple(shape))
    raw = np.ascontiguousarray(given).reshape(-1).view(np.uint8)
    if raw.size < needed:
        raise InputError(
            f"{type.label}{list(shape)} takes {needed} packed bytes, got {raw.size}", code=Code.BAD_REQUEST
        )
    codes = element.unpack(raw[:needed], type.bits, count)
    signed = np.where(codes < 8, codes, codes.astype(np.int8) - 16) if type is ElementType.i4 else codes
    return signed.astype(_whole(type)).reshape(tuple(shape))


def _whole(element: ElementType) -> type[np.int8] | type[np.uint8]:
    """Return the type of whole bytes that holds the numbers."""
    return np.int8 if element is ElementType.i4 else np.uint8


def _check(type: ElementType) -> None:
    if not 0 < type.bits < 8:
        raise InputError(
            f"elements of {type.label} are not packed: expected a type of less than a byte",
            code=Code.BAD_REQUEST,
        )
