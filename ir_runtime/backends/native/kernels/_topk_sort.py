"""Many of the best elements of rows: their order is that of integers, which are sorted byte by byte (LSD radix sort).

An element is a word: above, its bits as a number that grows as elements get worse; below, its index. NaN counts as larger
than any number. Of long rows, the words of all but the best are left out first, by their highest bits.
"""

from __future__ import annotations

from ..codegen.language import device
from ..codegen.memory import load_f32, load_i64, scratch_memory, store_f32, store_i64
from ..threading.task import Task, each_unit, load_args
from ._indices import load_index, store_index
from ._topk_job import TopKJob

__all__ = ["SORT_ROWS"]

# Counters of the highest bits, and how many times as long as the result a row is whose elements are counted by them.
BUCKETS = 1 << 12
MIN_RATIO = 4
_INDEX, _LEAST, _MOST = (1 << 32) - 1, -(1 << 31), (1 << 31) - 1
_INFINITE = 0x7F800000


@device
def _rank(bits: int, largest: bool) -> int:
    """Return an integer of 32 bits for the bits of an f32, which is less for a better one; equal ones have the same."""
    if bits & _MOST > _INFINITE:
        found = _MOST
    elif bits == _LEAST:  # -0
        found = 0
    else:
        found = bits ^ _MOST if bits < 0 else bits
    return (_MOST - found if largest else found - _LEAST) & _INDEX


@device
def _clear(counters: int, count: int) -> None:
    for place in range(count):
        store_i64(counters, place, 0)


@device
def _count(counters: int, place: int) -> None:
    store_i64(counters, place, load_i64(counters, place) + 1)


@device
def _sort(words: int, other: int, count: int, counters: int) -> int:
    """Sort words by their upper halves, and return where they are then; the other memory is as large."""
    _clear(counters, 1024)
    for place in range(count):
        word = load_i64(words, place)
        for byte in range(4):
            _count(counters, 256 * byte + ((word >> (32 + 8 * byte)) & 255))
    for byte in range(4):
        shift, counts = 32 + 8 * byte, counters + 2048 * byte
        if load_i64(counts, (load_i64(words, 0) >> shift) & 255) == count:
            continue  # all have the same
        start = 0
        for digit in range(256):
            more = load_i64(counts, digit)
            store_i64(counts, digit, start)
            start += more
        for place in range(count):
            word = load_i64(words, place)
            digit = (word >> shift) & 255
            target = load_i64(counts, digit)
            store_i64(other, target, word)
            store_i64(counts, digit, target + 1)
        words, other = other, words
    return words


@device
def _best(words: int, length: int, kept: int, counters: int) -> int:
    """Leave at least as many of the best words as are kept, in order; return how many."""
    _clear(counters, BUCKETS)
    for place in range(length):
        _count(counters, (load_i64(words, place) >> 52) & (BUCKETS - 1))
    bucket, total = 0, load_i64(counters, 0)
    while total < kept:
        bucket += 1
        total += load_i64(counters, bucket)
    left = 0
    for place in range(length):
        word = load_i64(words, place)
        store_i64(words, left, word)
        left += 1 if (word >> 52) & (BUCKETS - 1) <= bucket else 0
    return left


def _sort_rows(call: int) -> None:
    """Choose elements; a unit is a row."""
    address, out, x, _, _, _ = load_args(call)
    job = TopKJob.at(address)
    rows, length, kept = (
        job.outer,
        job.length,
        job.count,
    )
    largest, size = job.largest != 0, job.index_size
    scratch = scratch_memory(16 * length + 8 * BUCKETS)
    other, counters = scratch + 8 * length, scratch + 16 * length
    for row in each_unit(call, rows):
        line, indices = x + 4 * length * row, out + size * kept * row
        values = out + job.values + 4 * kept * row
        for index in range(length):
            store_i64(scratch, index, (_rank(load_index(line, index, 4), largest) << 32) | index)
        left = length
        if length >= MIN_RATIO * kept and length >= BUCKETS:
            left = _best(scratch, length, kept, counters)
        words = _sort(scratch, other, left, counters)
        if job.by_index != 0:
            for place in range(kept):
                index = load_i64(words, place) & _INDEX
                store_i64(words, place, (index << 32) | index)
            words = _sort(words, other if words == scratch else scratch, kept, counters)
        for place in range(kept):
            index = load_i64(words, place) & _INDEX
            store_f32(values, place, load_f32(line, index))
            store_index(indices, place, index, size)


SORT_ROWS = Task(_sort_rows)
"""Stores the indices and the elements of the best of each row of A, whatever NaN there is."""
