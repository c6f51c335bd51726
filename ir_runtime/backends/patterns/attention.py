"""Patterns of scaled dot product attention (SDPA) and grouped-query attention, written in elementary operations.

SDPA is MatMul, Multiply, Add, SoftMax and MatMul, with Einsum in place of MatMul in some models.

Windowed attention (Swin, Liu et al. 2021) adds a mask for each head, and another one for each window of an image. For the
latter, scores are reshaped to separate images and windows, and back.

In grouped-query attention (Ainslie et al. 2023), several query heads share one head of keys and values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.graph import Layer, Port
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from ...ops.activation import SoftMax
from ...ops.matrix import Einsum, MatMul
from ...ops.sequence.attention import ScaledDotProductAttention, usual_scale
from .. import Compute, Fusion, Kernel, MatchContext, Offer, Refusal
from ..common.einsum import einsum_product
from ..common.layout import is_f32
from ..core.kernel import any_lengths, attention_lengths, broadcasts

__all__ = [
    "Attend",
    "AttentionKernel",
    "Factor",
    "HeadsLayout",
    "mask_and_scale",
    "mask_fits",
    "match_attention",
    "match_grouped_queries",
    "sdpa_kernel",
    "SharedHeads",
]

Factor: TypeAlias = float | Array
"""The scale of the scores: a scalar, or an array with one element for each query head."""

Attend: TypeAlias = Callable[[Array, Array, Array, Array | None, Factor, bool], Array]
"""A function ``(queries, keys, values, mask, factor, causal)`` that computes attention. The number of query heads is a multiple
of the number of key heads."""


def sdpa_kernel(op: ScaledDotProductAttention, inputs: Sequence[Value], attend: Attend) -> Kernel | None:
    """Return a kernel that calls ``attend`` for non-empty f32 tensors of rank 4 with an f32 or boolean mask, or ``None``."""
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
            return op.evaluate(q, k, v, *rest)  # rare: the scores broadcast to the mask
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
    """Return the mask, or ``None`` if it has no effect, and the factor of the scores.

    ``rest`` are the inputs after the values: a mask and a scale, both of which may be absent.
    """
    mask = None if op.causal or not rest or rest[0].ndim == 0 else rest[0]
    return mask, rest[1].item() if len(rest) > 1 else usual_scale(q.shape[3])


def mask_fits(mask: Array | None, scores: tuple[int, ...]) -> bool:
    """Return whether a mask broadcasts to the shape of the scores; true without a mask."""
    return mask is None or broadcasts(mask.shape, scores)


@dataclass(frozen=True)
class HeadsLayout:
    """The permutations between the axes of attention's tensors and batches of matrices; the last batch axis is the head.

    Args:
        queries: the axes of the queries: batch axes, rows, and the summed axis.
        keys: the axes of the keys: batch axes, rows, and the summed axis.
        values: the axes of the values: batch axes, rows and columns.
        output: the permutation from batch axes, rows and columns to the axes of the result.
    """

    queries: tuple[int, ...]
    keys: tuple[int, ...]
    values: tuple[int, ...]
    output: tuple[int, ...]

    def permute(self, q: Array, k: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return views with axes permuted, and batch axes broadcast to the same shape."""
        q, k, v = q.transpose(self.queries), k.transpose(self.keys), v.transpose(self.values)
        if q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
            return q, k, v
        batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
        q, k, v = (
            x if x.shape[:-2] == batch else np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (q, k, v)
        )
        return q, k, v


def _split_heads(x: Array) -> Array:
    """Reshape batches of matrices to ``[batch, heads, rows, columns]``."""
    if x.ndim == 4:
        return x
    return x[:, None] if x.ndim == 3 else x.reshape(math.prod(x.shape[:-3]), *x.shape[-3:])


def mask_of_heads(mask: Array, rank: int) -> Array:
    """Reshape a mask for scores of ``rank`` axes to broadcast to ``[batch, heads, queries, keys]``."""
    return _split_heads(mask.reshape((*[1] * (rank - mask.ndim), *mask.shape)))


@dataclass(frozen=True)
class AttentionKernel:
    """The kernel of matched attention: its scale, and its mask, a constant or the input after the values.

    Args:
        factor: the scale of the scores.
        added: the constant mask, or ``None``.
        given: whether the mask is an input.
        layout: the layout of inputs and result.
        attend: computes attention of ``[batch, heads, rows, columns]``.
    """

    factor: Factor
    added: Array | None
    given: bool
    layout: HeadsLayout
    attend: Attend

    def __call__(self, q: Array, k: Array, v: Array, *others: Array) -> Array:
        q, k, v = self.layout.permute(q, k, v)
        mask = mask_of_heads(others[0], q.ndim) if self.given else self.added
        out = self._attend(_split_heads(q), _split_heads(k), _split_heads(v), mask)
        if q.ndim != 4:
            out = out.reshape(*q.shape[:-2], *out.shape[2:])
        return out.transpose(self.layout.output)

    def _attend(self, q: Array, k: Array, v: Array, mask: Array | None) -> Array:
        """Compute attention; if the mask has fewer batches than the queries, in parts that each use the whole mask."""
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
        """The factor of the scores as an array: a scalar, or ``[heads, 1, 1]``."""
        scale = np.asarray(self.factor, np.float32)
        return scale.reshape(-1, 1, 1) if scale.ndim else scale

    def _small(self, q: Array, k: Array, v: Array, mask: Array | None) -> Array:
        """Compute attention in NumPy, for empty tensors."""
        scores = q @ k.swapaxes(-1, -2) * self._scale
        scores = scores if mask is None else scores + mask
        powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        return np.asarray((powers / powers.sum(-1, keepdims=True)) @ v)


Axes = tuple[int, ...]
"""A permutation of the axes of a tensor."""


@dataclass(frozen=True)
class BatchedProduct:
    """A batched matrix product computed by a MatMul or Einsum layer, whose inputs have the same rank.

    Args:
        left: the port of the left matrices.
        right: the port of the right matrices.
        left_axes: the axes of the left input: batch axes, rows, and the summed axis.
        right_axes: the axes of the right input: batch axes, the summed axis, and columns.
        output_axes: the permutation from batch axes, rows and columns to the axes of the result.
    """

    left: Port
    right: Port
    left_axes: Axes
    right_axes: Axes
    output_axes: Axes

    @property
    def is_ordered(self) -> bool:
        """Whether the axes of the result are batch axes, rows and columns, in this order."""
        return self.output_axes == tuple(range(len(self.output_axes)))

    def order_by_left(self) -> BatchedProduct:
        """Return the same product with batch axes in the order of the left input."""
        count = len(self.left_axes) - 2
        order = (*sorted(range(count), key=self.left_axes.__getitem__), count, count + 1)
        return replace(
            self,
            left_axes=tuple(self.left_axes[axis] for axis in order),
            right_axes=tuple(self.right_axes[axis] for axis in order),
            output_axes=tuple(map(order.index, self.output_axes)),
        )


def batched_product(context: MatchContext, layer: Layer | None) -> BatchedProduct | None:
    """Return the batched product that a MatMul or Einsum layer computes, or ``None`` if it computes none."""
    if layer is None or len(layer.inputs) != 2:
        return None
    ranks = [context.value(port).shape.rank for port in context.sources(layer)]
    if ranks[0] is None or ranks[0] != ranks[1] or ranks[0] < 3:
        return None
    if isinstance(layer.op, MatMul):
        return _match_matmul(context, layer, layer.op, ranks[0])
    return _match_einsum(context, layer, layer.op) if isinstance(layer.op, Einsum) else None


def _match_matmul(context: MatchContext, layer: Layer, op: MatMul, rank: int) -> BatchedProduct:
    plain = tuple(range(rank))
    swapped = (*plain[:-2], rank - 1, rank - 2)
    left, right = context.sources(layer)
    return BatchedProduct(
        left, right, swapped if op.transpose_a else plain, swapped if op.transpose_b else plain, plain
    )


def _match_einsum(context: MatchContext, layer: Layer, op: Einsum) -> BatchedProduct | None:
    """Match an Einsum with one row, one column and one summed axis; Einsum would broadcast summed lengths that differ."""
    sources = context.sources(layer)
    shapes = [context.value(port).shape for port in sources]
    product = einsum_product(op.equation, tuple(len(shape) for shape in shapes))
    if product is None or not product.is_plain or not product.batches:
        return None
    left, right = reversed(sources) if product.swapped else sources
    depth = context.value(left).shape[product.left[-1]], context.value(right).shape[product.right[-2]]
    if not _are_equal(*depth):
        return None
    return BatchedProduct(left, right, product.left, product.right, product.output)


def _are_equal(one: Dimension, other: Dimension) -> bool:
    """Return whether two lengths are known to be equal."""
    if one.is_static or other.is_static:
        return one == other and one.is_static
    return one.symbol is not None and one.symbol is other.symbol


MakeKernel: TypeAlias = Callable[[Factor, Array | None, bool, HeadsLayout], Kernel]
"""A function ``(factor, mask, mask_is_input, layout)`` that makes the kernel; ``mask`` is a constant or ``None``."""


def match_attention(context: MatchContext, layer: Layer, make: MakeKernel) -> Fusion | Refusal | None:
    """Match ``softmax((q @ kᵀ) * factor + masks) @ v`` in f32, with batch axes of which the last is the head.

    Returns a `Refusal` for a near miss, and ``None`` if no input of the layer is a softmax.

    Args:
        context: the graph around the layer, and the values of its ports.
        layer: the product of the softmax with the values.
        make: makes the kernel.
    """
    softmax = next(filter(None, (context.producer(port, "SoftMax") for port in context.sources(layer))), None)
    if softmax is None or not isinstance(softmax.op, SoftMax):
        return None
    product, scores = batched_product(context, layer), context.sources(softmax)[0]
    if product is None or product.left != Port(softmax.id, 0):
        return Refusal("the weights are not the left matrices of a product of batches of matrices")
    product, rank = product.order_by_left(), len(product.left_axes)
    if product.left_axes != tuple(range(rank)):
        return Refusal("the weights are transposed in the product with the values")
    if not is_f32(context.value(scores), context.value(product.right)):
        return Refusal("scores and values are not f32")
    if softmax.op.axis not in (-1, rank - 1):
        return Refusal("the softmax is not over the last axis")
    matched = _walk(context, scores, _Scores((softmax, layer), product))
    return matched if isinstance(matched, Refusal) else matched.match(context, make)


@dataclass(frozen=True)
class _Scores:
    """The state of the match: the layers so far, from the softmax backwards, and their factors, masks, sources and layout."""

    layers: tuple[Layer, ...]
    weighted: BatchedProduct
    """The product with the values."""
    factor: float = 1.0
    by_head: Array | None = None
    """Another factor for each head."""
    masks: tuple[Port, ...] = ()
    windows: tuple[Port, ...] = field(default=())
    """The masks of windows, ``[1, windows, 1, queries, keys]``."""
    sources: tuple[Port, Port] | None = None
    axes: tuple[Axes, Axes] = ((), ())
    """The axes of queries and keys: batch axes, rows, and the summed axis."""
    shape: PartialShape = field(default_factory=PartialShape.dynamic)
    """The shape of the scores."""

    def prepend(self, *layers: Layer) -> _Scores:
        """Return this state with layers added at the front."""
        return replace(self, layers=(*layers, *self.layers))

    @property
    def is_scaled(self) -> bool:
        """Whether a layer matched so far scales the scores."""
        return self.factor != 1 or self.by_head is not None

    @property
    def _factor(self) -> Factor:
        return self.factor if self.by_head is None else self.by_head * np.float32(self.factor)

    def match(self, context: MatchContext, make: MakeKernel) -> Fusion | Refusal:
        """Return the fusion if all masks are constant, or there is a single mask that broadcasts to the scores."""
        values, rank = self.weighted.right, len(self.weighted.left_axes)
        layout = HeadsLayout(*self.axes, self.weighted.right_axes, self.weighted.output_axes)
        if not all(_fits(context.value(mask).shape, self.shape) for mask in self.masks):
            return Refusal("a mask does not surely broadcast to the shape of the scores")
        fixed = [context.value(mask).known() for mask in (*self.masks, *self.windows)]
        known = [mask for mask in fixed if mask is not None]
        if len(known) == len(fixed):
            masks = [mask_of_heads(mask, rank) for mask in known[: len(self.masks)]]
            added = _sum(masks, known[len(self.masks) :])
            return Fusion(self.layers, self._reads(context, values), make(self._factor, added, False, layout))
        if len(fixed) > 1 or self.windows:
            return Refusal("of several masks, one is not constant")
        kernel = make(self._factor, None, True, layout)
        return Fusion(self.layers, self._reads(context, values, *self.masks), kernel)

    def _reads(self, context: MatchContext, *first: Port) -> tuple[Port, ...]:
        """Return the ports of queries, keys, ``first``, then all other inputs of the layers."""
        assert self.sources is not None
        return context.reads(self.layers, *self.sources, *first)


def _fits(mask: PartialShape, scores: PartialShape) -> bool:
    """Return whether a mask is known to broadcast to the scores, with batch axes that are all 1 or all equal."""
    if mask.rank is None or not mask.rank or mask.rank > len(scores):
        return False
    dims = [*[Dimension(1)] * (len(scores) - mask.rank), *mask]
    pairs = list(zip(dims, scores, strict=True))
    outer = pairs[: max(len(scores) - 3, 1)]
    shared = all(a == 1 for a, _ in outer) or all(a.is_static and a == b for a, b in outer)
    return shared and all(a == 1 or (a.is_static and a == b) for a, b in pairs)


def _walk(context: MatchContext, port: Port, state: _Scores) -> _Scores | Refusal:
    """Match backwards from ``port`` to the product of queries and keys."""
    layer = context.producer(port, "Add", "Multiply", "Divide", "Reshape", "MatMul", "Einsum")
    if layer is None or not is_f32(context.value(port)):
        return Refusal("scores are not computed by MatMul, Einsum, Multiply, Divide, Add and Reshape in f32")
    if layer.type in ("MatMul", "Einsum"):
        return _match_scores(context, layer, state.prepend(layer))
    if layer.type == "Reshape":
        return _match_windows(context, layer, state)
    first, second = _operands(context, layer)
    if layer.type == "Add":
        if state.is_scaled:
            return Refusal("scores are multiplied after a mask is added")
        return _walk(context, first, replace(state.prepend(layer), masks=(*state.masks, second)))
    if state.is_scaled:
        return Refusal("scores are multiplied twice")
    if (factors := _head_factors(context, layer, state)) is not None:
        return _walk(context, first, replace(state.prepend(layer), by_head=factors))
    number = context.scalar(second)
    if number is None or (layer.type == "Divide" and number == 0):
        return Refusal(
            "scores are multiplied by something other than a constant scalar or one constant for each head"
        )
    return _walk(
        context,
        first,
        replace(state.prepend(layer), factor=number if layer.type == "Multiply" else 1 / number),
    )


def _operands(context: MatchContext, layer: Layer) -> tuple[Port, Port]:
    """Return the inputs of a binary layer, a constant one last if the operation commutes."""
    first, second = context.sources(layer)
    return (second, first) if layer.type != "Divide" and context.value(first).is_known else (first, second)


def _head_factors(context: MatchContext, layer: Layer, state: _Scores) -> Array | None:
    """Return the constants of a Multiply if there is one for each of several heads, else ``None``."""
    scores, second = _operands(context, layer)
    shape, known = context.value(scores).shape, context.value(second).known()
    rank = len(state.weighted.left_axes)
    if (
        layer.type != "Multiply"
        or known is None
        or known.size == 1
        or shape.rank != rank
        or known.ndim > rank
    ):
        return None
    lengths = (*[1] * (rank - known.ndim), *known.shape)
    is_by_head = rank > 3 and shape[-3] == known.size == lengths[-3]
    return known.reshape(-1) if is_by_head else None


def _match_windows(context: MatchContext, joined: Layer, state: _Scores) -> _Scores | Refusal:
    """Match Reshape, additions of masks for each window, and the Reshape back."""
    port, adds, masks = context.sources(joined)[0], list[Layer](), list[Port]()
    while (added := context.producer(port, "Add")) is not None:
        port, mask = context.sources(added)
        adds, masks = [added, *adds], [mask, *masks]
    parted = context.producer(port, "Reshape")
    if not adds or parted is None or state.windows or state.masks or state.is_scaled:
        return Refusal("scores are reshaped, but not for masks of windows")
    scores, whole = context.sources(parted)[0], context.sources(joined)[0]
    before, apart, sums = (context.value(end).shape for end in (scores, port, whole))
    windows = [context.value(mask).shape for mask in masks]
    if not all(shape.is_static for shape in (before, apart, *windows)) or sums != apart:
        return Refusal("shapes of windows are not known")
    batch, heads, *rest = before.static
    window = windows[0].static
    if len(set(windows)) > 1 or len(window) != 5 or window[:1] + window[2:] != (1, 1, *rest):
        return Refusal("masks of windows do not have shape [1, windows, 1, queries, keys]")
    if apart.static[1:] != (window[1], heads, *rest) or batch % max(window[1], 1):
        return Refusal("scores are not reshaped to [images, windows, heads, queries, keys]")
    return _walk(context, scores, replace(state.prepend(parted, *adds, joined), windows=tuple(masks)))


def _match_scores(context: MatchContext, layer: Layer, state: _Scores) -> _Scores | Refusal:
    """Match the product of queries and keys, each of which may be scaled."""
    product = batched_product(context, layer)
    if product is None or not product.is_ordered:
        return Refusal("scores are not a product of batches of matrices of queries and keys")
    if len(product.left_axes) != len(state.weighted.left_axes):
        return Refusal("queries and values have different ranks")
    q, k = product.left, product.right
    if not is_f32(context.value(q), context.value(k)):
        return Refusal("queries and keys are not f32")
    state = replace(state, axes=(product.left_axes, _transpose_axes(product.right_axes)))
    q, state = _match_scale(context, q, state)
    k, state = _match_scale(context, k, state)
    return replace(state, sources=(q, k), shape=context.value(Port(layer.id, 0)).shape)


def _match_scale(context: MatchContext, port: Port, state: _Scores) -> tuple[Port, _Scores]:
    """Match a scaling of ``port`` by a constant; return its input, or the port itself, and the new state."""
    layer = context.producer(port, "Multiply")
    data, other = (port, port) if layer is None else _operands(context, layer)
    number = context.scalar(other)
    if layer is None or number is None or not np.isfinite(number):
        return port, state
    return data, replace(state.prepend(layer), factor=state.factor * number)


def _transpose_axes(axes: Axes) -> Axes:
    """Exchange the last two axes."""
    return (*axes[:-2], axes[-1], axes[-2])


def _sum(masks: Sequence[Array], windows: Sequence[Array]) -> Array | None:
    """Return the sum of constant masks, ``[1 or windows, heads, queries, keys]``, or ``None`` if there are none.

    Args:
        masks: masks that broadcast to ``[1, heads, queries, keys]``.
        windows: masks of windows, ``[1, windows, 1, queries, keys]``.
    """
    added = [*masks, *(mask.reshape(mask.shape[1], 1, *mask.shape[3:]) for mask in windows)]
    with np.errstate(over="ignore"):  # two masks of the lowest f32
        return np.ascontiguousarray(sum(added[1:], added[0])) if added else None


def match_grouped_queries(
    context: MatchContext, layer: Layer, offer: Offer, attend: Attend
) -> Fusion | Refusal | None:
    """Match attention whose keys and values are repeated for all query heads that share them.

    The kernel skips ``Unsqueeze → Broadcast → Reshape`` of keys and values, and reads their shared heads. Shapes are checked
    in every run. Returns a `Refusal` if only keys or only values are repeated, or ``offer`` declines; ``None`` if neither is.

    Args:
        context: the graph around the layer, and the values of its ports.
        layer: the attention.
        offer: offers a kernel for attention without shared heads.
        attend: computes attention with shared heads.
    """
    query, key, value, *others = context.sources(layer)
    sources = [_match_repeat(context, port) for port in (key, value)]
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


def _match_repeat(context: MatchContext, port: Port) -> tuple[_Steps, tuple[Port, ...]] | None:
    """Match the layers that repeat heads; return them and their inputs: heads, axis, broadcast shape and final shape.

    Returns ``None`` if other layers compute the port, or its heads are not f32 of rank 4.
    """
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
    """A kernel of attention whose key and value heads are shared by several query heads.

    The target shapes of Broadcast and Reshape are inputs, so it checks them in every run, and repeats heads as the layers do
    if they differ from the pattern.
    """

    def __init__(self, op: ScaledDotProductAttention, plain: Compute, attend: Attend, *steps: _Steps) -> None:
        self._op, self._plain, self._attend, self._steps = op, plain, attend, steps
        self._copies = [bool(getattr(joined.op, "special_zero", False)) for _, _, joined in steps]

    def __call__(self, q: Array, *arrays: Array) -> Array:
        k, v, rest = arrays[0], arrays[4], arrays[8:]
        mask, scale = mask_and_scale(self._op, q, rest)
        if self.shares(q, k.shape, v.shape, arrays, mask):
            return self._attend(q, k, v, mask, scale, self._op.causal)
        keys, values = self._evaluate(0, arrays[:4]), self._evaluate(1, arrays[4:8])
        suited = attention_lengths(q, keys, values, *rest)
        return np.asarray((self._plain if suited else self._op.evaluate)(q, keys, values, *rest))

    def result_shape(self, q: Array, *arrays: Array) -> tuple[int, ...] | None:
        """Return the shape of the result, or ``None`` if heads are not shared."""
        k, v = arrays[0].shape, arrays[4].shape
        mask, _ = mask_and_scale(self._op, q, arrays[8:])
        return (*q.shape[:3], v[3]) if self.shares(q, k, v, arrays, mask) else None

    def shares(
        self, q: Array, k: tuple[int, ...], v: tuple[int, ...], arrays: Sequence[Array], mask: Array | None
    ) -> bool:
        """Return whether the layers only repeat the heads of keys and values to the number of query heads.

        It is also false if the mask does not broadcast to the scores, or there are no queries.

        Args:
            q: the queries.
            k: the shape of the keys before their heads are repeated.
            v: the shape of the values before their heads are repeated.
            arrays: the inputs of the kernel other than the queries.
            mask: the mask, or ``None``.
        """
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

    def _evaluate(self, which: int, arrays: Sequence[Array]) -> Array:
        """Evaluate the layers of keys (``which`` is 0) or values (1) one by one, given their inputs in the order of `_match_repeat`."""
        heads, axis, wide, joined = arrays
        for step, other in zip(self._steps[which], (axis, wide, joined), strict=True):
            assert step.op is not None
            heads = step.op.evaluate(heads, other)
        return heads


def _repeats(shape: tuple[int, ...], times: int, wide: Array, joined: Array, copies: bool) -> bool:
    """Return whether Broadcast and Reshape repeat each head of ``[batch, heads, length, width]`` exactly ``times`` times.

    Args:
        shape: the shape of the keys or values before.
        times: the number of query heads for each of their heads.
        wide: the target shape of Broadcast.
        joined: the target shape of Reshape.
        copies: whether a length of 0 in ``joined`` stands for that of the input.
    """
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
