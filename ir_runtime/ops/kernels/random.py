"""Pseudorandom generators of 32-bit integers: Philox and Mersenne Twister."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..._util.arrays import Array

__all__ = [
    "KEY_STEPS",
    "MULTIPLIERS",
    "ROUNDS",
    "mersenne_twister",
    "mersenne_twister_of_sequence",
    "philox",
    "seed_sequence",
]

Words = Array

# From "Parallel Random Numbers: As Easy as 1, 2, 3", by Salmon, Moraes, Dror and Shaw.
ROUNDS = 10
MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
KEY_STEPS = 0x9E3779B9, 0xBB67AE85
STATE_WORDS = 624
# The number of blocks encrypted per chunk, which stay in the cache.
TOGETHER = 1 << 14
LOW, HALF = np.uint64(2**32 - 1), np.uint64(32)


def philox(key: int, stream: int, count: int, start: int = 0) -> Words:
    """Return ``count`` integers of Philox 4x32-10 with the given key, from one of 2 ** 64 streams.

    The first ``start`` blocks of four integers are skipped. After 2 ** 64 blocks, the next stream begins.

    >>> philox(150, 10, 3)
    array([3763977835, 2057770810, 2532850516], dtype=uint32)
    """
    streams_before, first_block = divmod(start, 2**64)
    words = np.empty((-(-count // 4), 4), np.uint32)
    for begin in range(0, len(words), TOGETHER):
        chunk = words[begin : begin + TOGETHER]
        blocks = np.arange(begin, begin + len(chunk), dtype=np.uint64) + np.uint64(first_block)
        _encrypt(blocks, (stream + streams_before) % 2**64, key, chunk)
    return words.ravel()[:count]


def _encrypt(blocks: Array, stream: int, key: int, out: Words) -> None:
    """Write the four integers of each block of a stream to ``out``."""
    a, b = blocks & LOW, blocks >> HALF
    c, d = np.full_like(a, stream % 2**32), np.full_like(a, stream >> 32)
    one, two = np.empty_like(a), np.empty_like(a)
    first, second = key % 2**32, key >> 32
    for _ in range(ROUNDS):
        np.multiply(a, MULTIPLIERS[0], out=one)
        np.multiply(c, MULTIPLIERS[1], out=two)
        for product, high, low, word in ((two, a, b, first), (one, c, d, second)):
            np.right_shift(product, HALF, out=high)
            np.bitwise_xor(high, low, out=high)
            np.bitwise_xor(high, np.uint64(word), out=high)
            np.bitwise_and(product, LOW, out=low)
        first, second = (first + KEY_STEPS[0]) % 2**32, (second + KEY_STEPS[1]) % 2**32
    for column, numbers in enumerate((a, b, c, d)):
        out[:, column] = numbers


def mersenne_twister(seed: int, count: int) -> Words:
    """Return the first ``count`` integers of MT19937, seeded with the low 32 bits of ``seed``.

    >>> mersenne_twister(5489, 2)
    array([3499211612,  581869302], dtype=uint32)
    """
    state = np.random.RandomState(seed & 2**32 - 1)
    return np.asarray(state.randint(0, 2**32, count, np.uint32))


def mersenne_twister_of_sequence(seeds: tuple[int, ...], count: int) -> Words:
    """Return the first ``count`` integers of MT19937, seeded with ``std::seed_seq`` of C++.

    >>> mersenne_twister_of_sequence((1, 2, 3), 2)
    array([1710881851,  703781052], dtype=uint32)
    """
    state = np.random.RandomState()
    state.set_state(("MT19937", np.array(seed_sequence(seeds, STATE_WORDS), np.uint32), STATE_WORDS, 0, 0.0))
    return np.asarray(state.randint(0, 2**32, count, np.uint32))


@lru_cache(maxsize=64)
def seed_sequence(seeds: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return the ``count`` integers that ``std::seed_seq`` of C++ generates from seeds; ``count`` is at least 623.

    The algorithm is from the C++ standard, [rand.util.seedseq]; seeds are taken modulo 2 ** 32.
    """
    words, shift = [0x8B8B8B8B] * count, (count - 11) // 2
    added = [len(seeds), *(k % count + seed for k, seed in enumerate(seeds, 1))]
    for k in range(max(len(added), count)):
        here, near, far = k % count, (k + shift) % count, (k + shift + 11) % count
        one = 1664525 * _mix(words[here] ^ words[near] ^ words[here - 1]) & 2**32 - 1
        two = one + (added[k] if k < len(added) else here) & 2**32 - 1
        words[near], words[far], words[here] = (
            words[near] + one & 2**32 - 1,
            words[far] + two & 2**32 - 1,
            two,
        )
    for k in range(max(len(added), count), max(len(added), count) + count):
        here, near, far = k % count, (k + shift) % count, (k + shift + 11) % count
        one = 1566083941 * _mix(words[here] + words[near] + words[here - 1] & 2**32 - 1) & 2**32 - 1
        two = one - here & 2**32 - 1
        words[near], words[far], words[here] = words[near] ^ one, words[far] ^ two, two
    return tuple(words)


def _mix(word: int) -> int:
    return word ^ word >> 27
