"""Scaled dot product attention (SDPA), one head and some queries at a time, so that scores stay in the cache."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from ....ir.graph import Layer
from ....ir.tensor import Array, Value
from ....ops.sequence.attention import ScaledDotProductAttention
from ... import Fusion, Kernel, MatchContext, Refusal
from ...common.sdpa import sdpa_kernel
from ...patterns.grouped_query_attention import match_grouped_queries
from .._backend import backend
from ..math.gemm import split_range
from ..threading.parallel import parallel_for, thread_count

__all__: list[str] = []

# Scores of a block, which stay in the L2 cache for several passes; and with several threads, which may wait for each
# other (GIL) after each call of NumPy.
BLOCK_SCORES, SHARED_SCORES = 1 << 17, 1 << 19
# Up to this many queries, several heads are computed together, for any number of keys.
FEW_QUERIES = 4


@backend.accelerates(ScaledDotProductAttention)
def sdpa(op: ScaledDotProductAttention, *inputs: Value) -> Kernel | None:
    """Return a kernel that computes block by block of queries, for inputs of supported types."""
    return sdpa_kernel(op, inputs, attention)


@backend.pattern(ScaledDotProductAttention)
def grouped_query_attention(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Attention whose keys and values are repeated for every head of the queries that shares them."""
    return match_grouped_queries(context, layer, sdpa, attention)


def attention(q: Array, k: Array, v: Array, mask: Array | None, factor: float, causal: bool) -> Array:
    """Attend to values ``[batch, groups, keys, values]`` with queries ``[batch, heads, queries, width]``.

    The number of heads is a multiple of the number of groups (key and value heads).
    """
    batch, heads, rows, width = q.shape
    groups, columns = k.shape[1], k.shape[2]
    full_mask = None if mask is None else np.broadcast_to(mask, (batch, heads, rows, columns))
    # The next layers join the heads of a token, so these are stored side by side.
    out = np.empty((batch, rows, heads, v.shape[3]), np.float32).transpose(0, 2, 1, 3)
    apply_mask = _masking(causal, full_mask, columns)
    heads_per_group, scale = heads // groups, np.float32(factor)

    def head_groups(chunk: slice) -> None:
        """Compute all queries of some groups of heads."""
        keys, values = k[:, chunk], v[:, chunk]
        count = keys.shape[1] * heads_per_group
        queries = slice(chunk.start * heads_per_group, chunk.start * heads_per_group + count)
        shared = (batch, keys.shape[1], heads_per_group * rows)
        scores = np.matmul((q[:, queries] * scale).reshape(*shared, width), keys.transpose(0, 1, 3, 2))
        by_head = scores.reshape(batch, count, rows, columns)
        apply_mask(by_head, (slice(None), queries), 0)
        sums = _exponentials(scores)
        means = np.empty((*shared, v.shape[3]), np.float32)
        np.divide(np.matmul(scores, values), sums, out=means)
        out[:, queries] = means.reshape(batch, count, rows, v.shape[3])

    def work(chunk: tuple[int, int, int]) -> None:
        """Compute some queries of one head."""
        n, head, start = chunk
        part = slice(start, start + step)
        scores = (q[n, head, part] * scale) @ k[n, head // heads_per_group].T
        apply_mask(scores, (n, head), start)
        sums = _exponentials(scores)
        np.divide(scores @ v[n, head // heads_per_group], sums, out=out[n, head, part])

    size = batch * heads * rows * columns * (width + v.shape[3])
    threads = thread_count(size)
    max_scores = BLOCK_SCORES if threads < 2 else SHARED_SCORES
    if rows <= FEW_QUERIES or batch * heads_per_group * rows * columns <= max_scores // 2:
        parallel_for(
            head_groups, split_range(groups, max(threads, batch * heads * rows * columns // max_scores)), size
        )
    else:
        step = max(BLOCK_SCORES // columns, 16)
        parallel_for(work, list(product(range(batch), range(heads), range(0, rows, step))), size)
    return out


def _exponentials(scores: Array) -> Array:
    """Replace scores by their exponentials, and return the sum of each row."""
    np.subtract(scores, np.maximum.reduce(scores, axis=-1, keepdims=True), out=scores)
    np.exp(scores, out=scores)
    return np.asarray(np.add.reduce(scores, axis=-1, keepdims=True))


def _masking(causal: bool, mask: Array | None, columns: int) -> Callable[[Array, Any, int], None]:
    """Return what masks scores ``[..., queries, keys]`` of some heads, from the index of their first query."""

    def explicit_mask(scores: Array, heads: Any, start: int) -> None:
        assert mask is not None
        part = mask[heads][..., start : start + scores.shape[-2], :]
        if part.dtype == np.bool_:
            np.copyto(scores, -np.inf, where=~part)
        else:
            np.add(scores, part, out=scores)

    def causal_mask(scores: Array, heads: Any, start: int) -> None:
        future = np.arange(columns) > np.arange(start, start + scores.shape[-2])[:, None]
        np.copyto(scores, -np.inf, where=future)

    def no_mask(scores: Array, heads: Any, start: int) -> None:
        pass

    return causal_mask if causal else no_mask if mask is None else explicit_mask
