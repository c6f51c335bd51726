"""Grouped-query attention (Ainslie et al. 2023): several heads of the queries share one head of keys and values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ir.element import ElementType
from ...ir.graph import Layer, Port
from ...ir.tensor import Array
from ...ops.sequence.attention import ScaledDotProductAttention
from .. import Compute, Fusion, Kernel, MatchContext, Offer, Refusal
from ..common.sdpa import Attend, mask_and_scale, mask_fits
from ..core.kernel import any_lengths, attention_lengths

__all__ = ["SharedHeads", "match_grouped_queries"]


def match_grouped_queries(
    context: MatchContext, layer: Layer, offer: Offer, attend: Attend
) -> Fusion | Refusal | None:
    """Match attention whose keys and values are repeated for every head of the queries that shares them.

    ``Unsqueeze → Broadcast → Reshape`` of both is not done: the kernel takes them as they were. Each run
    checks that the shapes are those of repeated heads.

    Args:
        context: the graph around the layer, and the values of its ports.
        layer: the attention.
        offer: makes a kernel for it, without shared heads.
        attend: computes it with shared ones.
    """
    query, key, value, *others = context.sources(layer)
    sources = [_repeated(context, port) for port in (key, value)]
    first, second = sources
    if (first is None and second is None) or not isinstance(layer.op, ScaledDotProductAttention):
        return None
    if first is None or second is None:
        return Refusal(
            f"only the {'values' if first is None else 'keys'} are repeated for heads, in f32 of rank 4"
        )
    plain = offer(layer.op, *(context.value(port) for port in context.sources(layer)))
    if plain is None:
        return Refusal("the attention kernel does not take these types")
    layers, ports = (*first[0], *second[0], layer), (*first[1], *second[1])
    run = SharedHeads(layer.op, plain.prepare().whole, attend, first[0], second[0])
    kernel = Kernel(run, accepts=any_lengths, result_shape=run.result_shape)
    return Fusion(layers, (query, *ports, *others), kernel)


_Steps = tuple[Layer, Layer, Layer]


def _repeated(context: MatchContext, port: Port) -> tuple[_Steps, tuple[Port, ...]] | None:
    """Match the layers that repeat heads; return them and their inputs: heads, axis, shape, and final shape."""
    joined = context.producer(port, "Reshape")
    wide = None if joined is None else context.producer(context.sources(joined)[0], "Broadcast")
    if joined is None or wide is None or len(context.sources(wide)) != 2:
        return None
    apart = context.producer(context.sources(wide)[0], "Unsqueeze")
    if apart is None or context.value(context.sources(apart)[1]).ints() not in ((2,), (-3,)):
        return None
    source = context.sources(apart)[0]
    if context.value(source).shape.rank != 4 or context.value(source).element is not ElementType.f32:
        return None
    ports = (source, context.sources(apart)[1], context.sources(wide)[1], context.sources(joined)[1])
    return (apart, wide, joined), ports


class SharedHeads:
    """Attention with heads that several heads of the queries share.

    Shapes are computed in every run, so it checks all of them itself.
    """

    def __init__(self, op: ScaledDotProductAttention, plain: Compute, attend: Attend, *steps: _Steps) -> None:
        self._op, self._plain, self._attend, self._steps = op, plain, attend, steps
        self._copies = [bool(getattr(joined.op, "special_zero", False)) for _, _, joined in steps]

    def __call__(self, q: Array, *arrays: Array) -> Array:
        k, v, rest = arrays[0], arrays[4], arrays[8:]
        mask, scale = mask_and_scale(self._op, q, rest)
        if self.shares(q, k.shape, v.shape, arrays, mask):
            return self._attend(q, k, v, mask, scale, self._op.causal)
        keys, values = self._made(0, arrays[:4]), self._made(1, arrays[4:8])
        suited = attention_lengths(q, keys, values, *rest)
        return np.asarray((self._plain if suited else self._op.evaluate)(q, keys, values, *rest))

    def result_shape(self, q: Array, *arrays: Array) -> tuple[int, ...] | None:
        """Return the shape of the result; ``None`` where heads are not shared."""
        k, v = arrays[0].shape, arrays[4].shape
        mask, _ = mask_and_scale(self._op, q, arrays[8:])
        return (*q.shape[:3], v[3]) if self.shares(q, k, v, arrays, mask) else None

    def shares(
        self, q: Array, k: tuple[int, ...], v: tuple[int, ...], arrays: Sequence[Array], mask: Array | None
    ) -> bool:
        """Return whether keys and values of these shapes are repeated for the heads of the queries, and nothing else."""
        _, _, wide, joined, _, _, others_wide, others_joined, *_ = arrays
        if not (
            k[1]
            and q.shape[1] % k[1] == 0
            and q.shape[0] == k[0] == v[0]
            and q.shape[3] == k[3]
            and v[1] == k[1]
            and v[2] == k[2]
            and q.size
        ):
            return False
        times = q.shape[1] // k[1]
        fits = _repeats(k, times, wide, joined, self._copies[0])
        fits = fits and _repeats(v, times, others_wide, others_joined, self._copies[1])
        return fits and mask_fits(mask, (*q.shape[:3], k[2]))

    def _made(self, which: int, arrays: Sequence[Array]) -> Array:
        """Compute with repeated heads, for shapes that the pattern did not expect."""
        found, axis, wide, joined = arrays
        for step, other in zip(self._steps[which], (axis, wide, joined), strict=True):
            assert step.op is not None
            found = step.op.evaluate(found, other)
        return found


def _repeats(shape: tuple[int, ...], times: int, wide: Array, joined: Array, copies: bool) -> bool:
    """Return whether heads ``[batch, heads, length, width]`` become this many more, and nothing else."""
    batch, heads, length, width = shape
    target, end = wide.tolist(), joined.tolist()
    if len(target) != 5 or len(end) != 4 or 0 in shape or (end[0] == 0 and not copies):
        return False
    n, shared, repeats, rows, columns = target
    if repeats != times or n not in (1, batch) or shared not in (1, heads):
        return False
    if rows not in (1, length) or columns not in (1, width):
        return False
    return (
        end[0] in (0, -1, batch) and end[1] in (-1, heads * times) and end[3] in (-1, width)
        and (end[2] in (-1, length)) and end.count(-1) <= 1
    )  # fmt: skip
