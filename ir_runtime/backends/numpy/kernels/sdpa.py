"""Scaled dot product attention (SDPA), computed in blocks of heads and queries so that scores stay in the cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from ....ir.graph import Layer
from ....ir.tensor import Array, Value
from ....ops.matrix import Einsum, MatMul
from ....ops.sequence.attention import ScaledDotProductAttention
from ... import Fusion, Kernel, MatchContext, Refusal
from ...patterns.attention import (
    AttentionKernel,
    Factor,
    HeadsLayout,
    match_attention,
    match_grouped_queries,
    sdpa_kernel,
)
from .._backend import backend
from ..parallel import parallel_for, thread_count
from ._gemm import ones_column, split_range

__all__: list[str] = []

# Scores per block: as many as stay in the L2 cache for several passes; with several threads more, since they may wait for
# each other (GIL) after each call of NumPy.
BLOCK_SCORES, SHARED_SCORES = 1 << 17, 1 << 19
# Up to this many queries, several heads are computed together, for any number of keys.
FEW_QUERIES = 4
# Up to this many scores, calls dominate.
FEW_SCORES = 1 << 12
# The cost of the softmax of a score, in multiplications.
SOFTMAX_COST = 48
# The smallest sum of exponentials, e^-40, for which a row does not need a maximum of its own: weights down to e^-47 of the
# largest one in the row are then precise.
LEAST_SUM = np.float32(4e-18)
# If a mask was added, scores this far below the maximum get weight 0, since it would be subnormal.
LEAST_SCORE = np.float32(-87)
# The weight of LEAST_SCORE as NumPy computes it for long arrays, so that subtracting it gives exactly 0.
_LEAST_WEIGHT = np.exp(np.full(256, LEAST_SCORE))[0]


@backend.accelerates(ScaledDotProductAttention)
def sdpa(op: ScaledDotProductAttention, *inputs: Value) -> Kernel | None:
    """Return a kernel for f32 inputs of rank 4, which computes blocks of queries, or ``None`` (see `sdpa_kernel`)."""
    return sdpa_kernel(op, inputs, attention)


@backend.pattern(ScaledDotProductAttention)
def grouped_query_attention(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match attention whose keys and values are repeated for all query heads that share them."""
    return match_grouped_queries(context, layer, sdpa, attention)


@backend.pattern(MatMul, Einsum, after="SoftMax")
def products_with_softmax(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match ``softmax((q @ kᵀ) * factor + masks) @ v`` in f32, with batch axes of which the last is the head."""
    return match_attention(context, layer, _kernel)


def _kernel(factor: Factor, added: Array | None, given: bool, layout: HeadsLayout) -> Kernel:
    return Kernel(AttentionKernel(factor, added, given, layout, attention))


def attention(q: Array, k: Array, v: Array, mask: Array | None, factor: Factor, causal: bool) -> Array:
    """Compute attention, ``[batch, heads, queries, depth]``.

    Args:
        q: the queries, ``[batch, heads, queries, width]``.
        k: the keys, ``[batch, groups, keys, width]``; the number of heads is a multiple of that of groups.
        v: the values, ``[batch, groups, keys, depth]``.
        mask: a boolean or additive mask that broadcasts to the scores, or ``None``.
        factor: the scale of the scores, or one for each head.
        causal: whether keys after a query are hidden; the mask is then ignored.
    """
    batch, heads, rows, width = q.shape
    groups, columns = k.shape[1], k.shape[2]
    score_count = batch * heads * rows * columns
    if score_count <= FEW_SCORES:
        return _attention_of_few(q, k, v, mask, factor, causal)
    # The next layers concatenate the results of all heads for each token: they are stored so.
    out = np.empty((batch, rows, heads, v.shape[3]), np.float32).transpose(0, 2, 1, 3)
    apply_mask = _make_mask_function(causal, mask, (batch, heads, rows, columns))
    exp = _exp if mask is None or mask.dtype == np.bool_ or causal else _exp_of_masked
    heads_per_group, scale = heads // groups, _head_factors(factor, heads)
    ones = ones_column(columns)

    def head_groups(chunk: tuple[slice, slice]) -> None:
        """Compute all queries of a range of batches and groups of heads."""
        batches, part = chunk
        keys, values = k[chunk], v[chunk]
        count = keys.shape[1] * heads_per_group
        queries = slice(part.start * heads_per_group, part.start * heads_per_group + count)
        scaled = np.multiply(q[batches, queries], scale[queries])
        shared, by_head = (len(keys), keys.shape[1], heads_per_group * rows, -1), (len(keys), count, rows, -1)

        def scores() -> Array:
            product: Array = np.matmul(scaled.reshape(shared), keys.swapaxes(2, 3)).reshape(by_head)
            if apply_mask is not None:
                apply_mask(product, (batches, queries), 0)
            return product

        weights, sums = _weights(scores, ones, exp)
        means = np.matmul(weights.reshape(shared), values).reshape(by_head)
        np.divide(means, sums, out[batches, queries])

    def work(chunk: tuple[int, int, int]) -> None:
        """Compute a block of queries of one head."""
        n, head, start = chunk
        part = slice(start, start + step)
        scaled, keys = np.multiply(q[n, head, part], scale[head]), k[n, head // heads_per_group].T

        def scores() -> Array:
            product = np.asarray(np.matmul(scaled, keys))
            if apply_mask is not None:
                apply_mask(product, (n, head), start)
            return product

        weights, sums = _weights(scores, ones, exp)
        np.divide(np.matmul(weights, v[n, head // heads_per_group]), sums, out[n, head, part])

    size = score_count * (width + v.shape[3] + SOFTMAX_COST)
    threads = thread_count(size)
    max_scores = BLOCK_SCORES if threads < 2 else SHARED_SCORES
    if threads < 2 and score_count <= BLOCK_SCORES:
        head_groups((slice(0, batch), slice(0, groups)))
    elif rows <= FEW_QUERIES or score_count // max(batch, groups) <= max_scores // 2:
        parallel_for(head_groups, _parts(batch, groups, max(threads, score_count // max_scores)), size)
    else:
        step = max(BLOCK_SCORES // columns, 16)
        parallel_for(work, list(product(range(batch), range(heads), range(0, rows, step))), size)
    return out


def _head_factors(factor: Factor, heads: int) -> Array:
    """Return a factor for each head, ``[heads, 1, 1]``."""
    return np.broadcast_to(np.asarray(factor, np.float32).reshape(-1, 1, 1), (heads, 1, 1))


def _parts(batch: int, groups: int, most: int) -> list[tuple[slice, slice]]:
    """Split the longer one of the batch and group axes into at most ``most`` parts."""
    if batch > groups:
        return [(part, slice(0, groups)) for part in split_range(batch, most)]
    return [(slice(0, batch), part) for part in split_range(groups, most)]


def _attention_of_few(
    q: Array, k: Array, v: Array, mask: Array | None, factor: Factor, causal: bool
) -> Array:
    """Compute attention with few scores, in as few calls of NumPy as possible."""
    batch, heads, rows, _ = q.shape
    groups, columns = k.shape[1], k.shape[2]
    scale = np.float32(factor) if isinstance(factor, float) else _head_factors(factor, heads)
    scaled, shape = np.multiply(q, scale), (batch, heads, rows, columns)
    shared = None if heads == groups else (batch, groups, heads // groups * rows, -1)
    if shared is not None:
        scaled = scaled.reshape(shared)
    scores: Array = np.matmul(scaled, k.swapaxes(2, 3)).reshape(shape)
    if causal:
        np.copyto(scores, -np.inf, where=_future(rows, columns))
    elif mask is not None and mask.dtype == np.bool_:
        np.copyto(scores, -np.inf, where=~mask)
    elif mask is not None:
        np.add(scores, mask, scores)
    np.subtract(scores, np.maximum.reduce(scores, -1, keepdims=True), scores)
    np.exp(scores, scores)
    sums = np.matmul(scores, ones_column(columns))
    means = np.matmul(scores if shared is None else scores.reshape(shared), v)
    # The next layers concatenate the results of all heads for each token: they are stored so.
    out = np.empty((batch, rows, heads, v.shape[3]), np.float32).transpose(0, 2, 1, 3)
    np.divide(means.reshape(out.shape), sums, out)
    return out


@lru_cache(maxsize=64)
def _future(queries: int, keys: int) -> Array:
    """Return a mask ``[queries, keys]`` of the keys after each query."""
    return np.arange(keys) > np.arange(queries)[:, None]


def _weights(compute: Callable[[], Array], ones: Array, exp: Callable[[Array], None]) -> tuple[Array, Array]:
    """Return the exponentials of scores minus a maximum, and the sum of each row.

    One maximum of all rows takes a fifth of the time of a maximum for each row. It suffices unless all scores of a row are far
    below it; then scores, which have been overwritten, are computed again.

    Args:
        compute: computes the scores.
        ones: a column of ones, by which scores are multiplied to sum their rows.
        exp: replaces scores by their exponentials.
    """
    scores = compute()
    np.subtract(scores, np.maximum.reduce(scores, None, keepdims=True), scores)
    exp(scores)
    sums = np.matmul(scores, ones)
    if np.minimum.reduce(sums, None) >= LEAST_SUM:
        return scores, sums
    scores = compute()
    np.subtract(scores, np.maximum.reduce(scores, -1, keepdims=True), scores)
    exp(scores)
    return scores, np.matmul(scores, ones)


def _exp(scores: Array) -> None:
    """Replace scores by their exponentials."""
    np.exp(scores, scores)


def _exp_of_masked(scores: Array) -> None:
    """Replace scores to which a mask was added by their exponentials, and those below `LEAST_SCORE` by 0.

    A mask of -100 would give subnormal weights, with which processors multiply up to fifty times as slowly.
    """
    if not np.minimum.reduce(scores, None) < LEAST_SCORE:
        np.exp(scores, scores)
        return
    np.maximum(scores, LEAST_SCORE, out=scores)
    np.exp(scores, scores)
    np.subtract(scores, _LEAST_WEIGHT, scores)


def _make_mask_function(
    causal: bool, mask: Array | None, shape: Sequence[int]
) -> Callable[[Array, Any, int], None] | None:
    """Return a function ``(scores, heads, start)`` that masks a block of scores in place, or ``None`` without a mask.

    ``heads`` is the index of the block's batches and heads, and ``start`` its first query.

    Args:
        causal: whether keys after a query are hidden.
        mask: an explicit mask, boolean or additive.
        shape: the shape of all scores, ``[batch, heads, queries, keys]``.
    """

    def causal_mask(scores: Array, heads: Any, start: int) -> None:
        future = np.arange(shape[3]) > np.arange(start, start + scores.shape[-2])[:, None]
        np.copyto(scores, -np.inf, where=future)

    if causal or mask is None:
        return causal_mask if causal else None
    same = mask.size == math.prod(mask.shape[-2:])  # the same for all heads
    by_head = mask.reshape((1, 1, *mask.shape)[-2:]) if same else np.broadcast_to(mask, shape)
    every_query, boolean = by_head.shape[-2] == 1, mask.dtype == np.bool_

    def explicit_mask(scores: Array, heads: Any, start: int) -> None:
        part = by_head if same else by_head[heads]
        if not every_query and scores.shape[-2] < shape[2]:
            part = part[..., start : start + scores.shape[-2], :]
        if boolean:
            np.copyto(scores, -np.inf, where=~part)
        else:
            np.add(scores, part, scores)

    return explicit_mask
