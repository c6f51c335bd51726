"""Rows divided by the root of their mean square, as models of language have them."""

from __future__ import annotations

from typing import NamedTuple

from ...ir.element import ElementType
from ...ir.graph import Layer, Port
from ...ops.arithmetic.binary import Divide
from ...ops.reduction import ReduceMean
from .. import MatchContext

__all__ = ["MeanSquare", "by_mean_square"]


class MeanSquare(NamedTuple):
    """Layers that divide rows by the root of their mean square and ``epsilon``.

    They read the rows, and then numbers that say no more.
    """

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    epsilon: float


def by_mean_square(context: MatchContext, layer: Layer) -> MeanSquare | None:
    """``x / sqrt(mean(x²) + eps)`` over the last axis, f32, in the ways that exporters spell it; ``layer`` is the last."""
    first, second = context.sources(layer)
    if isinstance(layer.op, Divide):
        return _by_root(context, layer, first, second, ())
    for x, other in ((first, second), (second, first)):
        if (inverse := context.producer(other, "Divide")) is not None:
            above, below = context.sources(inverse)
            if (
                context.scalar(above) == 1
                and (found := _by_root(context, layer, x, below, (inverse,))) is not None
            ):
                return found
        if (inverse := context.producer(other, "Power")) is not None:
            base, exponent = context.sources(inverse)
            if context.scalar(exponent) == -0.5:
                return _by_mean(context, layer, x, base, (inverse,))
    return None


def _by_root(
    context: MatchContext, layer: Layer, x: Port, root: Port, after: tuple[Layer, ...]
) -> MeanSquare | None:
    if (made := context.producer(root, "Sqrt")) is not None:
        return _by_mean(context, layer, x, context.sources(made)[0], (made, *after))
    power = context.producer(root, "Power")
    if power is None or context.scalar(context.sources(power)[1]) != 0.5:
        return None
    return _by_mean(context, layer, x, context.sources(power)[0], (power, *after))


def _by_mean(
    context: MatchContext, layer: Layer, x: Port, raised: Port, after: tuple[Layer, ...]
) -> MeanSquare | None:
    """What comes after is ``raised``, the mean and epsilon."""
    added = context.producer(raised, "Add")
    if added is None or context.value(x).element is not ElementType.f32 or not context.value(x).shape.rank:
        return None
    one, two = context.sources(added)
    mean, eps = (one, two) if context.scalar(two) is not None else (two, one)
    reduced, epsilon = context.producer(mean, "ReduceMean"), context.scalar(eps)
    if (
        reduced is None
        or epsilon is None
        or not isinstance(reduced.op, ReduceMean)
        or not reduced.op.keep_dims
    ):
        return None
    squares, axes = context.sources(reduced)
    if context.value(axes).ints() not in ((-1,), ((context.value(x).shape.rank or 0) - 1,)):
        return None
    squared = context.producer(squares, "Power", "Multiply")
    if squared is None or context.sources(squared)[0] != x:
        return None
    other = context.sources(squared)[1]
    if context.scalar(other) != 2 if squared.type == "Power" else other != x:
        return None
    ports = _ports(context, x, squared, reduced, added, *after)
    return MeanSquare((squared, reduced, added, *after, layer), ports, epsilon)


def _ports(context: MatchContext, x: Port, *layers: Layer) -> tuple[Port, ...]:
    """What the layers of a match read from outside: the tensor first, then numbers."""
    inside = {layer.id for layer in layers}
    outside = [s for layer in layers for s in context.sources(layer) if s != x and s.layer not in inside]
    return (x, *dict.fromkeys(outside))
