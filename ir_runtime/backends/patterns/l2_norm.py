"""Rows divided by their Euclidean length, as cosine attention has them (Liu et al. 2022, Swin V2)."""

from __future__ import annotations

from typing import NamedTuple

from ...ir.graph import Layer, Port
from ...ops.arithmetic.binary import Divide
from ...ops.reduction import ReduceL2
from .. import MatchContext, Refusal
from ..common.layout import is_f32

__all__ = ["L2Norm", "match_l2_norm"]

# The least length that rows are divided by: the inverse of a shorter one may be infinite.
MIN_LENGTH = 1e-30


class L2Norm(NamedTuple):
    """The layers of ``x / max(norm(x), epsilon)``; they read ``x``, then constants that the kernel does not need."""

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    epsilon: float


def match_l2_norm(context: MatchContext, layer: Layer) -> L2Norm | Refusal | None:
    """Match ``x / max(norm(x), epsilon)`` over the last axis, f32; ``layer`` is the division."""
    if not isinstance(layer.op, Divide):
        return None
    x, below = context.sources(layer)
    least = context.producer(below, "Maximum")
    norm = None if least is None else context.producer(context.sources(least)[0], "ReduceL2")
    if least is None or norm is None or context.sources(norm)[0] != x:
        return None
    rank, epsilon = context.value(x).shape.rank, context.scalar(context.sources(least)[1])
    if epsilon is None or not epsilon >= MIN_LENGTH or context.value(below).shape.rank != rank:
        return Refusal("the least length is not a constant number, or not positive")
    if not is_f32(context.value(x)):
        return Refusal(f"the input is {context.value(x).element.label}, not f32")
    if not isinstance(norm.op, ReduceL2) or not norm.op.keep_dims:
        return Refusal("the norm does not keep its dimension")
    if not rank or context.value(context.sources(norm)[1]).ints() not in ((-1,), (rank - 1,)):
        return Refusal("the norm is not over the last axis, or its axes are not constant")
    return L2Norm((norm, least, layer), context.reads((norm, least, layer), x), epsilon)
