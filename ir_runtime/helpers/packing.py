"""Pack and unpack arrays of sub-byte elements, in the bit order of tensors and IR files."""

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
    """Pack an array of integers into bytes as tensors store them, the last byte padded with zero bits.

    OpenVINO's ``pack_data`` puts the first of two 4-bit elements into the high half of a byte, unlike its own tensors.

    >>> pack_data(np.array([7, 8]), ElementType.u4)
    array([135], dtype=uint8)

    Args:
        array: integers in the range of ``type``.
        type: a sub-byte element type.

    Raises:
        InputError: if the type takes a byte or more, or the numbers are not integers of 8 bits.
    """
    _check(type)
    values, whole = np.asarray(array), _unpacked_dtype(type)
    numbers = values.astype(whole)
    if not np.array_equal(numbers, values):
        raise InputError(
            f"the array has numbers that are not integers of {type.label}", code=Code.BAD_REQUEST
        )
    return element.pack(numbers.reshape(-1).view(np.uint8) & ((1 << type.bits) - 1), type.bits)


def unpack_data(array: Any, type: ElementType, shape: Sequence[int]) -> Array:
    """Unpack the bytes from `pack_data` into an array of ``int8`` for ``i4`` and ``uint8`` for other types.

    The data of a tensor of such a type, which holds one array entry per element, is accepted too.

    >>> unpack_data(np.array([135], np.uint8), ElementType.u4, [2])
    array([7, 8], dtype=uint8)

    Args:
        array: packed bytes or unpacked elements; for ``u1``, ``u3``, ``u6`` and ``nf4``, an ambiguous array
            counts as packed.
        type: a sub-byte element type.
        shape: the shape of the result.

    Raises:
        InputError: if the type takes a byte or more, or the bytes are too few.
    """
    _check(type)
    data, count = np.asarray(array), math.prod(shape)
    needed = element.packed_size(type.bits, count)
    if data.dtype == type.dtype and (not type.is_encoded or data.size == count != needed):
        return data.astype(_unpacked_dtype(type)).reshape(tuple(shape))
    raw = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    if raw.size < needed:
        raise InputError(
            f"{type.label}{list(shape)} takes {needed} packed bytes, got {raw.size}", code=Code.BAD_REQUEST
        )
    codes = element.unpack(raw[:needed], type.bits, count)
    signed = np.where(codes < 8, codes, codes.astype(np.int8) - 16) if type is ElementType.i4 else codes
    return signed.astype(_unpacked_dtype(type)).reshape(tuple(shape))


def _unpacked_dtype(element: ElementType) -> type[np.int8] | type[np.uint8]:
    """Return the NumPy type of unpacked elements."""
    return np.int8 if element is ElementType.i4 else np.uint8


def _check(type: ElementType) -> None:
    if not 0 < type.bits < 8:
        raise InputError(
            f"elements of {type.label} are not packed: expected a type of less than a byte",
            code=Code.BAD_REQUEST,
        )
