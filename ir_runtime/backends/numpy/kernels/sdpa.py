"""Attention, one head and some queries at a time, so that their scores stay in the cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from ....ir.graph import Layer
from ....ir.tensor import Array, Value
from ....ops.sequence.attention import ScaledDotProductAttention
from ... import Fusion, Kernel, MatchContext, Refusal
from ...common.sdpa import supports_sdpa
from ...core.lengths import accepting, attention_lengths
from ...patterns.grouped_query_attention import match_grouped_queries
from .._backend import backend
from ..math.gemm import split_range
from ..threading.parallel import parallel_for, thread_count

__all__: list[str] = []

# Scores that several passes go over while they are in the second cache; and where threads share them, which may
# wait for each other after each call of NumPy.
SCORES, SHARED = 1 << 17, 1 << 19
# At most so many queries are answered for several heads together, however many keys there are.
FEW = 4


@backend.accelerates(ScaledDotProductAttention)
def attention(
    op: ScaledDotProductAttention, query: Value, key: Value, value: Value, *others: Value
) -> Kernel | None:
    """Blocks of queries, one after the other, where the inputs fit."""
    if not supports_sdpa(query, key, value, *others):
        return None

    def kernel(q: Array, k: Array, v: Array, *rest: Array) -> Array:
        mask = None if op.causal or not rest or rest[0].ndim == 0 else rest[0]
        batch = np.broadcast_shapes(q.shape[:2], k.shape[:2], v.shape[:2])
        rows, columns = q.shape[2], k.shape[2]
        if mask is not None:
            full = np.broadcast_shapes(mask.shape, (*batch, rows, columns))
            mask = mask if full == (*batch, rows, columns) else None
        if not columns or not q.shape[3] or (mask is None and rest and rest[0].ndim and not op.causal):
            return op.evaluate(q, k, v, *rest)  # rare: no keys, or a mask that has more than the scores
        factor = rest[1].item() if len(rest) > 1 else 1 / math.sqrt(q.shape[3])
        q, k, v = (np.broadcast_to(x, (*batch, *x.shape[2:])) for x in (q, k, v))
        return attend(q, k, v, mask, factor, op.causal)

    return accepting(kernel, attention_lengths)


@backend.pattern(ScaledDotProductAttention)
def grouped_query_attention(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Attention whose keys and values are repeated for every head of the queries that shares them."""
    return match_grouped_queries(context, layer, attention, attend)


def attend(q: Array, k: Array, v: Array, mask: Array | None, factor: float, causal: bool) -> Array:
    """The mean of values ``[batch, shared heads, keys, values]`` for queries ``[batch, heads, queries, width]``.

    Heads are a multiple of the shared ones.
    """
    batch, heads, rows, width = q.shape
    groups, columns = k.shape[1], k.shape[2]
    hidden = None if mask is None else np.broadcast_to(mask, (batch, heads, rows, columns))
    # What follows puts the heads of a token side by side: so they are written.
    out = np.empty((batch, rows, heads, v.shape[3]), np.float32).transpose(0, 2, 1, 3)
    hide, times, scale = _hide(causal, hidden, columns), heads // groups, np.float32(factor)

    def together(piece: slice) -> None:
        """All queries of some shared heads."""
        keys, values = k[:, piece], v[:, piece]
        count = keys.shape[1] * times
        own = slice(piece.start * times, piece.start * times + count)
        shared = (batch, keys.shape[1], times * rows)
        scores = np.matmul((q[:, own] * scale).reshape(*shared, width), keys.transpose(0, 1, 3, 2))
        seen = scores.reshape(batch, count, rows, columns)
        hide(seen, (slice(None), own), 0)
        sums = _soften(scores)
        np.divide(np.matmul(scores, values), sums, out=(found := np.empty((*shared, v.shape[3]), np.float32)))
        out[:, own] = found.reshape(batch, count, rows, v.shape[3])

    def work(piece: tuple[int, int, int]) -> None:
        """Some queries of one head."""
        n, head, start = piece
        part = slice(start, start + step)
        scores = (q[n, head, part] * scale) @ k[n, head // times].T
        hide(scores, (n, head), start)
        sums = _soften(scores)
        np.divide(scores @ v[n, head // times], sums, out=out[n, head, part])

    size = batch * heads * rows * columns * (width + v.shape[3])
    threads = thread_count(size)
    most = SCORES if threads < 2 else SHARED
    if rows <= FEW or batch * times * rows * columns <= most // 2:
        parallel_for(
            together, split_range(groups, max(threads, batch * heads * rows * columns // most)), size
        )
    else:
        step = max(SCORES // columns, 16)
        parallel_for(work, list(product(range(batch), range(heads), range(0, rows, step))), size)
    return out


def _soften(scores: Array) -> Array:
    """Make exponentials of scores, and return the sum of each row."""
    np.subtract(scores, np.maximum.reduce(scores, axis=-1, keepdims=True), out=scores)
    np.exp(scores, out=scores)
    return np.asarray(np.add.reduce(scores, axis=-1, keepdims=True))


def _hide(causal: bool, mask: Array | None, columns: int) -> Callable[[Array, Any, int], None]:
    """How to hide keys from scores ``[..., queries, keys]`` of some heads, whose first query is given."""

    def by_mask(scores: Array, heads: Any, start: int) -> None:
        assert mask is not None
        part = mask[heads][..., start : start + scores.shape[-2], :]
        if part.dtype == np.bool_:
            np.copyto(scores, -np.inf, where=~part)
        else:
            np.add(scores, part, out=scores)

    def by_place(scores: Array, heads: Any, start: int) -> None:
        later = np.arange(columns) > np.arange(start, start + scores.shape[-2])[:, None]
        np.copyto(scores, -np.inf, where=later)

    def nothing(scores: Array, heads: Any, start: int) -> None:
        pass

    return by_place if causal else nothing if mask is None else by_mask
