"""RMS norm: rows divided by the root of their mean square (Zhang & Sennrich 2019), as language models have it."""

from __future__ import annotations

from typing import NamedTuple

from ...ir.element import ElementType
from ...ir.graph import Layer, Port
from ...ops.arithmetic.binary import Divide
from ...ops.reduction import ReduceMean
from .. import MatchContext, Refusal

__all__ = ["RMSNorm", "match_rms_norm"]


class RMSNorm(NamedTuple):
    """The layers of ``x / sqrt(mean(x²) + epsilon)``.

    They read ``x``, then constants that the kernel does not need.
    """

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    epsilon: float


def match_rms_norm(context: MatchContext, layer: Layer) -> RMSNorm | Refusal | None:
    """Match ``x / sqrt(mean(x²) + eps)`` over the last axis, f32, in the ways that exporters write it.

    ``layer`` is the last one: the division, or the product with the inverse.
    """
    first, second = context.sources(layer)
    if isinstance(layer.op, Divide):
        return _by_root(context, layer, first, second, ())
    for x, other in ((first, second), (second, first)):
        if (inverse := context.producer(other, "Divide")) is not None:
            above, below = context.sources(inverse)
            found = _by_root(context, layer, x, below, (inverse,)) if context.scalar(above) == 1 else None
            if found is not None:
                return found
        if (inverse := context.producer(other, "Power")) is not None:
            base, exponent = context.sources(inverse)
            if context.scalar(exponent) == -0.5:
                return _by_mean(context, layer, x, base, (inverse,))
    return None


def _by_root(
    context: MatchContext, layer: Layer, x: Port, root: Port, after: tuple[Layer, ...]
) -> RMSNorm | Refusal | None:
    if (made := context.producer(root, "Sqrt")) is not None:
        return _by_mean(context, layer, x, context.sources(made)[0], (made, *after))
    power = context.producer(root, "Power")
    if power is None or context.scalar(context.sources(power)[1]) != 0.5:
        return None
    return _by_mean(context, layer, x, context.sources(power)[0], (power, *after))


def _by_mean(
    context: MatchContext, layer: Layer, x: Port, raised: Port, after: tuple[Layer, ...]
) -> RMSNorm | Refusal | None:
    """Match the mean of squares, to which epsilon is added; ``after`` are the layers between that and the last."""
    added = context.producer(raised, "Add")
    if added is None:
        return None
    one, two = context.sources(added)
    mean, eps = (one, two) if context.scalar(two) is not None else (two, one)
    reduced, epsilon = context.producer(mean, "ReduceMean"), context.scalar(eps)
    squares = None if reduced is None else context.sources(reduced)[0]
    squared = None if squares is None else context.producer(squares, "Power", "Multiply")
    if reduced is None or squared is None or not _squares(context, squared, x):
        return None
    rank = context.value(x).shape.rank
    if epsilon is None:
        return Refusal("epsilon is not a constant number")
    if context.value(x).element is not ElementType.f32:
        return Refusal(f"the input is {context.value(x).element.label}, not f32")
    if not isinstance(reduced.op, ReduceMean) or not reduced.op.keep_dims:
        return Refusal("the mean does not keep its dimension")
    if not rank or context.value(context.sources(reduced)[1]).ints() not in ((-1,), (rank - 1,)):
        return Refusal("the mean is not over the last axis, or its axes are not constant")
    ports = context.reads((squared, reduced, added, *after), x)
    return RMSNorm((squared, reduced, added, *after, layer), ports, epsilon)


def _squares(context: MatchContext, squared: Layer, x: Port) -> bool:
    """Return whether a Power or a Multiply is the square of a port."""
    base, other = context.sources(squared)
    return base == x and (context.scalar(other) == 2 if squared.type == "Power" else other == x)
