"""Code that kernels of scaled dot-product attention (SDPA) share: supported types, mask, scale and broadcast heads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ...ir.element import ElementType
from ...ir.tensor import Array, Value
from ...ops.sequence.attention import ScaledDotProductAttention, usual_scale
from ..core.kernel import Kernel, attention_lengths, broadcasts
from .layout import is_f32

__all__ = ["Attend", "Factor", "mask_and_scale", "mask_fits", "sdpa_kernel"]

Factor: TypeAlias = float | Array
"""The factor of scores: a number, or an array with one for each head of the queries."""

Attend: TypeAlias = Callable[[Array, Array, Array, Array | None, Factor, bool], Array]
"""Takes queries, keys, values, a mask, a factor, and whether later keys are hidden. Of queries there are as many
heads, or a multiple."""


def sdpa_kernel(op: ScaledDotProductAttention, inputs: Sequence[Value], attend: Attend) -> Kernel | None:
    """Return a kernel that computes not empty tensors of f32 by ``attend``, for a mask of f32 or boolean."""
    (query, key, value), others = inputs[:3], inputs[3:]
    if not is_f32(query, key, value, *others[1:]) or any(v.shape.rank != 4 for v in (query, key, value)):
        return None
    if others and others[0].element not in (ElementType.f32, ElementType.boolean):
        return None

    def kernel(q: Array, k: Array, v: Array, *rest: Array) -> Array:
        batch = q.shape[:2]
        if not batch == k.shape[:2] == v.shape[:2]:
            batch = np.broadcast_shapes(batch, k.shape[:2], v.shape[:2])
        if not (q.size and v.size and math.prod(batch)):
            return op.evaluate(q, k, v, *rest)
        mask, scale = mask_and_scale(op, q, rest)
        if not mask_fits(mask, (*batch, q.shape[2], k.shape[2])):
            return op.evaluate(q, k, v, *rest)  # rare: a mask that broadcasts the scores
        q, k, v = (
            x if x.shape[:2] == batch else np.broadcast_to(x, (*batch, *x.shape[2:])) for x in (q, k, v)
        )
        return attend(q, k, v, mask, scale, op.causal)

    def result_shape(q: Array, k: Array, v: Array, *rest: Array) -> tuple[int, ...] | None:
        shape = (*q.shape[:3], k.shape[2])
        same = q.shape[:2] == k.shape[:2] == v.shape[:2] and k.shape[2] == v.shape[2]
        fits = same and mask_fits(mask_and_scale(op, q, rest)[0], shape)
        return (*q.shape[:3], v.shape[3]) if fits else None

    return Kernel(kernel, accepts=attention_lengths, result_shape=result_shape)


def mask_and_scale(
    op: ScaledDotProductAttention, q: Array, rest: Sequence[Array]
) -> tuple[Array | None, float]:
    """Return the mask, if it has any effect, and the factor of the scores."""
    mask = None if op.causal or not rest or rest[0].ndim == 0 else rest[0]
    return mask, rest[1].item() if len(rest) > 1 else usual_scale(q.shape[3])


def mask_fits(mask: Array | None, scores: tuple[int, ...]) -> bool:
    """Return whether a mask broadcasts to the scores, and not they to it."""
    return mask is None or broadcasts(mask.shape, scores)
