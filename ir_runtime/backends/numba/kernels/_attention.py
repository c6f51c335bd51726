"""Attention of one head after the other: scores of some queries, their softmax, and the product with the values.

Scores and what they are made from stay in the cache. Keys are turned and packed in panels for the tiles of a
product; the head that was packed last is kept, for the next queries. With few queries, keys and
values are read once as they lie, and nothing is packed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..codegen.language import device
from ..codegen.memory import fetch_add, load_f32, load_i64, store_i64
from ..codegen.vectors import LANES
from ..threading.parallel import parallel_for
from ..threading.task import Task, load_args
from ._gemm_tile import SINGLE, TALL, WIDE, gemm_panel
from ._reductions import scale_row, softmax_terms
from ._rows import add_weighted_rows, copy_row, dot_rows, transpose_square

__all__ = ["BLOCKED", "BLOCK", "DECODE", "WORDS", "parallel_for"]

BATCH, HEADS, SHARED, QUERIES, KEYS, WIDTH, VALUES = range(7)
"""Words of a job: how many there are; ``SHARED`` query heads share a head of keys; widths of keys and values."""
Q, K, V, MASK, OUT = 7, 11, 15, 19, 23
"""From here on, an address, and bytes between batches, heads and rows."""
CAUSAL, BLOCK, SCRATCH, ZEROS, FACTOR, WORDS = 27, 28, 29, 30, 31, 32
"""Whether later keys are hidden; queries at a time; bytes of scratch for a thread; a row of zeros; the factor."""
# Keys that several queries of a head read while they are in the first cache.
KEY_BLOCK = 32


@device
def _next_panel(columns: int) -> Any:
    """Vectors of the next panel, and how many columns it has of those that are left."""
    count = (columns + LANES - 1) // LANES
    vectors = WIDE if count >= WIDE else TALL if count >= TALL else SINGLE
    return vectors, min(columns, vectors * LANES)


@device
def _pack_transposed(x: int, stride: int, rows: int, width: int, out: int) -> None:
    """Panels whose columns are rows of ``width`` numbers."""
    done = 0
    while done < rows:
        vectors, columns = _next_panel(rows - done)
        apart = 4 * LANES * vectors
        for first in range(0, columns, LANES):
            some = min(LANES, columns - first)
            whole = width // LANES * LANES if some == LANES else 0
            source, target = x + (done + first) * stride, out + 4 * first
            for k in range(0, whole, LANES):
                transpose_square(source + 4 * k, stride, target + k * apart, apart)
            for row in range(some):
                for k in range(whole, width):
                    copy_row(source + row * stride + 4 * k, 1, target + k * apart + 4 * row)
            for k in range(width if some < LANES else 0):
                for row in range(some, LANES):
                    copy_row(source, 1, target + k * apart + 4 * row)
        out += apart * width
        done += columns


@device
def _pack(x: int, stride: int, rows: int, width: int, out: int) -> None:
    """Panels with ``rows`` rows of ``width`` columns."""
    done = 0
    while done < width:
        vectors, columns = _next_panel(width - done)
        for row in range(rows):
            copy_row(x + row * stride + 4 * done, columns, out + 4 * LANES * vectors * row)
        out += 4 * LANES * vectors * rows
        done += columns


@device
def _multiply_panels(
    places: int, rows: int, panels: int, length: int, depth: int, columns: int, until: int, offset: int,
    none: int, out: int, stride: int,
) -> None:  # fmt: skip
    """Rows by panels that are ``length`` rows long, of which ``depth`` count; those with columns before ``until``."""
    done = 0
    while done < until:
        vectors, some = _next_panel(columns - done)
        last = some - (vectors - 1) * LANES
        gemm_panel(
            vectors, rows, places, 0, offset, 1, depth, panels, out + 4 * done, stride, none, 0, last, -np.inf,
            np.inf,
        )  # fmt: skip
        panels += 4 * LANES * vectors * length
        done += some


@device
def _zero_tail(row: int, first: int, count: int, none: int) -> None:
    """Numbers behind the first ones become 0."""
    while first < count:
        some = min(count - first, WIDE * LANES)
        copy_row(none, some, row + 4 * first)
        first += some


def _blocked(call: int) -> None:
    """A unit is some queries of one head."""
    job, _, scratch, _, _, counter = load_args(call)
    heads, shared, queries, keys = load_i64(job, 1), load_i64(job, 2), load_i64(job, 3), load_i64(job, 4)
    width, values = load_i64(job, 5), load_i64(job, 6)
    q, k, v, mask, out = job + 8 * 7, job + 8 * 11, job + 8 * 15, job + 8 * 19, job + 8 * 23
    causal, block, none, factor = load_i64(job, 27), load_i64(job, 28), load_i64(job, 30), load_f32(job, 62)
    lines = (keys + LANES - 1) // LANES * LANES
    wide = (values + LANES - 1) // LANES * LANES
    scores = scratch + fetch_add(counter + 8) * load_i64(job, 29)
    turned_keys = scores + 4 * block * lines
    packed = turned_keys + 4 * lines * width
    about = packed + 4 * wide * keys
    places = about + 8 * block
    offset = places + 8 * block
    store_i64(offset, 0, 0)
    blocks = (queries + block - 1) // block
    units = load_i64(job, 0) * heads * blocks
    before = -1
    unit = fetch_add(counter)
    while unit < units:
        index, first = unit // blocks, unit % blocks * block
        batch, head = index // heads, index % heads
        rows = min(block, queries - first)
        seen = min(keys, first + rows) if causal != 0 else keys
        held = batch * heads + head // shared
        if held != before:
            keyed, valued = head // shared * load_i64(k, 2), head // shared * load_i64(v, 2)
            _pack_transposed(
                load_i64(k, 0) + batch * load_i64(k, 1) + keyed, load_i64(k, 3), keys, width, turned_keys
            )
            _pack(load_i64(v, 0) + batch * load_i64(v, 1) + valued, load_i64(v, 3), keys, values, packed)
            before = held
        start = load_i64(q, 0) + batch * load_i64(q, 1) + head * load_i64(q, 2) + first * load_i64(q, 3)
        for row in range(rows):
            store_i64(places, row, start + row * load_i64(q, 3))
        _multiply_panels(places, rows, turned_keys, width, width, keys, seen, offset, none, scores, 4 * lines)
        for row in range(rows):
            line, adding = scores + 4 * lines * row, 0
            if load_i64(mask, 0) != 0:
                adding = load_i64(mask, 0) + batch * load_i64(mask, 1) + head * load_i64(mask, 2)
                adding += (first + row) * load_i64(mask, 3)
            count = min(keys, first + row + 1) if causal != 0 else keys
            softmax_terms(line, adding, count, line, about + 8 * row, factor)
            _zero_tail(line, count, seen, none)
            store_i64(places, row, line)
        target = (
            load_i64(out, 0) + batch * load_i64(out, 1) + head * load_i64(out, 2) + first * load_i64(out, 3)
        )
        _multiply_panels(
            places, rows, packed, keys, seen, values, values, offset, none, target, load_i64(out, 3)
        )
        for row in range(rows):
            scale_row(target + row * load_i64(out, 3), values, np.float32(1) / load_f32(about, 2 * row))
        unit = fetch_add(counter)


def _decode(call: int) -> None:
    """A unit is all queries of the heads that share keys."""
    job, _, scratch, _, _, counter = load_args(call)
    heads, shared, queries, keys = load_i64(job, 1), load_i64(job, 2), load_i64(job, 3), load_i64(job, 4)
    width, values = load_i64(job, 5), load_i64(job, 6)
    q, k, v, mask, out = job + 8 * 7, job + 8 * 11, job + 8 * 15, job + 8 * 19, job + 8 * 23
    causal, none, factor = load_i64(job, 27), load_i64(job, 30), load_f32(job, 62)
    scores = scratch + fetch_add(counter + 8) * load_i64(job, 29)
    lines = (keys + LANES - 1) // LANES * LANES
    about = scores + 4 * lines * shared * queries
    groups = heads // shared
    unit = fetch_add(counter)
    while unit < load_i64(job, 0) * groups:
        batch, group = unit // groups, unit % groups
        key = load_i64(k, 0) + batch * load_i64(k, 1) + group * load_i64(k, 2)
        value = load_i64(v, 0) + batch * load_i64(v, 1) + group * load_i64(v, 2)
        query = load_i64(q, 0) + batch * load_i64(q, 1) + group * shared * load_i64(q, 2)
        target = load_i64(out, 0) + batch * load_i64(out, 1) + group * shared * load_i64(out, 2)
        for first in range(0, keys, KEY_BLOCK):
            some = min(KEY_BLOCK, keys - first)
            for line in range(shared * queries):
                source = query + line // queries * load_i64(q, 2) + line % queries * load_i64(q, 3)
                place = scores + 4 * (lines * line + first)
                dot_rows(source, key + first * load_i64(k, 3), load_i64(k, 3), some, width, place)
        for line in range(shared * queries):
            head, row = group * shared + line // queries, line % queries
            place, adding = scores + 4 * lines * line, 0
            if load_i64(mask, 0) != 0:
                adding = (
                    load_i64(mask, 0)
                    + batch * load_i64(mask, 1)
                    + head * load_i64(mask, 2)
                    + row * load_i64(mask, 3)
                )
            count = min(keys, row + 1) if causal != 0 else keys
            softmax_terms(place, adding, count, place, about, factor)
            scale_row(place, count, np.float32(1) / load_f32(about, 0))
            _zero_tail(place, count, keys, none)
            _zero_tail(target + line // queries * load_i64(out, 2) + row * load_i64(out, 3), 0, values, none)
        for first in range(0, keys, KEY_BLOCK):
            some = min(KEY_BLOCK, keys - first)
            for line in range(shared * queries):
                goal = target + line // queries * load_i64(out, 2) + line % queries * load_i64(out, 3)
                place = scores + 4 * (lines * line + first)
                add_weighted_rows(place, value + first * load_i64(v, 3), load_i64(v, 3), some, values, goal)
        unit = fetch_add(counter)


BLOCKED, DECODE = Task(_blocked), Task(_decode)
