"""Scaled dot product attention (SDPA) that models write as MatMul, Multiply, Add, SoftMax and MatMul.

Windowed attention (Liu et al. 2021, Swin) adds one mask for each head, and one for each window of an image; for the
latter, scores are reshaped into images and windows, and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from ...ir.graph import Layer, Port
from ...ir.shape import PartialShape
from ...ir.tensor import Array
from ...ops.activation.softmax import SoftMax
from ...ops.matrix.matmul import MatMul
from .. import Fusion, Kernel, MatchContext, Refusal
from ..common.layout import is_f32
from ..common.sdpa import Attend

__all__ = ["AttentionKernel", "match_attention"]

MakeKernel: TypeAlias = Callable[[float, Array | None, bool], Kernel]
"""Takes a factor, a constant mask, and whether the mask is an input instead."""


def match_attention(context: MatchContext, layer: Layer, make: MakeKernel) -> Fusion | Refusal | None:
    """Match ``softmax((q @ kᵀ) * factor + masks) @ v``, f32, of matrices in a batch of heads.

    Args:
        context: the graph around the layer, and the values of its ports.
        layer: the last product.
        make: makes the kernel.
    """
    weights, values = context.sources(layer)
    softmax = context.producer(weights, "SoftMax")
    if softmax is None or not isinstance(softmax.op, SoftMax):
        return None
    scores = context.sources(softmax)[0]
    if not _plain(layer, False):
        return Refusal("a matrix of the product with the values is transposed")
    if not is_f32(context.value(scores), context.value(values)):
        return Refusal("scores and values are not f32")
    if context.value(scores).shape.rank != 4 or context.value(values).shape.rank != 4:
        return Refusal("scores and values do not have rank 4")
    if softmax.op.axis not in (-1, 3):
        return Refusal("the softmax is not over the last axis")
    found = _walk(context, scores, _Scores((softmax, layer)))
    return found if isinstance(found, Refusal) else found.match(context, values, make)


def _plain(layer: Layer, transposed: bool) -> bool:
    """Return whether a layer is a MatMul without transposes, but for that of the right operand."""
    op = layer.op
    return isinstance(op, MatMul) and not op.transpose_a and op.transpose_b is transposed


@dataclass(frozen=True)
class _Scores:
    """What was matched so far, from the softmax backwards."""

    layers: tuple[Layer, ...]
    factor: float = 1.0
    masks: tuple[Port, ...] = ()
    windows: tuple[Port, ...] = field(default=())
    """Masks ``[1, windows, 1, queries, keys]``."""
    sources: tuple[Port, Port] | None = None
    shape: PartialShape = field(default_factory=PartialShape.dynamic)
    """The shape of the product."""

    def behind(self, *layers: Layer) -> _Scores:
        """Prepend layers."""
        return replace(self, layers=(*layers, *self.layers))

    def match(self, context: MatchContext, values: Port, make: MakeKernel) -> Fusion | Refusal:
        """Return the fusion, if all masks are constant, or there is one that fits the scores."""
        if not all(_fits(context.value(mask).shape, self.shape) for mask in self.masks):
            return Refusal("a mask does not surely broadcast to the shape of the scores")
        fixed = [context.value(mask).known() for mask in (*self.masks, *self.windows)]
        known = [mask for mask in fixed if mask is not None]
        if len(known) == len(fixed):
            added = _sum(known[: len(self.masks)], known[len(self.masks) :])
            return Fusion(self.layers, self._reads(context, values), make(self.factor, added, False))
        if len(fixed) > 1 or self.windows:
            return Refusal("of several masks, one is not constant")
        return Fusion(self.layers, self._reads(context, values, *self.masks), make(self.factor, None, True))

    def _reads(self, context: MatchContext, *first: Port) -> tuple[Port, ...]:
        """Return queries, keys and so on, then all other inputs of the layers, even if only their shape is used."""
        assert self.sources is not None
        inside = {layer.id for layer in self.layers}
        read = [port for layer in self.layers for port in context.sources(layer) if port.layer not in inside]
        return tuple(dict.fromkeys((*self.sources, *first, *read)))


def _fits(mask: PartialShape, scores: PartialShape) -> bool:
    """Return whether adding the mask certainly keeps the shape of the scores."""
    return mask.rank == 4 and all(
        a == 1 or (a.is_static and a == b) for a, b in zip(mask, scores, strict=True)
    )


def _walk(context: MatchContext, port: Port, found: _Scores) -> _Scores | Refusal:
    """Match backwards from scores to the product of queries and keys."""
    made = context.producer(port, "Add", "Multiply", "Divide", "Reshape", "MatMul")
    if made is None or not is_f32(context.value(port)):
        return Refusal("scores are not computed by MatMul, Multiply, Divide, Add and Reshape in f32")
    if made.type == "MatMul":
        return _product(context, made, found.behind(made))
    if made.type == "Reshape":
        return _windowed(context, made, found)
    first, second = context.sources(made)
    if made.type == "Add":
        return _walk(context, first, replace(found.behind(made), masks=(*found.masks, second)))
    number = context.scalar(second)
    if number is None or (made.type == "Divide" and number == 0):
        return Refusal("scores are multiplied by what is not one constant number")
    if found.factor != 1 or found.masks:
        return Refusal("scores are multiplied twice, or before a mask is added")
    return _walk(
        context, first, replace(found.behind(made), factor=number if made.type == "Multiply" else 1 / number)
    )


def _windowed(context: MatchContext, joined: Layer, found: _Scores) -> _Scores | Refusal:
    """Match a mask for each window, added to scores that are reshaped for it."""
    added = context.producer(context.sources(joined)[0], "Add")
    parted = None if added is None else context.producer(context.sources(added)[0], "Reshape")
    if added is None or parted is None or found.windows or found.masks:
        return Refusal("scores are reshaped, but not for masks of windows")
    scores, mask = context.sources(parted)[0], context.sources(added)[1]
    before, apart, whole = (
        context.value(port).shape for port in (scores, context.sources(added)[0], context.sources(joined)[0])
    )
    window = context.value(mask).shape
    if not (before.is_static and apart.is_static and window.is_static) or whole != apart:
        return Refusal("shapes of windows are not known")
    batch, heads, *rest = before.static
    if window.static[:1] + window.static[2:] != (1, 1, *rest) or len(window.static) != 5:
        return Refusal("the mask of windows does not have shape [1, windows, 1, queries, keys]")
    if apart.static[1:] != (window.static[1], heads, *rest) or batch % max(window.static[1], 1):
        return Refusal("scores are not reshaped to [images, windows, heads, queries, keys]")
    return _walk(context, scores, replace(found.behind(parted, added, joined), windows=(mask,)))


def _product(context: MatchContext, layer: Layer, found: _Scores) -> _Scores | Refusal:
    """Match the product of queries, which may be scaled before, and keys."""
    q, k = context.sources(layer)
    if not _plain(layer, True):
        return Refusal("the product of queries and keys does not transpose the keys alone")
    if not is_f32(context.value(q), context.value(k)):
        return Refusal("queries and keys are not f32")
    if context.value(q).shape.rank != 4 or context.value(k).shape.rank != 4:
        return Refusal("queries and keys do not have rank 4")
    scaled = context.producer(q, "Multiply")
    number = None if scaled is None else context.scalar(context.sources(scaled)[1])
    if scaled is not None and number is not None and np.isfinite(number):
        q, found = context.sources(scaled)[0], replace(found.behind(scaled), factor=found.factor * number)
    return replace(found, sources=(q, k), shape=context.value(Port(layer.id, 0)).shape)


def _sum(masks: Sequence[Array], windows: Sequence[Array]) -> Array | None:
    """Return the sum of the masks, ``[1 or windows, heads, queries, keys]``."""
    added = [*masks, *(mask.reshape(mask.shape[1], 1, *mask.shape[3:]) for mask in windows)]
    return np.ascontiguousarray(sum(added[1:], added[0])) if added else None


@dataclass(frozen=True)
class AttentionKernel:
    """The kernel, with a scale and a constant mask; or the mask is the input after the values."""

    factor: float
    added: Array | None
    given: bool
    attend: Attend

    def __call__(self, q: Array, k: Array, v: Array, *others: Array) -> Array:
        batch = np.broadcast_shapes(q.shape[:2], k.shape[:2], v.shape[:2])
        q, k, v = (
            x if x.shape[:2] == batch else np.broadcast_to(x, (*batch, *x.shape[2:])) for x in (q, k, v)
        )
        mask = others[0] if self.given else self.added
        if not q.size or not k.size or not v.size:
            return self._small(q, k, v, mask)
        if mask is None or mask.shape[0] in (1, batch[0]):
            return self.attend(q, k, v, mask, self.factor, False)
        out = np.empty((batch[0], q.shape[2], batch[1], v.shape[3]), np.float32).transpose(0, 2, 1, 3)
        for start in range(0, batch[0], len(mask)):
            part = slice(start, start + len(mask))
            out[part] = self.attend(q[part], k[part], v[part], mask, self.factor, False)
        return out

    def _small(self, q: Array, k: Array, v: Array, mask: Array | None) -> Array:
        """Compute attention if some length is 0."""
        scores = q @ k.swapaxes(-1, -2) * np.float32(self.factor)
        scores = scores if mask is None else scores + mask
        powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        return np.asarray((powers / powers.sum(-1, keepdims=True)) @ v)
