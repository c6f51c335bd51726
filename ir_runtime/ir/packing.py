"""Packing of sub-byte elements, as in OpenVINO.

Codes are the bits of an element as an unsigned integer. 2 and 4 bits start at the low end of a byte,
1 bit at the high end. 3 and 6 bits are split over three bytes: the low parts of a group first, then
the high parts of all of it, each from the high end of its byte::

    3 bits    00 11 22 33   44 55 66 77   0 1 2 3 4 5 6 7
    6 bits    0000 1111     2222 3333     00 11 22 33
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from .._util.arrays import Array

__all__ = ["pack", "packed_size", "unpack"]

Bytes: TypeAlias = Array
Codes: TypeAlias = Array

# Bits of the low and of the high part; a group fills three bytes.
_SPLIT = {3: (2, 1), 6: (4, 2)}


def packed_size(bits: int, count: int) -> int:
    """Return the number of bytes of ``count`` packed elements.

    >>> packed_size(4, 3), packed_size(1, 9), packed_size(3, 3), packed_size(6, 5)
    (2, 2, 3, 6)
    """
    if bits in _SPLIT:
        return -(-count * bits // 24) * 3
    return -(-count * bits // 8)


def unpack(raw: Bytes, bits: int, count: int) -> Codes:
    """Unpack the first ``count`` codes of 1, 2, 3, 4 or 6 bits, to one per byte.

    >>> unpack(np.array([0x21, 0x43], np.uint8), 4, 3)
    array([1, 2, 3], dtype=uint8)
    """
    if bits == 1:
        return np.asarray(np.unpackbits(raw, count=count))
    if bits not in _SPLIT:
        return _fields(raw, bits, high_first=False)[:count]
    low, high = _SPLIT[bits]
    groups = raw.reshape(-1, 3)
    lows = _fields(groups[:, :2].ravel(), low, high_first=True)
    highs = _fields(groups[:, 2], high, high_first=True)
    return np.asarray(lows | highs << low)[:count]


def pack(codes: Codes, bits: int) -> Bytes:
    """Pack codes into bytes; the rest of the last group is 0.

    >>> pack(np.array([1, 2, 3], np.uint8), 4)
    array([33,  3], dtype=uint8)
    """
    size = packed_size(bits, codes.size)
    whole = np.zeros(size * 8 // bits, np.uint8)
    whole[: codes.size] = codes.ravel()
    if bits == 1:
        return np.packbits(whole)
    if bits not in _SPLIT:
        return _bytes(whole, bits, high_first=False)
    low, high = _SPLIT[bits]
    lows = _bytes(whole & (1 << low) - 1, low, high_first=True).reshape(-1, 2)
    highs = _bytes(whole >> low, high, high_first=True).reshape(-1, 1)
    return np.hstack([lows, highs]).ravel()


def _shifts(bits: int, high_first: bool) -> Codes:
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return shifts[::-1] if high_first else shifts


def _fields(raw: Bytes, bits: int, high_first: bool) -> Codes:
    mask = np.uint8((1 << bits) - 1)
    fields = np.empty((raw.size, 8 // bits), np.uint8)
    for place, shift in enumerate(_shifts(bits, high_first)):  # inner loops over all bytes, not over one
        np.bitwise_and(raw >> shift, mask, out=fields[:, place])
    return fields.ravel()


def _bytes(codes: Codes, bits: int, high_first: bool) -> Bytes:
    fields = codes.reshape(-1, 8 // bits) << _shifts(bits, high_first)
    return np.asarray(np.bitwise_or.reduce(fields, axis=1)).astype(np.uint8)
