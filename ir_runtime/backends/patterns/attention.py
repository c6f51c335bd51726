"""Scaled dot product attention (SDPA) that models write as MatMul, Multiply, Add, SoftMax and MatMul, or with Einsum.

Windowed attention (Liu et al. 2021, Swin) adds one mask for each head, and one for each window of an image; for the
latter, scores are reshaped into images and windows, and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from ...ir.dimension import Dimension
from ...ir.graph import Layer, Port
from ...ir.shape import PartialShape
from ...ir.tensor import Array
from ...ops.activation.softmax import SoftMax
from .. import Fusion, Kernel, MatchContext, Refusal
from ..common.layout import is_f32
from ..common.sdpa import Factor
from .attention_kernel import HeadsLayout, mask_of_heads
from .batched_product import Axes, BatchedProduct, batched_product

__all__ = ["match_attention"]

MakeKernel: TypeAlias = Callable[[Factor, Array | None, bool, HeadsLayout], Kernel]
"""Takes factors, a constant mask, whether the mask is an input instead, and the layout of the inputs."""


def match_attention(context: MatchContext, layer: Layer, make: MakeKernel) -> Fusion | Refusal | None:
    """Match ``softmax((q @ kᵀ) * factor + masks) @ v``, f32, of matrices in batches of heads.

    Args:
        context: the graph around the layer, and the values of its ports.
        layer: the last product.
        make: makes the kernel.
    """
    softmax = next(filter(None, (context.producer(port, "SoftMax") for port in context.sources(layer))), None)
    if softmax is None or not isinstance(softmax.op, SoftMax):
        return None
    product, scores = batched_product(context, layer), context.sources(softmax)[0]
    if product is None or product.left != Port(softmax.id, 0):
        return Refusal("the weights are not the left matrices of a product of batches of matrices")
    product, rank = product.by_left(), len(product.left_axes)
    if product.left_axes != tuple(range(rank)):
        return Refusal("the weights are transposed in the product with the values")
    if not is_f32(context.value(scores), context.value(product.right)):
        return Refusal("scores and values are not f32")
    if softmax.op.axis not in (-1, rank - 1):
        return Refusal("the softmax is not over the last axis")
    found = _walk(context, scores, _Scores((softmax, layer), product))
    return found if isinstance(found, Refusal) else found.match(context, make)


@dataclass(frozen=True)
class _Scores:
    """The layers matched so far, from the softmax backwards, with their factors, masks, sources and layout."""

    layers: tuple[Layer, ...]
    weighted: BatchedProduct
    """The product with the values."""
    factor: float = 1.0
    by_head: Array | None = None
    """Further factors, one for each head."""
    masks: tuple[Port, ...] = ()
    windows: tuple[Port, ...] = field(default=())
    """Masks ``[1, windows, 1, queries, keys]``."""
    sources: tuple[Port, Port] | None = None
    axes: tuple[Axes, Axes] = ((), ())
    """The order of the axes of queries and keys: batches, rows, and the axis that is summed over."""
    shape: PartialShape = field(default_factory=PartialShape.dynamic)
    """The shape of the product."""

    def behind(self, *layers: Layer) -> _Scores:
        """Prepend layers."""
        return replace(self, layers=(*layers, *self.layers))

    @property
    def is_scaled(self) -> bool:
        """Whether scores are scaled."""
        return self.factor != 1 or self.by_head is not None

    @property
    def _factor(self) -> Factor:
        return self.factor if self.by_head is None else self.by_head * np.float32(self.factor)

    def match(self, context: MatchContext, make: MakeKernel) -> Fusion | Refusal:
        """Return the fusion, if all masks are constant, or there is one that fits the scores."""
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
        """Return queries, keys and so on, then all other inputs of the layers, even if only their shape is used."""
        assert self.sources is not None
        return context.reads(self.layers, *self.sources, *first)


def _fits(mask: PartialShape, scores: PartialShape) -> bool:
    """Return whether adding the mask preserves the shape of the scores."""
    if mask.rank is None or not mask.rank or mask.rank > len(scores):
        return False
    dims = [*[Dimension(1)] * (len(scores) - mask.rank), *mask]
    pairs = list(zip(dims, scores, strict=True))
    outer = pairs[: max(len(scores) - 3, 1)]
    shared = all(a == 1 for a, _ in outer) or all(a.is_static and a == b for a, b in outer)
    return shared and all(a == 1 or (a.is_static and a == b) for a, b in pairs)


def _walk(context: MatchContext, port: Port, found: _Scores) -> _Scores | Refusal:
    """Match backwards from scores to the product of queries and keys."""
    made = context.producer(port, "Add", "Multiply", "Divide", "Reshape", "MatMul", "Einsum")
    if made is None or not is_f32(context.value(port)):
        return Refusal("scores are not computed by MatMul, Einsum, Multiply, Divide, Add and Reshape in f32")
    if made.type in ("MatMul", "Einsum"):
        return _product(context, made, found.behind(made))
    if made.type == "Reshape":
        return _windowed(context, made, found)
    first, second = _operands(context, made)
    if made.type == "Add":
        if found.is_scaled:
            return Refusal("scores are multiplied after a mask is added")
        return _walk(context, first, replace(found.behind(made), masks=(*found.masks, second)))
    if found.is_scaled:
        return Refusal("scores are multiplied twice")
    if (factors := _by_head(context, made, found)) is not None:
        return _walk(context, first, replace(found.behind(made), by_head=factors))
    number = context.scalar(second)
    if number is None or (made.type == "Divide" and number == 0):
        return Refusal("scores are multiplied by what is neither one constant number nor one for each head")
    return _walk(
        context, first, replace(found.behind(made), factor=number if made.type == "Multiply" else 1 / number)
    )


def _operands(context: MatchContext, layer: Layer) -> tuple[Port, Port]:
    """Return the inputs of an element-wise layer, the constant last if they commute."""
    first, second = context.sources(layer)
    return (second, first) if layer.type != "Divide" and context.value(first).is_known else (first, second)


def _by_head(context: MatchContext, layer: Layer, found: _Scores) -> Array | None:
    """Return the constants of a Multiply, if they are several, and one for each head."""
    scores, second = _operands(context, layer)
    shape, known = context.value(scores).shape, context.value(second).known()
    rank = len(found.weighted.left_axes)
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


def _windowed(context: MatchContext, joined: Layer, found: _Scores) -> _Scores | Refusal:
    """Match masks for each window, added to scores that are reshaped for them."""
    port, adds, masks = context.sources(joined)[0], list[Layer](), list[Port]()
    while (added := context.producer(port, "Add")) is not None:
        port, mask = context.sources(added)
        adds, masks = [added, *adds], [mask, *masks]
    parted = context.producer(port, "Reshape")
    if not adds or parted is None or found.windows or found.masks or found.is_scaled:
        return Refusal("scores are reshaped, but not for masks of windows")
    scores, whole = context.sources(parted)[0], context.sources(joined)[0]
    before, apart, sums = (context.value(each).shape for each in (scores, port, whole))
    windows = [context.value(mask).shape for mask in masks]
    if not all(shape.is_static for shape in (before, apart, *windows)) or sums != apart:
        return Refusal("shapes of windows are not known")
    batch, heads, *rest = before.static
    window = windows[0].static
    if len(set(windows)) > 1 or len(window) != 5 or window[:1] + window[2:] != (1, 1, *rest):
        return Refusal("masks of windows do not have shape [1, windows, 1, queries, keys]")
    if apart.static[1:] != (window[1], heads, *rest) or batch % max(window[1], 1):
        return Refusal("scores are not reshaped to [images, windows, heads, queries, keys]")
    return _walk(context, scores, replace(found.behind(parted, *adds, joined), windows=tuple(masks)))


def _product(context: MatchContext, layer: Layer, found: _Scores) -> _Scores | Refusal:
    """Match the product of queries and keys, each optionally scaled."""
    product = batched_product(context, layer)
    if product is None or not product.is_ordered:
        return Refusal("scores are not a product of batches of matrices of queries and keys")
    if len(product.left_axes) != len(found.weighted.left_axes):
        return Refusal("queries and values have different ranks")
    q, k = product.left, product.right
    if not is_f32(context.value(q), context.value(k)):
        return Refusal("queries and keys are not f32")
    found = replace(found, axes=(product.left_axes, _exchanged(product.right_axes)))
    q, found = _scaled(context, q, found)
    k, found = _scaled(context, k, found)
    return replace(found, sources=(q, k), shape=context.value(Port(layer.id, 0)).shape)


def _scaled(context: MatchContext, port: Port, found: _Scores) -> tuple[Port, _Scores]:
    """Return the operand of a scaling by one constant, or the port itself."""
    layer = context.producer(port, "Multiply")
    data, other = (port, port) if layer is None else _operands(context, layer)
    number = context.scalar(other)
    if layer is None or number is None or not np.isfinite(number):
        return port, found
    return data, replace(found.behind(layer), factor=found.factor * number)


def _exchanged(axes: Axes) -> Axes:
    """Return the order of axes of the transposed matrices."""
    return (*axes[:-2], axes[-1], axes[-2])


def _sum(masks: Sequence[Array], windows: Sequence[Array]) -> Array | None:
    """Return the sum of the masks, ``[1 or windows, heads, queries, keys]``."""
    added = [*masks, *(mask.reshape(mask.shape[1], 1, *mask.shape[3:]) for mask in windows)]
    with np.errstate(over="ignore"):  # two masks of the least number of f32
        return np.ascontiguousarray(sum(added[1:], added[0])) if added else None
