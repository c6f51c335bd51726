"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864), where the halves of a row are the two coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

from ...ir.element import ElementType
from ...ir.graph import Layer, Port
from ...ops.elementwise import Binary
from ...ops.movement.concat import Concat
from ...ops.movement.slice import Slice
from ...ops.movement.split import Split, VariadicSplit
from .. import MatchContext, Refusal

__all__ = ["Rotary", "match_rotary"]


@dataclass(frozen=True)
class Rotary:
    """The matched layers, their inputs (the tensor, cosines and sines first), and the length of a row."""

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    width: int


def match_rotary(context: MatchContext, layer: Layer) -> Rotary | Refusal | None:
    """Match ``x * cos + concat(-second half of x, first half of x) * sin`` along the last axis; ``layer`` is the sum."""
    products = [context.producer(port, "Multiply") for port in context.sources(layer)]
    for straight, crossed in (products, products[::-1]):
        if straight is None or crossed is None or straight is crossed:
            continue
        for joined, sin in _both_orders(context.sources(crossed)):
            concat = context.producer(joined, "Concat")
            if concat is not None and len(context.sources(concat)) == 2:
                found = _by_concat(context, layer, straight, crossed, concat, sin)
                if found is not None:
                    return found
    return None


def _by_concat(
    context: MatchContext, layer: Layer, straight: Layer, crossed: Layer, concat: Layer, sin: Port
) -> Rotary | Refusal | None:
    first, second = context.sources(concat)
    negated = _negated(context, first)
    if negated is None:
        return None
    inside = context.graph[negated[1].layer], context.graph[second.layer]
    (x, *_), (other, *_) = context.sources(inside[0]), context.sources(inside[1])
    cos = next((b for a, b in _both_orders(context.sources(straight)) if a == x), None)
    if x != other or cos is None:
        return None
    shape = context.value(x).shape
    if not shape.rank or not shape[-1].is_static or not isinstance(concat.op, Concat):
        return Refusal("the length of a row is not known")
    width, half = shape[-1].min, shape[-1].min // 2
    if concat.op.axis not in (-1, shape.rank - 1):
        return None
    parts = _part(context, negated[1], shape.rank, width), _part(context, second, shape.rank, width)
    if parts != (range(half, width), range(half)) or width % 2 or not width:
        return Refusal("the parts of a row are not its halves, or their bounds are not constant")
    if any(context.value(port).element is not ElementType.f32 for port in (x, cos, sin)):
        return Refusal("the tensor, the cosines or the sines are not f32")
    if any(
        isinstance(la.op, Binary) and la.op.auto_broadcast != "numpy" for la in (straight, crossed, layer)
    ):
        return Refusal("a product or the sum is not broadcast as NumPy does")
    takers = {taker.id: taker for taker in inside}
    layers = (straight, *takers.values(), negated[0], concat, crossed, layer)
    return Rotary(layers, context.reads(layers, x, cos, sin), width)


def _both_orders(ports: tuple[Port, ...]) -> tuple[tuple[Port, Port], tuple[Port, Port]]:
    first, second = ports
    return (first, second), (second, first)


def _negated(context: MatchContext, port: Port) -> tuple[Layer, Port] | None:
    """Return the layer that negates, and its input."""
    if (layer := context.producer(port, "Negative")) is not None:
        return layer, context.sources(layer)[0]
    layer = context.producer(port, "Multiply")
    if layer is None or context.value(port).shape.rank is None:
        return None
    for data, factor in _both_orders(context.sources(layer)):
        same_rank = context.value(data).shape.rank == context.value(port).shape.rank
        if context.scalar(factor) == -1 and same_rank:
            return layer, data
    return None


def _part(context: MatchContext, port: Port, rank: int, width: int) -> range | None:
    """Return which elements of rows a Slice or a Split takes, if it takes no other axis apart and that is constant."""
    layer = context.graph[port.layer]
    _, *others = context.sources(layer)
    known = [context.value(other).ints() for other in others]
    if isinstance(layer.op, Slice) and len(known) == 4 and known[3] in ((-1,), (rank - 1,)):
        return (
            None if None in known[:3] else range(width)[slice(*(bounds[0] for bounds in known[:3] if bounds))]
        )
    if not isinstance(layer.op, Split | VariadicSplit) or known[0] not in ((-1,), (rank - 1,)):
        return None
    if isinstance(layer.op, Split):
        lengths = [width // layer.op.num_splits] * layer.op.num_splits
    else:
        lengths = [width - sum(n for n in known[1] or () if n >= 0) if n < 0 else n for n in known[1] or ()]
    parts = [range(a, b) for a, b in pairwise(accumulate(lengths, initial=0))]
    return parts[port.number] if port.number < len(parts) else None
