"""Texts as OpenVINO stores them. Knows nothing of the IR.

A number of texts and one offset more than that, all of them 32 bits wide, then the texts in UTF-8,
each from its own offset to the next one::

    2   0 2 5   h i y o u
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["header_size", "pack_texts", "text_of", "unpack_texts"]

Bytes = NDArray[Any]
Texts = NDArray[Any]

_WORD = np.dtype("<i4")


def header_size(count: int) -> int:
    """Bytes before the first of ``count`` texts."""
    return (count + 2) * _WORD.itemsize


def unpack_texts(raw: Bytes, count: int) -> Texts:
    """The ``count`` texts in an array of bytes, as `str` in an array of ``dtype=object``.

    >>> unpack_texts(pack_texts(np.array(["hi", "you"])), 2)
    array(['hi', 'you'], dtype=object)

    Raises:
        ValueError: if the bytes are not that many texts.
    """
    header = header_size(count)
    found, *bounds = raw[:header].view(_WORD).tolist()
    if found != count:
        raise ValueError(f"they declare {found} strings, expected {count}")
    content = raw[header:].tobytes()
    if bounds[0] != 0 or bounds != sorted(bounds) or bounds[-1] > len(content):
        raise ValueError(f"the offsets in them do not increase from 0 to at most {len(content)}")
    texts = np.empty(count, object)
    texts[:] = [text_of(content[a:b]) for a, b in pairwise(bounds)]
    return texts


def pack_texts(texts: Texts) -> Bytes:
    r"""The bytes of texts, the other way round.

    >>> pack_texts(np.array(["hi", "you"])).tobytes()
    b'\x02\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x05\x00\x00\x00hiyou'
    """
    encoded = [str(text).encode("utf-8", "surrogateescape") for text in texts.flat]
    bounds = np.cumsum([0, *map(len, encoded)])
    header = np.array([len(encoded), *bounds], _WORD)
    return np.frombuffer(header.tobytes() + b"".join(encoded), np.uint8)


def text_of(text: str | bytes) -> str:
    """A text, from UTF-8 if need be; bytes that are none survive as surrogates."""
    return text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
