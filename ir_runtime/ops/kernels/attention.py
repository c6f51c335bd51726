"""Scaled dot-product attention."""

from __future__ import annotations

import numpy as np

from ..._util.arrays import Array
from .matmul import accumulator_dtype

__all__ = ["scaled_dot_product"]


def scaled_dot_product(
    query: Array, key: Array, value: Array, bias: Array | None, scale: float, causal: bool
) -> Array:
    """Compute ``softmax(query @ key.T * scale + bias) @ value``, for query ``[..., L, E]`` and key ``[..., S, E]``.

    Scores are added to ``bias``, if given; with ``causal``, query i attends to keys up to i. Fully masked
    queries give NaN; without keys, the result is 0.
    """
    work = accumulator_dtype(query.dtype)
    scores = query.astype(work, copy=False) @ np.swapaxes(key, -1, -2).astype(work, copy=False)
    scores *= work.type(scale)
    if bias is not None:
        shape = np.broadcast_shapes(scores.shape, bias.shape)
        scores = np.add(scores, bias, out=scores if shape == scores.shape else None, dtype=work)
    if causal:
        queries, keys = scores.shape[-2:]
        scores[..., np.arange(keys) > np.arange(queries)[:, None]] = -np.inf
    scores -= scores.max(axis=-1, keepdims=True, initial=-np.inf)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return np.asarray(scores @ value.astype(work, copy=False)).astype(query.dtype, copy=False)
