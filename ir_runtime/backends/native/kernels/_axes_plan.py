"""How axes that belong together are laid out in memory: as one axis between others."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Value
from ...common.layout import is_f32

__all__ = ["AxesPlan", "known_axes", "plan_axes"]


class AxesPlan(NamedTuple):
    """How data of one layout are reduced, or changed along axes.

    Args:
        order: the axes in memory.
        sizes: ``[outer, length, inner]``.
        shape: of the result, whose axes are in that order.
        back: the order of the axes of the result.
    """

    order: tuple[int, ...]
    sizes: tuple[int, int, int]
    shape: tuple[int, ...]
    back: tuple[int, ...]


def known_axes(data: Value, axes: Value) -> frozenset[int] | None:
    """Return the axes, counted from the front, if data is f32, and they are known and valid; the operation refuses others."""
    rank, known = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or not known or any(not -rank <= axis < rank for axis in known):
        return None
    along = frozenset(axis % rank for axis in known)
    return along if len(along) == len(known) else None


def plan_axes(
    shape: tuple[int, ...], strides: tuple[int, ...], along: frozenset[int], keep_dims: bool
) -> AxesPlan:
    """Return the plan for data of a shape and strides. Axes that are apart in memory are brought together."""
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    places = [place for place, axis in enumerate(order) if axis in along]
    if places[-1] - places[0] >= len(along):  # they are brought together
        order = [axis for axis in range(len(shape)) if axis not in along] + sorted(along)
        places = list(range(len(shape) - len(along), len(shape)))
    lengths = [shape[axis] for axis in order]
    first, last = places[0], places[-1] + 1
    outer, length, inner = map(math.prod, (lengths[:first], lengths[first:last], lengths[last:]))
    left = order if keep_dims else [axis for axis in order if axis not in along]
    found = [1 if axis in along else shape[axis] for axis in left]
    return AxesPlan(tuple(order), (outer, length, inner), tuple(found), tuple(np.argsort(left).tolist()))
