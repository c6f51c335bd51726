"""Slices and splits: Slice, SliceScatter, StridedSlice, Split and VariadicSplit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, product
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np

from ...errors import InferenceError, ValidationError
from ...ir.dimension import Dimension, Interval
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value, objects
from .._define.operation import T_ANY, T_AXIS, T_INDEX, Input, Op, Output, Propagated, attr, op
from .._lengths import (
    axes_of,
    check_scalar,
    check_vector,
    common_count,
    count_of,
    listed,
    normalize_axes,
    normalize_axis,
)
from .gather import one_axis

# The range of a slice along one axis: ``start``, ``stop`` and ``step``.

Bound: TypeAlias = int | Interval
"""The start or stop of a slice, an interval if it is not known exactly."""

FAR = 2**200
"""An index beyond the end of every axis; ``-FAR`` is before the start."""

_ENDLESS = 2**140  # stands for the length of an unbounded axis
_LONGEST = 2**31 - 1  # lengths beyond this are ignored when a slice is compared with its axis


def bounds_of(value: Value, count: int) -> list[Bound]:
    """Return the elements of ``start`` or ``stop``, with the extremes of 32- and 64-bit types as ``FAR`` or ``-FAR``."""
    numbers = value.numbers()
    if numbers is None:
        return [Interval()] * count
    if value.element.bits < 32:
        return list(numbers)
    limits = np.iinfo(value.element.dtype)
    extremes = {int(limits.max): FAR} | ({int(limits.min): -FAR} if limits.min else {})
    return [extremes.get(n, n) if isinstance(n, int) else n for n in numbers]


def python_slice(length: int, start: int, stop: int, step: int) -> slice:
    """Return a slice with the semantics of Python, with one exception.

    With a negative step, a start before the first element is moved to it. The specification of StridedSlice says so, and
    OpenVINO does the same in Slice, although its specification refers to Python.
    """
    if step < 0 and start < -length:
        start = 0
    return slice(start, stop, step)


def count_elements(length: Dimension, start: Bound, stop: Bound, step: int | None) -> Dimension:
    """Return the number of elements in a slice of an axis, which may be dynamic; ``step`` is ``None`` if unknown."""
    if step is None:
        return Dimension.between(0, length.max)
    if start == 0 and step == 1 and isinstance(stop, Dimension) and stop.symbol is not None:
        if stop.symbol is length.symbol:
            return length
        if stop.max is not None and stop.max <= length.min:
            return stop
    starts, stops = _extremes(start), _extremes(stop)
    counts = [
        (n, _count(n, a, b, step))
        for n in _lengths(length, [*starts, *stops])
        for a, b in product(starts, stops)
    ]
    fewest, most = min(c for _, c in counts), max(c for _, c in counts)
    high = None if most > 2**64 else most
    if abs(step) == 1 and length.min <= _LONGEST and all(c == n for n, c in counts if n <= _LONGEST):
        return Dimension.between(length.min, high, length.symbol)
    return Dimension.between(fewest, high)


def _count(length: int, start: int, stop: int, step: int) -> int:
    first, last, step = python_slice(length, start, stop, step).indices(length)
    return max(0, (last - first + step + (-1 if step > 0 else 1)) // step)


def _extremes(bound: Bound) -> list[int]:
    """Return the candidate values of a bound that may give the most or fewest elements: its ends, -1 and 0."""
    if isinstance(bound, int):
        return [bound]
    low = -FAR if bound.min is None else bound.min
    high = FAR if bound.max is None else bound.max
    return sorted({low, high} | {n for n in (-1, 0) if low <= n <= high})


def _lengths(length: Dimension, bounds: list[int]) -> Iterator[int]:
    """Yield the candidate lengths that may give the most or fewest elements.

    The number of elements is piecewise linear in the length, and bends only where a bound meets an end of the axis.
    """
    low, high = length.min, _ENDLESS if length.max is None else length.max
    bends = {abs(b) + d for b in bounds for d in (-1, 0, 1)} | {0, 1}
    yield from sorted({low, high} | {n for n in bends | {_LONGEST} if low <= n <= high})


# Slice and SliceScatter.

_STARTS = "indices of the first elements, 1-D; negative ones count from the end, and all are clamped"
_STOPS = "exclusive ends, 1-D; negative ones count from the end, and all are clamped"
_STEPS = "steps, 1-D; nonzero, and negative to go backwards"
_AXES = "distinct axes to slice, 1-D; the first axes if absent"


class SliceBase(Op):
    """Base of Slice and SliceScatter, whose region is a slice along ``axes`` and everything along other axes."""

    bounded = True
    flops_per_element = 0

    def region(
        self, shape: PartialShape, start: Value, stop: Value, step: Value, axes: Value | None
    ) -> PartialShape:
        """Check the inputs, and return the shape of the region."""
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
        return shape.replace({i: count_elements(shape[i], a, b, k) for i, a, b, k in parts})

    def index(
        self, shape: tuple[int, ...], start: Array, stop: Array, step: Array, axes: Array | None
    ) -> tuple[slice, ...]:
        """Return the NumPy index of the region."""
        chosen = range(start.size) if axes is None else axes_of(axes)
        index = [slice(None)] * len(shape)
        steps = zip(start.tolist(), stop.tolist(), step.tolist(), strict=True)
        for axis, (a, b, k) in zip(normalize_axes(chosen, len(shape)), steps, strict=True):
            index[axis] = python_slice(shape[axis], int(a), int(b), int(k))
        return tuple(index)


@op("Slice-8")
class Slice(SliceBase):
    """The elements of ``data`` from ``start`` to ``stop`` (exclusive) in steps of ``step``, along ``axes``."""

    decisions = (
        "backwards, a start before the first element is moved to it, as in OpenVINO; in Python, to which the page refers, nothing would be left",
    )

    symbolic = True

    data = Input(T_ANY, "tensor to slice")
    start = Input(T_INDEX, _STARTS)
    stop = Input(T_INDEX, _STOPS)
    step = Input(T_INDEX, _STEPS)
    axes = Input(T_AXIS, _AXES, optional=True)
    region_of_data = Output(T_ANY, "the selected elements")

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
    """``data`` with the elements from ``start`` to ``stop`` (exclusive), in steps of ``step``, replaced by ``updates``."""

    decisions = (
        "backwards, a start before the first element is moved to it, as OpenVINO infers, though it then replaces nothing; in NumPy, to which the page refers, nothing would be left",
    )

    symbolic = True

    data = Input(T_ANY, "tensor to update")
    updates = Input(T_ANY, "the new elements, of the shape of the slice", mixed=True)
    start = Input(T_INDEX, _STARTS)
    stop = Input(T_INDEX, _STOPS)
    step = Input(T_INDEX, _STEPS)
    axes = Input(T_AXIS, _AXES, optional=True)
    updated = Output(T_ANY, "the updated copy of data")

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


# Strided slices with masks.

_MASK = "one entry for each element of begin; where it is 1, {}; missing entries are 0"


def _mask(what: str, *default: tuple[int, ...], default_with_warning: str | None = None) -> Any:
    return attr(*default, ge=0, le=1, doc=_MASK.format(what), default_with_warning=default_with_warning)


@op("StridedSlice-1")
class StridedSlice(Op):
    """The elements of ``data`` from ``begin`` to ``end`` (exclusive) in steps of ``strides``, subject to the masks."""

    decisions = (
        "an end mask on the way back takes the first element, too, as in OpenVINO's reference",
        "a slice whose end is its begin is empty, as in OpenVINO's reference",
        "an index outside of an axis that shrinks is refused, as in OpenVINO's reference; the page does not say",
    )

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to slice")
    begin = Input(T_INDEX, _STARTS)
    end = Input(T_INDEX, _STOPS)
    strides = Input(T_INDEX, f"{_STEPS}; 1 if absent", optional=True)
    region = Output(T_ANY, "the selected elements, with the axes that the masks remove and insert")

    begin_mask: tuple[int, ...] = _mask("the slice starts at the first element of the axis")
    end_mask: tuple[int, ...] = _mask("the slice extends to the end of the axis", default_with_warning="")
    new_axis_mask: tuple[int, ...] = _mask("an axis of length 1 is inserted", ())
    shrink_axis_mask: tuple[int, ...] = _mask(
        "only the element at begin is taken, and the axis is removed", ()
    )
    ellipsis_mask: tuple[int, ...] = _mask(
        "all axes that no other entry slices are taken whole; at most one entry may be 1", ()
    )

    def verify(self) -> None:
        if sum(self.ellipsis_mask) > 1:
            raise ValidationError(
                f"attribute 'ellipsis_mask' is {listed(self.ellipsis_mask)}; it may hold one 1",
                clause="attribute 'ellipsis_mask' has at most one 1",
            )

    def infer(self, data: Value, begin: Value, end: Value, strides: Value | None = None) -> PartialShape:
        count, shape = common_count(begin=begin, end=end, strides=strides), data.shape
        if shape.rank is None or count is None:
            return self._bounded_shape(shape)
        steps = (1,) * count if strides is None else strides.ints() or (None,) * count
        firsts, lasts, indices = bounds_of(begin, count), bounds_of(end, count), begin.ints()
        dims: list[Dimension] = []
        for axis, entry in self._plan(count, shape.rank):
            if axis is None:
                dims.append(Dimension(1))
            elif entry is None:
                dims.append(shape[axis])
            elif not _set(self.shrink_axis_mask, entry):
                ends = self._ends(entry, firsts[entry], lasts[entry], steps[entry])
                dims.append(count_elements(shape[axis], *ends, steps[entry]))
            elif indices is not None:
                _check_inside(entry, indices[entry], shape[axis], axis)
        return PartialShape(dims)

    def _bounded_shape(self, shape: PartialShape) -> PartialShape:
        """Return the output shape if the rank or the number of slices is unknown."""
        if shape.rank is None or any(self.new_axis_mask) or any(self.shrink_axis_mask):
            return PartialShape.dynamic()
        return PartialShape([Dimension.between(0, d.max) for d in shape])

    def evaluate(self, data: Array, begin: Array, end: Array, strides: Array | None = None) -> Array:
        region: Array = data[self.index(data.shape, begin, end, strides)]
        return region

    def propagate(self, *inputs: Value) -> Propagated:
        """Propagate contents, ignoring masked elements of begin and end."""
        data, begin, end, *strides = inputs
        begin = _apply_masks(begin, self.begin_mask)
        end = _apply_masks(end, self.end_mask, self.shrink_axis_mask)
        return super().propagate(data, begin, end, *strides)

    def index(
        self, shape: tuple[int, ...], begin: Array, end: Array, strides: Array | None = None
    ) -> tuple[slice | int | EllipsisType | None, ...]:
        """Return the NumPy index of the region."""
        steps = [1] * begin.size if strides is None else strides.tolist()
        index: list[slice | int | None] = []
        for axis, entry in self._plan(begin.size, len(shape)):
            if axis is None:
                index.append(None)
            elif entry is None:
                index.append(slice(None))
            elif _set(self.shrink_axis_mask, entry):
                at = int(begin[entry])
                _check_inside(entry, at, Dimension(shape[axis]), axis)
                index.append(at)
            else:
                step = int(steps[entry])
                first, last = self._ends(entry, int(begin[entry]), int(end[entry]), step)
                index.append(python_slice(shape[axis], int(first), int(last), step))
        return (*index, ...)

    def _plan(self, count: int, rank: int) -> Iterator[tuple[int | None, int | None]]:
        """Yield (axis of data or ``None`` if new, entry of begin or ``None``) for each axis, also removed ones."""
        special = [_set(self.new_axis_mask, i) or _set(self.ellipsis_mask, i) for i in range(count)]
        hidden = rank - special.count(False)
        if hidden < 0:
            raise InferenceError(
                f"begin has length {count}, and {special.count(False)} of its elements slice axes of data, which has rank {rank}",
                clause="begin slices at most as many axes as data has",
            )
        axis = 0
        for entry in [*range(count), None]:
            if entry is None or _set(self.ellipsis_mask, entry):
                yield from ((axis + i, None) for i in range(hidden))
                axis, hidden = axis + hidden, 0
            elif _set(self.new_axis_mask, entry):
                yield None, entry
            else:
                yield axis, entry
                axis += 1

    def _ends(self, entry: int, first: Bound, last: Bound, step: int | None) -> tuple[Bound, Bound]:
        """Return the start and stop of a slice, after applying the masks."""
        if step == 0:
            raise InferenceError(
                f"element {entry} of strides is 0; a slice needs steps forwards or backwards",
                clause="strides is not 0",
            )
        far = -FAR if step is not None and step < 0 else FAR
        return (
            -far if _set(self.begin_mask, entry) else first,
            far if _set(self.end_mask, entry) else last,
        )


def _set(mask: Sequence[int], entry: int) -> bool:
    return entry < len(mask) and mask[entry] == 1


def _apply_masks(value: Value, *masks: Sequence[int]) -> Value:
    """Return the value of begin or end with 0 in place of masked elements, unless it is known."""
    count = count_of(value)
    if count is None or value.known() is not None or not value.element.integral:
        return value
    numbers = value.numbers() or (Interval(),) * count
    read = (0 if any(_set(mask, i) for mask in masks) else n for i, n in enumerate(numbers))
    return Value.bounded(value.element, objects(read, (count,)))


def _check_inside(entry: int, index: int, length: Dimension, axis: int) -> None:
    if length.max is not None and not -length.max <= index < length.max:
        raise InferenceError(
            f"element {entry} of begin is {index}, and shrink_axis_mask takes that element alone, but axis {axis} of "
            f"data has length {length}",
            clause="an element of begin that shrink_axis_mask takes alone is inside its axis",
        )


# Split and VariadicSplit.

MOST_PARTS = 1 << 20
"""The maximum number of parts, more than any real layer has."""


@op("Split-1")
class Split(Op):
    """Split ``data`` into parts of equal length along ``axis``."""

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to split")
    axis = Input(T_AXIS, "axis to split, a scalar; a negative one counts from the end")
    parts = Output(T_ANY, "the parts, in order", variadic=True)

    num_splits: int = attr(gt=0, doc="number of parts")

    def infer(self, data: Value, axis: Value) -> tuple[PartialShape, ...]:
        check_scalar(axis, "axis")
        shape, values = data.shape, axis.ints()
        if shape.rank is None:
            return self._repeat(shape)
        if values is None:
            # No length grows, whatever the axis.
            return self._repeat(PartialShape([Dimension.between(0, d.max) for d in shape]))
        place = normalize_axis(values[0], shape.rank)
        return self._repeat(shape.replace({place: self._part(shape, place)}))

    def evaluate(self, data: Array, axis: Array) -> Array | tuple[Array, ...]:
        place = normalize_axis(int(axis), data.ndim)
        part = self._part(PartialShape(data.shape), place).get_length()
        return _split_array(data, place, [part] * self.num_splits)

    def _repeat(self, part: PartialShape) -> tuple[PartialShape, ...]:
        """Return the shape of every part, after checking the number of parts."""
        if self.num_splits > MOST_PARTS:
            raise InferenceError(
                f"num_splits is {self.num_splits}; at most {MOST_PARTS} are allowed",
                clause=f"num_splits is at most {MOST_PARTS}",
            )
        return (part,) * self.num_splits

    def _part(self, shape: PartialShape, axis: int) -> Dimension:
        """Return the length of each part."""
        length = shape[axis]
        low, high = -(-length.min // self.num_splits), length.max and length.max // self.num_splits
        if self.num_splits == 1:
            return length
        if high is not None and low > high:
            raise InferenceError(
                f"axis {axis} of data {shape} has length {length}, which num_splits {self.num_splits} does not divide",
                hint="VariadicSplit cuts into parts of different lengths",
                clause="num_splits divides the length of the axis",
            )
        return Dimension.between(low, high)


@op("VariadicSplit-1")
class VariadicSplit(Op):
    """Split ``data`` along ``axis`` into parts of the lengths ``split_lengths``."""

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to split")
    axis = Input(T_AXIS, "axis to split, a scalar or [1]; a negative one counts from the end")
    split_lengths = Input(T_AXIS, "length of each part, 1-D; one may be -1, for the remainder")
    parts = Output(T_ANY, "the parts, in order", variadic=True)

    def infer(self, data: Value, axis: Value, split_lengths: Value) -> tuple[PartialShape, ...]:
        one_axis(axis)
        check_vector(split_lengths, "split_lengths")
        count = count_of(split_lengths, "split_lengths")
        if count is None:
            return ()
        shape, values = data.shape, axis.ints()
        if shape.rank is None:
            return (shape,) * count
        if values is None:
            return (PartialShape([Dimension.between(0, d.max) for d in shape]),) * count
        place = normalize_axis(values[0], shape.rank)
        lengths = split_lengths.numbers() or (Interval(),) * count
        return tuple(shape.replace({place: n}) for n in _shares(shape, place, lengths))

    def evaluate(self, data: Array, axis: Array, split_lengths: Array) -> Array | tuple[Array, ...]:
        place = normalize_axis(axis.ravel().tolist()[0], data.ndim)
        shares = _shares(PartialShape(data.shape), place, [int(n) for n in split_lengths])
        return _split_array(data, place, [n.get_length() for n in shares])


def _shares(shape: PartialShape, axis: int, requested: Sequence[int | Interval]) -> list[Dimension]:
    """Return the lengths of the parts, with the remainder in place of -1; raise if they do not add up."""
    length = shape[axis]
    if any(isinstance(n, int) and n < -1 for n in requested) or list(requested).count(-1) > 1:
        raise InferenceError(
            f"split_lengths is {listed(requested)}; it may hold lengths from 0, and one -1",
            clause="split_lengths has lengths from 0, and at most one -1",
        )
    parts = [Dimension() if _maybe_negative(n) else Dimension.of(n) for n in requested]
    lengths = []
    for i, part in enumerate(parts):
        left = length - sum(parts[:i] + parts[i + 1 :], start=Dimension(0))
        fits = None if left.max is not None and left.max < 0 else Dimension.of(left).merge(part)
        if fits is None:
            raise _sum_error(shape, axis, requested)
        lengths.append(part if part.is_static else fits)
    if not requested and not length.contains(0):
        raise _sum_error(shape, axis, requested)
    return lengths


def _sum_error(shape: PartialShape, axis: int, requested: Sequence[int | Interval]) -> InferenceError:
    return InferenceError(
        f"split_lengths is {listed(requested)}, but axis {axis} of data {shape} has length {shape[axis]}",
        hint="" if -1 in requested else "a -1 in one place takes what the others leave",
        clause="split_lengths add up to the length of the axis",
    )


def _maybe_negative(number: int | Interval) -> bool:
    low = number if isinstance(number, int) else number.min
    return low is None or low < 0


def _split_array(data: Array, axis: int, lengths: Sequence[int]) -> Array | tuple[Array, ...]:
    parts = tuple(np.split(data, list(accumulate(lengths))[:-1], axis))
    return parts if len(parts) > 1 else parts[0]
