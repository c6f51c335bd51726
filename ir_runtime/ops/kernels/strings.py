"""Packed strings in OpenVINO's format.

The number of strings, then one more offset than strings, as 32-bit integers, then the strings in UTF-8, each between
two offsets::

    2   0 2 5   h i y o u
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..._util.arrays import Array

__all__ = ["header_size", "pack_strings", "decode", "unpack_strings"]

Bytes = Array
Strings = Array

_WORD = np.dtype("<i4")


def header_size(count: int) -> int:
    """Return the number of bytes that precede the first of ``count`` strings."""
    return (count + 2) * _WORD.itemsize


def unpack_strings(raw: Bytes, count: int) -> Strings:
    """Unpack ``count`` strings from bytes into an array of `str` with ``dtype=object``.

    >>> unpack_strings(pack_strings(np.array(["hi", "you"])), 2)
    array(['hi', 'you'], dtype=object)

    Raises:
        ValueError: if the bytes do not hold ``count`` strings.
    """
    header = header_size(count)
    number, *bounds = raw[:header].view(_WORD).tolist()
    if number != count:
        raise ValueError(f"they declare {number} strings, expected {count}")
    content = raw[header:].tobytes()
    if bounds[0] != 0 or bounds != sorted(bounds) or bounds[-1] > len(content):
        raise ValueError(f"the offsets in them do not increase from 0 to at most {len(content)}")
    strings = np.empty(count, object)
    strings[:] = [decode(content[a:b]) for a, b in pairwise(bounds)]
    return strings


def pack_strings(strings: Strings) -> Bytes:
    r"""Pack strings into bytes.

    >>> pack_strings(np.array(["hi", "you"])).tobytes()
    b'\x02\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x05\x00\x00\x00hiyou'
    """
    encoded = [str(text).encode("utf-8", "surrogateescape") for text in strings.flat]
    bounds = np.cumsum([0, *map(len, encoded)])
    header = np.array([len(encoded), *bounds], _WORD)
    return np.frombuffer(header.tobytes() + b"".join(encoded), np.uint8)


def decode(text: str | bytes) -> str:
    """Decode UTF-8 bytes, with invalid bytes as surrogates; return `str` unchanged."""
    return text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
