"""Scaled dot-product attention, head by head: scores of a block of queries, softmax, and the product with the values.

A block of scores stays in the cache. Keys are transposed and packed in panels for GEMM tiles; the head that was packed
last is kept for the next queries. With few queries (decoding), keys and values are read once, and nothing is packed.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import device
from ..codegen.memory import fetch_add, load_f32, load_i64, store_i64
from ..codegen.vectors import LANES
from ..threading.task import Task, load_args
from ._gemm_tile import SINGLE, TALL, WIDE, gemm_panel
from ._reductions import scale_row, softmax_terms
from ._rows import add_weighted_rows, copy_row, dot_rows, transpose_square

__all__ = ["BLOCKED", "DECODE", "AttentionJob"]

# Keys that several queries of a head read while they are in the L1 cache.
KEY_BLOCK = 32


class Operand(Descriptor):
    """Address of a tensor, and its strides in bytes; all 0 for none."""

    data: i64
    batch_stride: i64
    head_stride: i64
    row_stride: i64


Tensor = Annotated[int, Operand]


class AttentionJob(Descriptor):
    """The job of `BLOCKED` and `DECODE`: ``shared_heads`` query heads share a head of keys; ``zeros`` is a row of zeros."""

    batch: i64
    heads: i64
    shared_heads: i64
    queries: i64
    keys: i64
    key_width: i64
    value_width: i64
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor
    out: Tensor
    causal: i64
    block: i64
    scratch_bytes: i64
    zeros: i64
    factor: f32


@device
def _next_panel(columns: int) -> Any:
    """Return the vectors of the next panel, and its columns, of those that are left."""
    count = (columns + LANES - 1) // LANES
    vectors = WIDE if count >= WIDE else TALL if count >= TALL else SINGLE
    return vectors, min(columns, vectors * LANES)


@device
def _pack_transposed(x: int, stride: int, rows: int, width: int, out: int) -> None:
    """Pack rows of ``width`` numbers as the columns of panels."""
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
    """Pack ``rows`` rows of ``width`` columns in panels."""
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
    """Multiply rows by panels of ``length`` rows, of which ``depth`` are used, up to column ``until``."""
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
    """Set the elements of a row from ``first`` to ``count`` to 0."""
    while first < count:
        some = min(count - first, WIDE * LANES)
        copy_row(none, some, row + 4 * first)
        first += some


def _blocked(call: int) -> None:
    """Compute attention; a unit is a block of queries of one head."""
    job, _, scratch, _, _, counter = load_args(call)
    heads, shared, queries, keys = (
        load_i64(job, AttentionJob.heads),
        load_i64(job, AttentionJob.shared_heads),
        load_i64(job, AttentionJob.queries),
        load_i64(job, AttentionJob.keys),
    )
    width, values = load_i64(job, AttentionJob.key_width), load_i64(job, AttentionJob.value_width)
    q, k, v, mask, out = (
        job + 8 * AttentionJob.query,
        job + 8 * AttentionJob.key,
        job + 8 * AttentionJob.value,
        job + 8 * AttentionJob.mask,
        job + 8 * AttentionJob.out,
    )
    causal, block, none, factor = (
        load_i64(job, AttentionJob.causal),
        load_i64(job, AttentionJob.block),
        load_i64(job, AttentionJob.zeros),
        load_f32(job, AttentionJob.factor),
    )
    lines = (keys + LANES - 1) // LANES * LANES
    wide = (values + LANES - 1) // LANES * LANES
    scores = scratch + fetch_add(counter + 8) * load_i64(job, AttentionJob.scratch_bytes)
    turned_keys = scores + 4 * block * lines
    packed = turned_keys + 4 * lines * width
    about = packed + 4 * wide * keys
    places = about + 8 * block
    offset = places + 8 * block
    store_i64(offset, 0, 0)
    blocks = (queries + block - 1) // block
    units = load_i64(job, AttentionJob.batch) * heads * blocks
    before = -1
    unit = fetch_add(counter)
    while unit < units:
        index, first = unit // blocks, unit % blocks * block
        batch, head = index // heads, index % heads
        rows = min(block, queries - first)
        seen = min(keys, first + rows) if causal != 0 else keys
        held = batch * heads + head // shared
        if held != before:
            keyed, valued = (
                head // shared * load_i64(k, Operand.head_stride),
                head // shared * load_i64(v, Operand.head_stride),
            )
            _pack_transposed(
                load_i64(k, Operand.data) + batch * load_i64(k, Operand.batch_stride) + keyed,
                load_i64(k, Operand.row_stride),
                keys,
                width,
                turned_keys,
            )
            _pack(
                load_i64(v, Operand.data) + batch * load_i64(v, Operand.batch_stride) + valued,
                load_i64(v, Operand.row_stride),
                keys,
                values,
                packed,
            )
            before = held
        start = (
            load_i64(q, Operand.data)
            + batch * load_i64(q, Operand.batch_stride)
            + head * load_i64(q, Operand.head_stride)
            + first * load_i64(q, Operand.row_stride)
        )
        for row in range(rows):
            store_i64(places, row, start + row * load_i64(q, Operand.row_stride))
        _multiply_panels(places, rows, turned_keys, width, width, keys, seen, offset, none, scores, 4 * lines)
        for row in range(rows):
            line, adding = scores + 4 * lines * row, 0
            if load_i64(mask, Operand.data) != 0:
                adding = (
                    load_i64(mask, Operand.data)
                    + batch * load_i64(mask, Operand.batch_stride)
                    + head * load_i64(mask, Operand.head_stride)
                )
                adding += (first + row) * load_i64(mask, Operand.row_stride)
            count = min(keys, first + row + 1) if causal != 0 else keys
            softmax_terms(line, adding, count, line, about + 8 * row, factor)
            _zero_tail(line, count, seen, none)
            store_i64(places, row, line)
        target = (
            load_i64(out, Operand.data)
            + batch * load_i64(out, Operand.batch_stride)
            + head * load_i64(out, Operand.head_stride)
            + first * load_i64(out, Operand.row_stride)
        )
        _multiply_panels(
            places,
            rows,
            packed,
            keys,
            seen,
            values,
            values,
            offset,
            none,
            target,
            load_i64(out, Operand.row_stride),
        )
        for row in range(rows):
            scale_row(
                target + row * load_i64(out, Operand.row_stride),
                values,
                np.float32(1) / load_f32(about, 2 * row),
            )
        unit = fetch_add(counter)


def _decode(call: int) -> None:
    """Compute attention of few queries; a unit is all queries of the heads that share keys."""
    job, _, scratch, _, _, counter = load_args(call)
    heads, shared, queries, keys = (
        load_i64(job, AttentionJob.heads),
        load_i64(job, AttentionJob.shared_heads),
        load_i64(job, AttentionJob.queries),
        load_i64(job, AttentionJob.keys),
    )
    width, values = load_i64(job, AttentionJob.key_width), load_i64(job, AttentionJob.value_width)
    q, k, v, mask, out = (
        job + 8 * AttentionJob.query,
        job + 8 * AttentionJob.key,
        job + 8 * AttentionJob.value,
        job + 8 * AttentionJob.mask,
        job + 8 * AttentionJob.out,
    )
    causal, none, factor = (
        load_i64(job, AttentionJob.causal),
        load_i64(job, AttentionJob.zeros),
        load_f32(job, AttentionJob.factor),
    )
    scores = scratch + fetch_add(counter + 8) * load_i64(job, AttentionJob.scratch_bytes)
    lines = (keys + LANES - 1) // LANES * LANES
    about = scores + 4 * lines * shared * queries
    groups = heads // shared
    unit = fetch_add(counter)
    while unit < load_i64(job, AttentionJob.batch) * groups:
        batch, group = unit // groups, unit % groups
        key = (
            load_i64(k, Operand.data)
            + batch * load_i64(k, Operand.batch_stride)
            + group * load_i64(k, Operand.head_stride)
        )
        value = (
            load_i64(v, Operand.data)
            + batch * load_i64(v, Operand.batch_stride)
            + group * load_i64(v, Operand.head_stride)
        )
        query = (
            load_i64(q, Operand.data)
            + batch * load_i64(q, Operand.batch_stride)
            + group * shared * load_i64(q, Operand.head_stride)
        )
        target = (
            load_i64(out, Operand.data)
            + batch * load_i64(out, Operand.batch_stride)
            + group * shared * load_i64(out, Operand.head_stride)
        )
        for first in range(0, keys, KEY_BLOCK):
            some = min(KEY_BLOCK, keys - first)
            for line in range(shared * queries):
                source = (
                    query
                    + line // queries * load_i64(q, Operand.head_stride)
                    + line % queries * load_i64(q, Operand.row_stride)
                )
                place = scores + 4 * (lines * line + first)
                dot_rows(
                    source,
                    key + first * load_i64(k, Operand.row_stride),
                    load_i64(k, Operand.row_stride),
                    some,
                    width,
                    place,
                )
        for line in range(shared * queries):
            head, row = group * shared + line // queries, line % queries
            place, adding = scores + 4 * lines * line, 0
            if load_i64(mask, Operand.data) != 0:
                adding = (
                    load_i64(mask, Operand.data)
                    + batch * load_i64(mask, Operand.batch_stride)
                    + head * load_i64(mask, Operand.head_stride)
                    + row * load_i64(mask, Operand.row_stride)
                )
            count = min(keys, row + 1) if causal != 0 else keys
            softmax_terms(place, adding, count, place, about, factor)
            scale_row(place, count, np.float32(1) / load_f32(about, 0))
            _zero_tail(place, count, keys, none)
            _zero_tail(
                target
                + line // queries * load_i64(out, Operand.head_stride)
                + row * load_i64(out, Operand.row_stride),
                0,
                values,
                none,
            )
        for first in range(0, keys, KEY_BLOCK):
            some = min(KEY_BLOCK, keys - first)
            for line in range(shared * queries):
                goal = (
                    target
                    + line // queries * load_i64(out, Operand.head_stride)
                    + line % queries * load_i64(out, Operand.row_stride)
                )
                place = scores + 4 * (lines * line + first)
                add_weighted_rows(
                    place,
                    value + first * load_i64(v, Operand.row_stride),
                    load_i64(v, Operand.row_stride),
                    some,
                    values,
                    goal,
                )
        unit = fetch_add(counter)


BLOCKED, DECODE = Task(_blocked), Task(_decode)
