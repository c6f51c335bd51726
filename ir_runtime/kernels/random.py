"""Pseudo-random generators of 32-bit integers: Philox and Mersenne Twister."""

from __future__ import annotations

import numpy as np

from ..arrays import Array

__all__ = ["mersenne_twister", "philox"]

Words = Array

# From "Parallel Random Numbers: As Easy as 1, 2, 3", by Salmon, Moraes, Dror and Shaw.
ROUNDS = 10
MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
KEY_STEPS = 0x9E3779B9, 0xBB67AE85
LOW, HALF = np.uint64(2**32 - 1), np.uint64(32)


def philox(key: int, stream: int, count: int, start: int = 0) -> Words:
    """Return ``count`` integers of Philox 4x32-10 for a key, in one of 2 ** 64 streams.

    ``start`` blocks of four integers are skipped; each 2 ** 64 of them lead to the next stream.

    >>> philox(150, 10, 3)
    array([3763977835, 2057770810, 2532850516], dtype=uint32)
    """
    streams_before, first_block = divmod(start, 2**64)
    blocks = np.arange(-(-count // 4), dtype=np.uint64) + np.uint64(first_block)
    streams = np.full_like(blocks, (stream + streams_before) % 2**64)
    a, b, c, d = blocks & LOW, blocks >> HALF, streams & LOW, streams >> HALF
    first, second = key & 2**32 - 1, key >> 32
    for _ in range(ROUNDS):
        one, two = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b = two >> HALF ^ b ^ np.uint64(first), two & LOW
        c, d = one >> HALF ^ d ^ np.uint64(second), one & LOW
        first, second = first + KEY_STEPS[0] & 2**32 - 1, second + KEY_STEPS[1] & 2**32 - 1
    return np.stack((a, b, c, d), -1).astype(np.uint32).ravel()[:count]


def mersenne_twister(seed: int, count: int) -> Words:
    """Return the first ``count`` integers of MT19937 for the low 32 bits of a seed.

    >>> mersenne_twister(5489, 2)
    array([3499211612,  581869302], dtype=uint32)
    """
    state = np.random.RandomState(seed & 2**32 - 1)
    return np.asarray(state.randint(0, 2**32, count, np.uint32))
