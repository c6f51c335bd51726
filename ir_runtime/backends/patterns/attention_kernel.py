"""The kernel of attention that is matched in a graph: it sees inputs of any layout as heads in batches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...ir.tensor import Array
from ..common.sdpa import Attend, Factor

__all__ = ["AttentionKernel", "HeadsLayout", "mask_of_heads"]


@dataclass(frozen=True)
class HeadsLayout:
    """The order of the axes of inputs and result; the last batch is the head.

    Args:
        queries: batches, rows, and the axis that is summed over.
        keys: the same.
        values: batches, rows and columns.
        output: the order of batches, rows and columns in the result.
    """

    queries: tuple[int, ...]
    keys: tuple[int, ...]
    values: tuple[int, ...]
    output: tuple[int, ...]

    def ordered(self, q: Array, k: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return views with the axes in order, and the same batches."""
        q, k, v = q.transpose(self.queries), k.transpose(self.keys), v.transpose(self.values)
        if q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
            return q, k, v
        batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
        q, k, v = (
            x if x.shape[:-2] == batch else np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (q, k, v)
        )
        return q, k, v


def _of_heads(x: Array) -> Array:
    """Return ordered matrices as ``[batch, heads, rows, columns]``."""
    if x.ndim == 4:
        return x
    return x[:, None] if x.ndim == 3 else x.reshape(math.prod(x.shape[:-3]), *x.shape[-3:])


def mask_of_heads(mask: Array, rank: int) -> Array:
    """Return a mask that is added to scores of a rank, for those seen as ``[batch, heads, queries, keys]``."""
    return _of_heads(mask.reshape((*[1] * (rank - mask.ndim), *mask.shape)))


@dataclass(frozen=True)
class AttentionKernel:
    """The kernel, with a scale and a constant mask; or the mask is the input after the values."""

    factor: Factor
    added: Array | None
    given: bool
    layout: HeadsLayout
    attend: Attend

    def __call__(self, q: Array, k: Array, v: Array, *others: Array) -> Array:
        q, k, v = self.layout.ordered(q, k, v)
        mask = mask_of_heads(others[0], q.ndim) if self.given else self.added
        out = self._attended(_of_heads(q), _of_heads(k), _of_heads(v), mask)
        if q.ndim != 4:
            out = out.reshape(*q.shape[:-2], *out.shape[2:])
        return out.transpose(self.layout.output)

    def _attended(self, q: Array, k: Array, v: Array, mask: Array | None) -> Array:
        """Compute attention of heads, in parts if there are several masks."""
        if not q.size or not k.size or not v.size:
            return self._small(q, k, v, mask)
        if mask is None or mask.shape[0] in (1, len(q)):
            return self.attend(q, k, v, mask, self.factor, False)
        out = np.empty((len(q), q.shape[2], q.shape[1], v.shape[3]), np.float32).transpose(0, 2, 1, 3)
        for start in range(0, len(q), len(mask)):
            part = slice(start, start + len(mask))
            out[part] = self.attend(q[part], k[part], v[part], mask, self.factor, False)
        return out

    @property
    def _scale(self) -> Array:
        """The factor of scores, or one for each head, ``[heads, 1, 1]``."""
        scale = np.asarray(self.factor, np.float32)
        return scale.reshape(-1, 1, 1) if scale.ndim else scale

    def _small(self, q: Array, k: Array, v: Array, mask: Array | None) -> Array:
        """Compute attention if some length is 0."""
        scores = q @ k.swapaxes(-1, -2) * self._scale
        scores = scores if mask is None else scores + mask
        powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        return np.asarray((powers / powers.sum(-1, keepdims=True)) @ v)
