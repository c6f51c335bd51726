"""Attention, one head and some queries at a time, so that their scores stay in the cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np

from ...ir.element import ElementType
from ...ir.tensor import Array, Value
from ...ops.sequence.attention import ScaledDotProductAttention
from .. import Kernel
from ._backend import backend
from ._memory import is_f32
from ._threads import each

__all__ = ["fits"]

# Scores that several passes go over while they are in the second cache.
SCORES = 1 << 17


def fits(query: Value, key: Value, value: Value, *others: Value) -> bool:
    """f32 of rank 4, with a mask of f32 or of truth values; the scale may be anything."""
    if not is_f32(query, key, value, *others[1:]) or any(v.shape.rank != 4 for v in (query, key, value)):
        return False
    return not others or others[0].element in (ElementType.f32, ElementType.boolean)


@backend.accelerates(ScaledDotProductAttention)
def attention(
    op: ScaledDotProductAttention, query: Value, key: Value, value: Value, *others: Value
) -> Kernel | None:
    """Blocks of queries, one after the other, where the inputs fit."""
    if not fits(query, key, value, *others):
        return None

    def kernel(q: Array, k: Array, v: Array, *rest: Array) -> Array:
        mask = None if op.causal or not rest or rest[0].ndim == 0 else rest[0]
        batch = np.broadcast_shapes(q.shape[:2], k.shape[:2], v.shape[:2])
        rows, columns = q.shape[2], k.shape[2]
        if mask is not None:
            full = np.broadcast_shapes(mask.shape, (*batch, rows, columns))
            mask = np.broadcast_to(mask, full) if full == (*batch, rows, columns) else None
        if not columns or not q.shape[3] or (mask is None and rest and rest[0].ndim and not op.causal):
            return op.evaluate(q, k, v, *rest)  # rare: no keys, or a mask that has more than the scores
        factor = np.float32(rest[1].item() if len(rest) > 1 else 1 / math.sqrt(q.shape[3]))
        q, k, v = (np.broadcast_to(x, (*batch, *x.shape[2:])) for x in (q, k, v))
        # What follows puts the heads of a token side by side: so they are written.
        out = np.empty((batch[0], rows, batch[1], v.shape[3]), np.float32).transpose(0, 2, 1, 3)
        hide = _hide(op.causal, mask, columns)

        def work(piece: tuple[int, int, int]) -> None:
            n, head, start = piece
            part = slice(start, start + step)
            scores = (q[n, head, part] * factor) @ k[n, head].T
            hide(scores, n, head, start)
            np.subtract(scores, np.maximum.reduce(scores, axis=1, keepdims=True), out=scores)
            np.exp(scores, out=scores)
            sums = np.add.reduce(scores, axis=1, keepdims=True)
            np.divide(scores @ v[n, head], sums, out=out[n, head, part])

        step = max(SCORES // columns, 16)
        pieces = list(product(range(batch[0]), range(batch[1]), range(0, rows, step)))
        each(work, pieces, math.prod(batch) * rows * columns * (q.shape[3] + v.shape[3]))
        return out

    return kernel


def _hide(causal: bool, mask: Array | None, columns: int) -> Callable[[Array, int, int, int], None]:
    """How to hide keys from scores ``[queries, keys]`` of one head, whose first query is given."""

    def by_mask(scores: Array, n: int, head: int, start: int) -> None:
        assert mask is not None
        part = mask[n, head, start : start + len(scores)]
        if part.dtype == np.bool_:
            np.copyto(scores, -np.inf, where=~part)
        else:
            np.add(scores, part, out=scores)

    def by_place(scores: Array, n: int, head: int, start: int) -> None:
        later = np.arange(columns) > np.arange(start, start + len(scores))[:, None]
        np.copyto(scores, -np.inf, where=later)

    def nothing(scores: Array, n: int, head: int, start: int) -> None:
        pass

    return by_place if causal else nothing if mask is None else by_mask
