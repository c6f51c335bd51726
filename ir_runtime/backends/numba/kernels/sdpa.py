"""Attention: scores of queries and keys, softmax, and the mean of the values, without the scores ever being whole."""

from __future__ import annotations

import math
import weakref

import numpy as np

from ....ir.graph import Layer
from ....ir.tensor import Array, Value
from ....ops.sequence.attention import ScaledDotProductAttention
from ... import Fusion, Kernel, MatchContext, Refusal
from ...common.sdpa import supports_sdpa
from ...core.lengths import accepting, attention_lengths
from ...patterns.grouped_query_attention import match_grouped_queries
from .._backend import backend
from ..codegen.vectors import LANES
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED
from ._attention import (
    BATCH,
    BLOCK,
    BLOCKED,
    CAUSAL,
    DECODE,
    FACTOR,
    MASK,
    OUT,
    SCRATCH,
    VALUES,
    WORDS,
    ZEROS,
    K,
    Q,
    V,
)  # fmt: skip
from ._gemm_tile import WIDE

__all__ = ["grouped_attention"]

# Scores of a block; with keys and values they fit the second cache.
BLOCK_SCORES = 1 << 16
# At most so many queries are answered without packing keys.
MAX_DECODE_ROWS = 4
# Fewer multiplications than this are not worth a second thread.
MIN_PARALLEL_WORK = 1 << 16
_ZEROS = np.zeros(WIDE * LANES, np.float32)


@backend.accelerates(ScaledDotProductAttention)
def attention(
    op: ScaledDotProductAttention, query: Value, key: Value, value: Value, *others: Value
) -> Kernel | None:
    """Return a kernel for what `supports_sdpa`."""
    if not supports_sdpa(query, key, value, *others):
        return None

    def kernel(q: Array, k: Array, v: Array, *rest: Array) -> Array:
        mask = None if op.causal or not rest or rest[0].ndim == 0 else rest[0]
        batch = np.broadcast_shapes(q.shape[:2], k.shape[:2], v.shape[:2])
        full = (*batch, q.shape[2], k.shape[2])
        if mask is not None and np.broadcast_shapes(mask.shape, full) != full:
            return op.evaluate(q, k, v, *rest)  # rare: a mask that has more than the scores
        factor = rest[1].item() if len(rest) > 1 else 1 / math.sqrt(q.shape[3]) if q.shape[3] else math.inf
        q, k, v = (
            x if x.shape[:2] == batch else np.broadcast_to(x, (*batch, *x.shape[2:])) for x in (q, k, v)
        )
        if not q.size > 0 or not v.size > 0:
            return op.evaluate(q, k, v, *rest)
        return grouped_attention(q, k, v, mask, factor, op.causal)

    return accepting(kernel, attention_lengths)


@backend.pattern(ScaledDotProductAttention)
def grouped_query_attention(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Attention whose keys and values are repeated for every head of the queries that shares them."""
    return match_grouped_queries(context, layer, attention, grouped_attention)


def grouped_attention(q: Array, k: Array, v: Array, mask: Array | None, factor: float, causal: bool) -> Array:
    """The mean of values ``[batch, shared heads, keys, values]`` for queries ``[batch, heads, queries, width]``.

    Heads are a multiple of the shared ones. The result lies so that the heads of a token are side by side.
    """
    batch, heads, rows, width = q.shape
    groups, keys, values = k.shape[1], k.shape[2], v.shape[3]
    out = np.empty((batch, rows, heads, values), np.float32)
    q, k, v = map(_contiguous_rows, (q, k, v))
    job = np.zeros(WORDS, np.int64)
    job[BATCH : VALUES + 1] = batch, heads, heads // groups, rows, keys, width, values
    for place, array in ((Q, q), (K, k), (V, v), (OUT, out.transpose(0, 2, 1, 3))):
        job[place : place + 4] = array.ctypes.data, *array.strides[:3]
    if mask is not None:
        mask = _additive_mask(mask)
        if mask.shape[-1] != keys:
            mask = np.repeat(mask, keys, -1)
        added = np.broadcast_to(mask, (batch, heads, rows, keys))
        job[MASK : MASK + 4] = added.ctypes.data, *added.strides[:3]
    job[CAUSAL], job[ZEROS] = causal, _ZEROS.ctypes.data
    job.view(np.float32)[2 * FACTOR] = factor
    lines, few = -(-keys // LANES) * LANES, rows <= MAX_DECODE_ROWS
    worth = batch * heads * rows * keys * (width + values) >= MIN_PARALLEL_WORK
    if few:
        units, size = batch * groups, lines * heads // groups * rows
    else:
        block = _block(rows, keys, batch * heads)
        job[BLOCK] = block
        units = batch * heads * -(-rows // block)
        size = block * lines + lines * width + (-(-values // LANES) * LANES) * keys + 4 * block
    size = -(-(size + 32) // 16) * 16
    job[SCRATCH] = 4 * size
    count = min(threads(), units) if worth else 1
    scratch = np.empty(count * size, np.float32)
    parallel_for((DECODE if few else BLOCKED).address, job, out.reshape(-1), scratch, UNUSED, UNUSED, count)
    return out.transpose(0, 2, 1, 3)


def _block(rows: int, keys: int, heads: int) -> int:
    """Queries at a time: what the cache has room for, and no fewer parts than threads."""
    most = max(BLOCK_SCORES // keys, 16)
    parts = -(-rows // most)
    if heads % threads():
        parts = max(parts, min(threads(), -(-rows // 32)))
    return -(-rows // parts)


def _contiguous_rows(x: Array) -> Array:
    """The same with numbers of a row side by side."""
    return x if x.strides[-1] == x.itemsize or x.shape[-1] == 1 else np.ascontiguousarray(x)


_last: tuple[weakref.ref[Array], Array] | None = None


def _additive_mask(mask: Array) -> Array:
    """A mask as what is added to scores; that of truth values is kept for the next layer, which often has the same."""
    global _last
    if mask.dtype != np.bool_:
        return _contiguous_rows(mask)
    last = _last
    if last is not None and last[0]() is mask:
        return last[1]
    added = np.where(mask, np.float32(0), np.float32(-np.inf))
    _last = weakref.ref(mask), added
    return added
