"""Squeeze and Unsqueeze: remove and insert axes of length 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ...errors import InferenceError
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_ANY, T_INDEX, Input, Op, Output, attr, op
from .._lengths import axes_of, check_list, count_of, normalize_axes, normalize_axis

_LengthT = TypeVar("_LengthT")


class SqueezeBase(Op):
    """Base of the versions. An axis of another length than 1 is kept; a scalar accepts axes 0 and -1."""

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to squeeze")
    axes = Input(T_INDEX, "axes to remove; none, or an empty list, means all of length 1", optional=True)
    squeezed = Output(T_ANY, "the same elements without these axes")

    def infer(self, data: Value, axes: Value | None = None) -> PartialShape:
        if axes is not None:
            check_list(axes, "axes")
        shape = data.shape
        if shape.rank is None or (axes is not None and axes.count == 0 and axes.ints() is None):
            return self._all(shape)
        chosen = () if axes is None else axes.ints()
        if chosen is None:
            assert axes is not None
            return self._some(shape, count_of(axes, "axes"))
        if not chosen:
            return self._all(shape)
        gone = {normalize_axis(axis, shape.rank, least=1) for axis in chosen}
        if not shape.rank:
            return shape
        if any(self.skips and shape[i].is_dynamic and shape[i].contains(1) for i in gone):
            return PartialShape.dynamic()
        # According to the page, an unknown length counts as 1 here.
        return PartialShape([d for i, d in enumerate(shape) if i not in gone or not d.contains(1)])

    def evaluate(self, data: Array, axes: Array | None = None) -> Array:
        chosen: Sequence[int] = () if axes is None else axes_of(axes)
        gone = {normalize_axis(axis, data.ndim, least=1) for axis in chosen} or range(data.ndim)
        return data.reshape([n for i, n in enumerate(data.shape) if n != 1 or i not in gone])

    @property
    def skips(self) -> bool:
        """Whether an unknown length leaves the rank unknown."""
        return False

    def _all(self, shape: PartialShape) -> PartialShape:
        if shape.rank is None or any(d.is_dynamic and d.contains(1) for d in shape):
            return PartialShape.dynamic()
        return PartialShape([d for d in shape if d != 1])

    def _some(self, shape: PartialShape, count: int | None) -> PartialShape:
        if not any(d.contains(1) for d in shape):
            return shape
        if count != 1 or self.skips or not len(shape):
            return PartialShape.dynamic()
        return PartialShape.dynamic(len(shape) - 1)


@op("Squeeze-15")
class Squeeze(SqueezeBase):
    """Remove ``axes`` of length 1 from ``data``."""

    allow_axis_skip: bool = attr(
        False, doc="take an axis of unknown length for one that may stay: the rank is unknown then"
    )

    @property
    def skips(self) -> bool:
        return self.allow_axis_skip


@op("Squeeze-1")
class Squeeze1(SqueezeBase):
    """Remove ``axes`` of length 1 from ``data``; the rank does not depend on lengths still unknown."""


@op("Unsqueeze-1")
class Unsqueeze(Op):
    """Insert axes of length 1 into ``data``, at ``axes`` of the result."""

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to unsqueeze")
    axes = Input(T_INDEX, "places in the result, a scalar or 1-D; negative ones count from its end")
    unsqueezed = Output(T_ANY, "the same elements with these axes")

    def infer(self, data: Value, axes: Value) -> PartialShape:
        check_list(axes, "axes")
        places, shape = axes.ints(), data.shape
        if places is not None:
            if not places:
                raise InferenceError(
                    "axes is empty; at least one number is expected", clause="axes is not empty"
                )
            return PartialShape.dynamic() if shape.rank is None else PartialShape(_with(shape, places))
        if shape.rank is None or axes.count != 1:
            return PartialShape.dynamic()
        return PartialShape.dynamic(shape.rank + 1)

    def evaluate(self, data: Array, axes: Array) -> Array:
        return data.reshape(_with(data.shape, axes_of(axes)))


def _with(lengths: Sequence[_LengthT], places: Sequence[int]) -> list[_LengthT | int]:
    # OpenVINO drops duplicates. Duplicates of mixed sign have no sound meaning.
    distinct = sorted(set(places))
    rank = len(lengths) + len(distinct)
    added = normalize_axes(distinct, rank, of="a result of rank")
    rest = iter(lengths)
    return [1 if i in added else next(rest) for i in range(rank)]
