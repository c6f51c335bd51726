"""Attention to a cache of keys and values, which may be packed in 8 bits (see `ir.quantized_cache`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ir.graph import Layer
from ...ir.quantized_cache import unpack_rows, unpacked_shape
from ...ir.tensor import Array
from ...ops.sequence.attention import ScaledDotProductAttention
from .. import Compute, Fusion, Kernel, MatchContext, Offer
from ..common.sdpa import Attend, mask_and_scale, mask_fits
from ..core.kv_cache import CachedAttention
from ..core.lengths import attention_lengths
from .grouped_query_attention import SharedHeads, match_grouped_queries

__all__ = ["match_cached_attention"]


def match_cached_attention(
    context: MatchContext, layer: Layer, offer: Offer, attend: Attend, packed: Attend
) -> CachedAttention | None:
    """Match attention, also with heads that share keys, if there is a kernel for its types.

    Args:
        context: the graph around the layer, and the values of its ports.
        layer: the attention.
        offer: makes a kernel for it, without shared heads.
        attend: computes it with shared ones.
        packed: computes it of packed keys and values.
    """
    if not isinstance(layer.op, ScaledDotProductAttention):
        return None
    shared = match_grouped_queries(context, layer, offer, attend)
    if isinstance(shared, Fusion):
        exact = shared.kernel.prepare().whole
        return CachedAttention(shared.layers, shared.reads, 5, _kernel(layer.op, exact, packed, 5))
    reads = context.sources(layer)
    plain = offer(layer.op, *map(context.value, reads))
    if plain is None:
        return None
    return CachedAttention((layer,), reads, 2, _kernel(layer.op, plain.prepare().whole, packed, 2))


def _kernel(op: ScaledDotProductAttention, exact: Compute, attend: Attend, value: int) -> Kernel:
    return Kernel(_Packed(op, exact, attend, value), name="sdpa_u8", checks_inputs=True)


class _Packed:
    """Attention whose keys and values are both f32, or both packed.

    Shapes depend on the variable, so it checks all of them itself.

    Args:
        op: the attention.
        exact: computes it of f32: `SharedHeads`, or a kernel for keys of every head.
        attend: computes it of packed rows.
        value: which of the inputs are the values.
    """

    def __init__(self, op: ScaledDotProductAttention, exact: Compute, attend: Attend, value: int) -> None:
        self._op, self._exact, self._attend, self._value = op, exact, attend, value

    def __call__(self, *inputs: Array) -> Array:
        q, *arrays = inputs
        k, v = arrays[0], arrays[self._value - 1]
        if k.dtype == v.dtype == np.uint8:
            mask, scale = mask_and_scale(self._op, q, arrays[self._rest :])
            if self._fits(q, unpacked_shape(k), unpacked_shape(v), arrays, mask):
                return self._attend(q, k, v, mask, scale, self._op.causal)
        return self._unpacked(q, *(unpack_rows(x) if x.dtype == np.uint8 else x for x in arrays))

    @property
    def _rest(self) -> int:
        """The first input, after the queries, that says nothing of keys and values."""
        return 8 if isinstance(self._exact, SharedHeads) else 2

    def _fits(
        self, q: Array, k: tuple[int, ...], v: tuple[int, ...], arrays: Sequence[Array], mask: Array | None
    ) -> bool:
        if isinstance(self._exact, SharedHeads):
            return self._exact.shares(q, k, v, arrays, mask)
        fits = q.shape[:2] == k[:2] == v[:2] and q.shape[3] == k[3] and k[2] == v[2]
        return bool(fits and q.size and k[2] and v[3] and mask_fits(mask, (*q.shape[:3], k[2])))

    def _unpacked(self, q: Array, *arrays: Array) -> Array:
        """Compute attention of f32."""
        is_checked = isinstance(self._exact, SharedHeads) or attention_lengths(q, *arrays)
        return np.asarray((self._exact if is_checked else self._op.evaluate)(q, *arrays))
