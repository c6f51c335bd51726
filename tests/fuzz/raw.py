"""Byte-level changes without knowledge of the format."""

from __future__ import annotations

from random import Random

from .values import MARKUP

__all__ = ["change"]

LONGEST = 400_000
"""Bytes that a file may grow to by repeating its parts."""


def change(data: bytes, other: bytes, rng: Random) -> bytes:
    """Change a file once; ``other`` is a second file to take parts from."""
    if not data:
        return rng.randbytes(rng.randint(0, 40))
    return rng.choice(CHANGES)(data, other, rng)[:LONGEST]


def _flip(data: bytes, other: bytes, rng: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _replace(data: bytes, other: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + rng.randbytes(rng.randint(0, 9)) + data[start + rng.randint(0, 9) :]


def _token(data: bytes, other: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + rng.choice(MARKUP) + data[start + rng.randint(0, 8) :]


def _digit(data: bytes, other: bytes, rng: Random) -> bytes:
    places = [i for i, byte in enumerate(data[:LONGEST]) if 48 <= byte <= 57]
    if not places:
        return _flip(data, other, rng)
    start = rng.choice(places)
    return (
        data[:start] + rng.choice((b"0", b"9", b"-1", b"99", b"9" * 12, b"9" * 20, b"")) + data[start + 1 :]
    )


def _cut(data: bytes, other: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _remove(data: bytes, other: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randint(1, 400) :]


def _repeat(data: bytes, other: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(data))
    block = data[start : start + rng.randint(1, 300)]
    return data[:start] + block * rng.choice((2, 3, 50, 1000)) + data[start:]


def _splice(data: bytes, other: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(other) or 1)
    return data[: rng.randrange(len(data))] + other[start:]


def _graft(data: bytes, other: bytes, rng: Random) -> bytes:
    at, start = rng.randrange(len(data)), rng.randrange(len(other) or 1)
    return data[:at] + other[start : start + rng.randint(1, 600)] + data[at:]


CHANGES = (
    _flip,
    _flip,
    _replace,
    _replace,
    _token,
    _token,
    _digit,
    _digit,
    _digit,
    _cut,
    _remove,
    _repeat,
    _splice,
    _graft,
)
