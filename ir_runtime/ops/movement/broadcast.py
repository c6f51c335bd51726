"""Broadcast and tile: tensors repeated until they have a given shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal, TypeVar

import numpy as np

from ...codes import Code
from ...errors import InferenceError
from ...ir.dimension import Dimension, Interval
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from ...limits import check_array_size
from .._define.operation import T_ANY, T_AXIS, T_SHAPE, Input, Op, Output, attr, op
from .._lengths import broadcast_shapes, check_vector, count_of, lengths_of

_InputT = TypeVar("_InputT", Array, Value)

_NAMES = ("data", "target_shape")


class BroadcastBase(Op):
    """Base of the versions. OpenVINO also reads mode ``none``, meaning explicit."""

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to broadcast")
    target_shape = Input(T_SHAPE, "1-D; the lengths to reach")
    axes_mapping = Input(
        T_AXIS,
        "1-D; for each axis of the data its axis in the target, rising; for mode explicit",
        optional=True,
    )
    expanded = Output(T_ANY, "the data, repeated along new axes and those of length 1")

    mode: str = attr("numpy", doc="how axes of the data find theirs in the target")

    def infer(self, data: Value, target_shape: Value, axes_mapping: Value | None = None) -> PartialShape:
        target, mapping, shape = (
            lengths_of(target_shape, "target_shape"),
            self._used(axes_mapping),
            data.shape,
        )
        if mapping is not None:
            check_vector(mapping, "axes_mapping")
            if shape.rank == 0 and count_of(mapping, "axes_mapping") == 1:
                shape = PartialShape([1])  # as OpenVINO treats a scalar
            if shape.rank is not None and count_of(mapping, "axes_mapping") not in (None, shape.rank):
                raise InferenceError(
                    f"axes_mapping has length {mapping.count}, but data {shape} has rank {shape.rank}",
                    clause="axes_mapping has a number for each axis of data",
                )
        if target is None:
            return PartialShape.dynamic()
        goal = PartialShape(target)
        if shape.rank is None:
            shapes = {"bidirectional": PartialShape.dynamic(), "pdpd": PartialShape.dynamic(len(goal))}
            return shapes.get(self.mode, goal)
        if self.mode == "bidirectional":
            return broadcast_shapes(shape, goal, names=_NAMES)
        if shape.rank > len(goal):
            raise InferenceError(
                f"data {shape} has more axes than target_shape {goal} asks for",
                clause="data has at most as many axes as target_shape",
            )
        if self.mode == "pdpd":
            added = PartialShape([*shape, *[1] * (len(goal) - shape.rank)])
            return broadcast_shapes(added, goal, names=("data with axes added at its end", _NAMES[1]))
        if mapping is None:
            return _fit(shape, goal, range(len(goal) - shape.rank, len(goal)))
        places = mapping.ints()
        return goal if places is None else _fit(shape, goal, places)

    def refuses_lengths(self) -> bool:
        return self.mode in ("numpy", "bidirectional")

    def evaluate(self, data: Array, target_shape: Array, axes_mapping: Array | None = None) -> Array:
        target, mapping = tuple(target_shape.tolist()), self._used(axes_mapping)
        if mapping is not None:
            lengths = dict(zip(map(int, mapping), data.shape or (1,) * mapping.size, strict=True))
            data = data.reshape([lengths.get(i, 1) for i in range(len(target))])
        elif self.mode == "pdpd":
            data = data.reshape(data.shape + (1,) * (len(target) - data.ndim))
        if self.mode in ("bidirectional", "pdpd"):
            target = np.broadcast_shapes(data.shape, target)
        return np.broadcast_to(data, target)

    def _used(self, axes_mapping: _InputT | None) -> _InputT | None:
        """Return the axes mapping, if the mode requires one."""
        return axes_mapping if self.mode in ("explicit", "none") else None


def _fit(shape: PartialShape, goal: PartialShape, places: Sequence[int]) -> PartialShape:
    """Return the goal, refined by lengths of the data that cannot be 1."""
    if list(places) != sorted(set(places)) or any(not 0 <= i < len(goal) for i in places):
        raise InferenceError(
            f"axes_mapping is {list(places)}; it must name axes of target_shape {goal}, 0 to {len(goal) - 1}, in "
            f"ascending order",
            clause="axes_mapping names axes of target_shape in ascending order",
        )
    lengths = {}
    for axis, (length, place) in enumerate(zip(shape, places, strict=True)):
        fits = goal[place] if length.contains(1) else goal[place].merge(length)
        if fits is None:
            raise InferenceError(
                f"data {shape} does not broadcast to target_shape {goal}: axis {axis} of data has length {length}, "
                f"which is neither 1 nor {goal[place]}",
                clause="each length of data is 1 or that of target_shape",
            )
        lengths[place] = fits
    return goal.replace(lengths)


@op("Broadcast-3")
class Broadcast(BroadcastBase):
    """Repeat ``data`` along axes until it has the lengths in ``target_shape``."""

    decisions = (
        "mode pdpd, which the page does not list and OpenVINO reads, aligns first axes, and keeps lengths of data where the target has 1",
    )

    mode: Literal["numpy", "explicit", "bidirectional", "pdpd", "none"] = attr(
        "numpy", doc="whether last axes are aligned, one way or both, first ones, or those in axes_mapping"
    )

    def infer(self, data: Value, target_shape: Value, axes_mapping: Value | None = None) -> PartialShape:
        is_explicit = self.mode in ("explicit", "none")
        if is_explicit != (axes_mapping is not None):
            raise InferenceError(
                f"mode {self.mode} {'needs' if is_explicit else 'takes no'} input 'axes_mapping'",
                code=Code.PORT_COUNT,
                clause="axes_mapping comes with mode explicit, and with no other",
            )
        return super().infer(data, target_shape, axes_mapping)


@op("Broadcast-1")
class Broadcast1(BroadcastBase):
    """Repeat ``data`` along axes until it has the lengths in ``target_shape``.

    Without ``axes_mapping`` mode explicit is numpy, as in OpenVINO.
    """

    mode: Literal["numpy", "explicit", "none"] = attr(
        "numpy", doc="whether the last axes are aligned, or those in axes_mapping"
    )


@op("Tile-1")
class Tile(Op):
    """Repeat ``data`` along each axis ``repeats`` times."""

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to repeat")
    repeats = Input(
        T_SHAPE, "1-D; for the last axes, or for more axes than there are; negative ones count as 0"
    )
    tiled = Output(T_ANY, "the data, repeated")

    def infer(self, data: Value, repeats: Value) -> PartialShape:
        check_vector(repeats, "repeats")
        shape, count = data.shape, count_of(repeats, "repeats")
        if shape.rank is None or count is None:
            return PartialShape.dynamic()
        counts = repeats.numbers() or [Interval()] * count
        times = [Dimension.of(n if isinstance(n, Interval) else max(n, 0)) for n in counts]
        rank, one = max(shape.rank, count), Dimension(1)
        lengths = [one] * (rank - shape.rank) + list(shape)
        times = [one] * (rank - count) + times
        return PartialShape([length * n for length, n in zip(lengths, times, strict=True)])

    def refuses_lengths(self) -> bool:
        return True

    def evaluate(self, data: Array, repeats: Array) -> Array:
        times = np.maximum(repeats, 0).tolist()
        lengths = [a * b for a, b in zip_longest(data.shape[::-1], times[::-1], fillvalue=1)]
        check_array_size(
            math.prod(max(n, 1) for n in lengths), data.itemsize
        )  # also where another length is 0
        return np.tile(data, times)
