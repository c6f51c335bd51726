"""Rows divided by the root of their mean square, as models of language have them."""

from __future__ import annotations

from typing import NamedTuple

from ...ir.element import ElementType
from ...ir.graph import Layer, Port
from ...ops.arithmetic.binary import Divide
from ...ops.reduction import ReduceMean
from .. import Look

__all__ = ["MeanSquare", "by_mean_square"]


class MeanSquare(NamedTuple):
    """Layers that divide rows by the root of their mean square and ``epsilon``.

    They read the rows, and then numbers that say no more.
    """

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    epsilon: float


def by_mean_square(look: Look, layer: Layer) -> MeanSquare | None:
    """``x / sqrt(mean(x²) + eps)`` over the last axis, f32, in the ways that exporters spell it; ``layer`` is the last."""
    first, second = look.sources(layer)
    if isinstance(layer.op, Divide):
        return _by_root(look, layer, first, second, ())
    for x, other in ((first, second), (second, first)):
        if (inverse := look.made_by(other, "Divide")) is not None:
            above, below = look.sources(inverse)
            if look.number(above) == 1 and (found := _by_root(look, layer, x, below, (inverse,))) is not None:
                return found
        if (inverse := look.made_by(other, "Power")) is not None:
            base, exponent = look.sources(inverse)
            if look.number(exponent) == -0.5:
                return _by_mean(look, layer, x, base, (inverse,))
    return None


def _by_root(look: Look, layer: Layer, x: Port, root: Port, after: tuple[Layer, ...]) -> MeanSquare | None:
    if (made := look.made_by(root, "Sqrt")) is not None:
        return _by_mean(look, layer, x, look.sources(made)[0], (made, *after))
    power = look.made_by(root, "Power")
    if power is None or look.number(look.sources(power)[1]) != 0.5:
        return None
    return _by_mean(look, layer, x, look.sources(power)[0], (power, *after))


def _by_mean(look: Look, layer: Layer, x: Port, raised: Port, after: tuple[Layer, ...]) -> MeanSquare | None:
    """What comes after is ``raised``, the mean and epsilon."""
    added = look.made_by(raised, "Add")
    if added is None or look.seen(x).element is not ElementType.f32 or not look.seen(x).shape.rank:
        return None
    one, two = look.sources(added)
    mean, eps = (one, two) if look.number(two) is not None else (two, one)
    reduced, epsilon = look.made_by(mean, "ReduceMean"), look.number(eps)
    if (
        reduced is None
        or epsilon is None
        or not isinstance(reduced.op, ReduceMean)
        or not reduced.op.keep_dims
    ):
        return None
    squares, axes = look.sources(reduced)
    if look.seen(axes).ints() not in ((-1,), ((look.seen(x).shape.rank or 0) - 1,)):
        return None
    squared = look.made_by(squares, "Power", "Multiply")
    if squared is None or look.sources(squared)[0] != x:
        return None
    other = look.sources(squared)[1]
    if look.number(other) != 2 if squared.type == "Power" else other != x:
        return None
    ports = _ports(look, x, squared, reduced, added, *after)
    return MeanSquare((squared, reduced, added, *after, layer), ports, epsilon)


def _ports(look: Look, x: Port, *layers: Layer) -> tuple[Port, ...]:
    """What the layers of a match read from outside: the tensor first, then numbers."""
    inside = {layer.id for layer in layers}
    outside = [s for layer in layers for s in look.sources(layer) if s != x and s.layer not in inside]
    return (x, *dict.fromkeys(outside))
