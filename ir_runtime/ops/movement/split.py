"""Split: a tensor divided into parts along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension, Interval
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_ANY, T_AXIS, Input, Op, Output, attr, op
from .._lengths import check_scalar, check_vector, count_of, listed, normalize_axis
from ._indices import one_axis

MOST_PARTS = 1 << 20
"""More outputs than any layer has."""


@op("Split-1")
class Split(Op):
    """Cut ``data`` into parts of equal length along ``axis``."""

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to split")
    axis = Input(T_AXIS, "axis to split, a scalar; a negative one counts from the end")
    parts = Output(T_ANY, "one part", variadic=True)

    num_splits: int = attr(gt=0, doc="number of parts")

    def infer(self, data: Value, axis: Value) -> tuple[PartialShape, ...]:
        check_scalar(axis, "axis")
        shape, values = data.shape, axis.ints()
        if shape.rank is None:
            return self._repeat(shape)
        if values is None:
            # For any axis, no length grows.
            return self._repeat(PartialShape([Dimension.between(0, d.max) for d in shape]))
        place = normalize_axis(values[0], shape.rank)
        return self._repeat(shape.replace({place: self._part(shape, place)}))

    def evaluate(self, data: Array, axis: Array) -> Array | tuple[Array, ...]:
        place = normalize_axis(int(axis), data.ndim)
        part = self._part(PartialShape(data.shape), place).get_length()
        return _split_array(data, place, [part] * self.num_splits)

    def _repeat(self, part: PartialShape) -> tuple[PartialShape, ...]:
        """Return the shapes of all parts, bounding their number."""
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
    """Cut ``data`` along ``axis`` into parts of the lengths in ``split_lengths``."""

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to split")
    axis = Input(T_AXIS, "axis to split, a scalar or one number; a negative one counts from the end")
    split_lengths = Input(T_AXIS, "1-D; a length for each part, of which one may be -1: the rest")
    parts = Output(T_ANY, "one part", variadic=True)

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
    """Return the lengths of the parts: the requested ones, possibly unknown, and the remainder."""
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
            raise _wrong_sum(shape, axis, requested)
        lengths.append(part if part.is_static else fits)
    if not requested and not length.contains(0):
        raise _wrong_sum(shape, axis, requested)
    return lengths


def _wrong_sum(shape: PartialShape, axis: int, requested: Sequence[int | Interval]) -> InferenceError:
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
