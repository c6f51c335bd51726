"""Strided slices with masks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import EllipsisType
from typing import Any

from ...errors import InferenceError, ValidationError
from ...ir.dimension import Dimension, Interval
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value, objects
from .._define.operation import T_ANY, T_INDEX, Input, Op, Output, Propagated, attr, op
from .._lengths import common_count, count_of, listed
from ._slicing import FAR, Bound, bounds_of, python_slice, sliced

_MASK = "where 1, {}; entry by entry of begin, 0 where it is too short"


def _mask(what: str, *default: tuple[int, ...], default_with_warning: str | None = None) -> Any:
    return attr(*default, ge=0, le=1, doc=_MASK.format(what), default_with_warning=default_with_warning)


@op("StridedSlice-1")
class StridedSlice(Op):
    """Elements of ``data`` from ``begin`` to before ``end`` by ``strides``, subject to the masks."""

    decisions = (
        "an end mask on the way back takes the first element, too, as in OpenVINO's reference",
        "a slice whose end is its begin is empty, as in OpenVINO's reference",
        "an index of an axis that shrinks must be in range, as in OpenVINO's reference",
    )

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to slice")
    begin = Input(T_INDEX, "1-D; first indices; negative ones count from the end, and all are clamped")
    end = Input(T_INDEX, "1-D; indices behind the last ones, likewise")
    strides = Input(T_INDEX, "1-D; steps, negative backwards, never 0; 1 when absent", optional=True)
    region = Output(T_ANY, "the elements in the slices, without axes that shrink, and with new ones")

    begin_mask: tuple[int, ...] = _mask("the slice starts where the axis does")
    end_mask: tuple[int, ...] = _mask("the slice extends to the end of the axis", default_with_warning="")
    new_axis_mask: tuple[int, ...] = _mask("an axis of length 1 is inserted", ())
    shrink_axis_mask: tuple[int, ...] = _mask("only the element at begin is taken, and the axis goes", ())
    ellipsis_mask: tuple[int, ...] = _mask("as many axes are taken whole as the others leave; once only", ())

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
                dims.append(sliced(shape[axis], *ends, steps[entry]))
            elif indices is not None:
                _check_inside(entry, indices[entry], shape[axis], axis)
        return PartialShape(dims)

    def _bounded_shape(self, shape: PartialShape) -> PartialShape:
        """Return the shape if the number of slices or the rank is unknown."""
        if shape.rank is None or any(self.new_axis_mask) or any(self.shrink_axis_mask):
            return PartialShape.dynamic()
        return PartialShape([Dimension.between(0, d.max) for d in shape])

    def evaluate(self, data: Array, begin: Array, end: Array, strides: Array | None = None) -> Array:
        region: Array = data[self.index(data.shape, begin, end, strides)]
        return region

    def propagate(self, *inputs: Value) -> Propagated:
        """Propagate contents, ignoring masked numbers of begin and end."""
        data, begin, end, *strides = inputs
        begin = _apply_masks(begin, self.begin_mask)
        end = _apply_masks(end, self.end_mask, self.shrink_axis_mask)
        return super().propagate(data, begin, end, *strides)

    def index(
        self, shape: tuple[int, ...], begin: Array, end: Array, strides: Array | None = None
    ) -> tuple[slice | int | EllipsisType | None, ...]:
        """Return the region as a NumPy index."""
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
        """Yield, for each axis, its number (None if new) and the entry that slices it, if any."""
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
        """Return the start and stop of a slice, applying masks."""
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
    """Return a list with 0 in place of masked numbers."""
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
