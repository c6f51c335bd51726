"""Slices along axes by start, stop and step, and their replacement."""

from __future__ import annotations

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_ANY, T_AXIS, T_INDEX, Input, Op, Output, op
from .._lengths import axes_of, common_count, normalize_axes
from ._slicing import bounds_of, python_slice, sliced

_STEPS = "1-D; numbers from one element to the next, negative backwards, never 0"
_AXES = "1-D; the axes, each once; the first ones when absent"


class SliceBase(Op):
    """A region of a tensor: a slice along some axes, everything along the others."""

    bounded = True
    flops_per_element = 0

    def region(
        self, shape: PartialShape, start: Value, stop: Value, step: Value, axes: Value | None
    ) -> PartialShape:
        """Return the shape of the region; unknown lengths are dynamic."""
        count = common_count(start=start, stop=stop, step=step, axes=axes)
        if shape.rank is None:
            return shape
        if shape.rank == 0:
            raise InferenceError(
                "data is a scalar; at least one axis is expected", clause="data has at least one axis"
            )
        if count is not None and count > shape.rank:
            raise InferenceError(
                f"start has length {count}, but data {shape} has rank {shape.rank}",
                clause="start has at most as many numbers as data has axes",
            )
        chosen = tuple(range(count or 0)) if axes is None else axes.ints()
        if count is None or chosen is None:
            return PartialShape([Dimension.between(0, d.max) for d in shape])
        steps = step.ints() or (None,) * count
        if 0 in steps:
            raise InferenceError(
                f"element {steps.index(0)} of step is 0; a slice needs steps forwards or backwards",
                clause="step is not 0",
            )
        places = normalize_axes(chosen, shape.rank)
        parts = zip(places, bounds_of(start, count), bounds_of(stop, count), steps, strict=True)
        return shape.replace({i: sliced(shape[i], a, b, k) for i, a, b, k in parts})

    def index(
        self, shape: tuple[int, ...], start: Array, stop: Array, step: Array, axes: Array | None
    ) -> tuple[slice, ...]:
        """Return the region as a NumPy index."""
        chosen = range(start.size) if axes is None else axes_of(axes)
        index = [slice(None)] * len(shape)
        steps = zip(start.tolist(), stop.tolist(), step.tolist(), strict=True)
        for axis, (a, b, k) in zip(normalize_axes(chosen, len(shape)), steps, strict=True):
            index[axis] = python_slice(shape[axis], int(a), int(b), int(k))
        return tuple(index)


@op("Slice-8")
class Slice(SliceBase):
    """The elements of ``data`` from ``start`` to before ``stop`` by ``step``, along ``axes``."""

    symbolic = True

    data = Input(T_ANY, "tensor to slice")
    start = Input(T_INDEX, "1-D; first indices; negative ones count from the end, and all are clamped")
    stop = Input(T_INDEX, "1-D; indices behind the last ones, likewise")
    step = Input(T_INDEX, _STEPS)
    axes = Input(T_AXIS, _AXES, optional=True)
    region_of_data = Output(T_ANY, "the elements in the slices")

    def infer(
        self, data: Value, start: Value, stop: Value, step: Value, axes: Value | None = None
    ) -> PartialShape:
        return self.region(data.shape, start, stop, step, axes)

    def evaluate(
        self, data: Array, start: Array, stop: Array, step: Array, axes: Array | None = None
    ) -> Array:
        return data[self.index(data.shape, start, stop, step, axes)]


@op("SliceScatter-15")
class SliceScatter(SliceBase):
    """``data`` with the elements from ``start`` to before ``stop`` by ``step`` replaced by ``updates``."""

    symbolic = True

    data = Input(T_ANY, "tensor to update")
    updates = Input(T_ANY, "the new elements, in the shape of the slices", mixed=True)
    start = Input(T_INDEX, "1-D; first indices; negative ones count from the end, and all are clamped")
    stop = Input(T_INDEX, "1-D; indices behind the last ones, likewise")
    step = Input(T_INDEX, _STEPS)
    axes = Input(T_AXIS, _AXES, optional=True)
    updated = Output(T_ANY, "the data with the updates in place")

    def infer(
        self,
        data: Value,
        updates: Value,
        start: Value,
        stop: Value,
        step: Value,
        axes: Value | None = None,
    ) -> PartialShape:
        shape, new = data.shape, updates.shape
        if shape.rank is None and new.rank is not None:
            shape = PartialShape.dynamic(new.rank)
        region = self.region(shape, start, stop, step, axes)
        if not region.compatible(new):
            raise InferenceError(
                f"updates has shape {new}, but the slices of data {shape} have shape {region}",
                clause="updates has the shape of the slices",
            )
        return shape

    def evaluate(
        self,
        data: Array,
        updates: Array,
        start: Array,
        stop: Array,
        step: Array,
        axes: Array | None = None,
    ) -> Array:
        updated = data.astype(np.result_type(data, updates))
        updated[self.index(data.shape, start, stop, step, axes)] = updates
        return updated
