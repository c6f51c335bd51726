"""Operations on shapes: ShapeOf, Reshape, Squeeze and Unsqueeze."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import TypeVar

import numpy as np

from ..errors import InferenceError
from ..ir.dimension import Dimension, DimensionLike, Interval
from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Bounds, Value, objects
from ._define.bounds import fit
from ._define.operation import (
    T_ANY,
    T_INDEX,
    T_SHAPE,
    Input,
    Op,
    Output,
    Propagated,
    attr,
    check_index_types,
    op,
)
from ._lengths import (
    axes_of,
    check_list,
    check_vector,
    count_of,
    listed,
    normalize_axes,
    normalize_axis,
    product,
)

# ShapeOf, with which shape arithmetic begins.


class ShapeOfBase(Op):
    """Base of the versions of ShapeOf, which do not read the elements of ``data``."""

    flops_per_element = 0

    data = Input(T_ANY, "tensor to measure")

    def infer(self, data: Value) -> PartialShape:
        rank = data.shape.rank
        return PartialShape([-1 if rank is None else rank])

    def refuses_lengths(self) -> bool:
        return True  # inference refuses no lengths

    def propagate(self, *inputs: Value) -> Array | None:
        shape = inputs[0].shape
        if shape.rank is None:
            return None
        (output,) = self.infer_types(*inputs)
        return objects(
            (d if d.is_dynamic else fit(d.get_length(), output.element) for d in shape), (shape.rank,)
        )


@op("ShapeOf-3")
class ShapeOf(ShapeOfBase):
    """The shape of ``data`` as a 1-D tensor."""

    shape = Output("output_type", "the length of each axis, 1-D")

    output_type: ElementType = attr(ElementType.i64, doc="element type of the result, i64 or i32")

    def verify(self) -> None:
        check_index_types(output_type=self.output_type)

    def evaluate(self, data: Array) -> Array:
        return np.array(data.shape, np.int64).astype(self.output_type.dtype)


@op("ShapeOf-1")
class ShapeOf1(ShapeOfBase):
    """The shape of ``data`` as a 1-D tensor of i64."""

    shape = Output(ElementType.i64, "the length of each axis, 1-D")

    def evaluate(self, data: Array) -> Array:
        return np.array(data.shape, np.int64)


# Reshape.


@op("Reshape-1")
class Reshape(Op):
    """Reshape ``data`` to ``shape``, keeping the order of its elements."""

    decisions = (
        "beside a length of 0, which leaves it open, -1 is 1, as in OpenVINO; the page does not say",
    )

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to reshape")
    shape = Input(T_SHAPE, "the new shape, 1-D; one length may be -1, for the remaining elements")
    reshaped = Output(T_ANY, "the data in the new shape")

    special_zero: bool = attr(
        default_with_warning="false", doc="whether a length of 0 copies that of the same axis of data"
    )

    def infer(self, data: Value, shape: Value) -> PartialShape:
        check_vector(shape, "shape")
        pattern = shape.numbers()
        if pattern is None:
            count = count_of(shape, "shape")
            if count is None:
                return PartialShape.dynamic()
            pattern = (Interval(),) * count
        return PartialShape(_Target(data.shape, pattern, self.special_zero).lengths())

    def evaluate(self, data: Array, shape: Array) -> Array:
        lengths = [int(n) for n in shape.flat]
        copied = [i for i, n in enumerate(lengths) if n == 0] if self.special_zero else []
        for axis in copied:
            if axis >= data.ndim:
                raise InferenceError(
                    _beyond(axis, data.shape),
                    clause="a 0 in shape that copies a length is at an axis of data",
                )
            lengths[axis] = data.shape[axis]
        if -1 in lengths:
            place = lengths.index(-1)
            available = prod(n for i, n in enumerate(data.shape) if i not in copied)
            requested = prod(n for i, n in enumerate(lengths) if i not in copied and i != place)
            lengths[place] = available // requested if requested else 1  # 1 without elements, as in OpenVINO
        if prod(lengths) != data.size:
            raise _impossible(PartialShape(data.shape), [int(n) for n in shape.flat], self.special_zero)
        return data.reshape(lengths)

    def propagate(self, *inputs: Value) -> Propagated:
        """Propagate contents, in the new shape if that is static."""
        contents, bounds, shape = inputs[0].data, inputs[0].bounds, self.infer(*inputs)
        if not shape.is_static:
            return None
        if bounds is not None:
            return Bounds(bounds.lower.reshape(shape.static), bounds.upper.reshape(shape.static))
        return None if contents is None else contents.reshape(shape.static)


def _beyond(axis: int, shape: Sequence[DimensionLike]) -> str:
    return f"element {axis} of shape is 0, but data {PartialShape(shape)} has no axis {axis} whose length it could copy"


def _impossible(
    source: PartialShape, pattern: Sequence[int | Interval], special_zero: bool
) -> InferenceError:
    """Return the error for a shape whose number of elements does not match that of the data."""
    available, shown = product(source), listed(pattern)
    copied = [i for i, n in enumerate(pattern) if special_zero and n == 0]
    requested = product(
        source[i] if i in copied else Dimension.of(n) for i, n in enumerate(pattern) if n != -1
    )
    if -1 in pattern and requested == 0:
        message = f"data {source} holds {available} elements, but a 0 in shape {shown} leaves none"
    elif -1 in pattern:
        message = (
            f"data {source} holds {available} elements, not a multiple of the {requested} of shape {shown}"
        )
    else:
        message = f"data {source} holds {available} elements, but shape {shown} asks for {requested}"
    return InferenceError(
        message,
        hint=_reshape_hint(source, pattern, special_zero),
        clause="the lengths multiply to the number of elements of data",
    )


def _reshape_hint(source: PartialShape, pattern: Sequence[int | Interval], special_zero: bool) -> str:
    """Return a hint about a length of the pattern that could follow from the data, such as a fixed batch."""
    fixed = [i for i, n in enumerate(pattern) if isinstance(n, int) and n > 0]
    for place in fixed if -1 not in pattern else ():
        open_ = [-1 if i == place else n for i, n in enumerate(pattern)]
        try:
            length = _Target(source, open_, special_zero).lengths()[place]
        except InferenceError:
            continue
        if place < len(source) and source[place] == length:
            keeps = "0 or -1" if special_zero else "-1"
            return (
                f"element {place} of shape is {pattern[place]}, but axis {place} of data has length {length}: {keeps} "
                f"there keeps whatever comes in"
            )
    return "special_zero true lets a 0 copy a length" if 0 in pattern and not special_zero else ""


class _Target:
    """The output shape of Reshape, given the shape of the data and the pattern ``shape``.

    The number of elements is preserved, which determines the length at -1, or of a single unknown axis. Lengths that
    occur in both shapes cancel.
    """

    def __init__(self, source: PartialShape, pattern: Sequence[int | Interval], special_zero: bool) -> None:
        self.source, self.pattern, self.special_zero = source, pattern, special_zero
        negative = [n for n in pattern if isinstance(n, int) and n < -1]
        if negative or list(pattern).count(-1) > 1:
            raise InferenceError(
                f"shape is {listed(pattern)}; it may hold lengths from 0, and one -1",
                clause="shape has lengths from 0, and at most one -1",
            )

    def lengths(self) -> list[Dimension]:
        """Return the length of each axis, possibly dynamic; raise if the number of elements cannot match."""
        copied = [i for i, n in enumerate(self.pattern) if self.special_zero and n == 0]
        lengths = [self._length(i, n) for i, n in enumerate(self.pattern)]
        if self.source.rank is None:
            return lengths
        sources = [d for i, d in enumerate(self.source) if i not in copied]
        unknown = [i for i, d in enumerate(lengths) if i not in copied and d.is_dynamic]
        if -1 in self.pattern:
            unknown = [list(self.pattern).index(-1)]
        targets = [d for i, d in enumerate(lengths) if i not in copied and unknown != [i]]
        if len(unknown) == 1:
            lengths[unknown[0]] = self._divide(lengths[unknown[0]], sources, targets)
        else:
            many, few = map(product, _cancel(sources, targets))
            if not many.compatible(few):
                raise self._impossible()
        return lengths

    def _length(self, axis: int, number: int | Interval) -> Dimension:
        if number == 0 and self.special_zero:
            return self._copy_length(axis)
        if isinstance(number, int):
            return Dimension() if number == -1 else Dimension(number)
        length = Dimension.of(number)
        if (number.min is None or number.min < 0) and -1 not in self.pattern:
            length = length.join(self._if_remainder(axis))
        if not self.special_zero or length.min > 0 or self.source.rank is None or axis >= self.source.rank:
            return length
        # The length may be 0, which copies another one. The symbol is kept, as in OpenVINO; this is wrong only if the
        # data has no elements.
        other = self.source[axis]
        high = None if length.max is None or other.max is None else max(length.max, other.max)
        return Dimension.between(0, high, length.symbol)

    def _copy_length(self, axis: int) -> Dimension:
        if self.source.rank is None:
            return Dimension()
        if axis >= self.source.rank:
            raise InferenceError(
                _beyond(axis, self.source), clause="a 0 in shape that copies a length is at an axis of data"
            )
        return self.source[axis]

    def _if_remainder(self, axis: int) -> Dimension:
        """Return the length of an axis of unknown pattern in case that is -1."""
        if self.source.rank is None:
            return Dimension()
        return self._remainder(
            self.source, [Dimension.of(n) for i, n in enumerate(self.pattern) if i != axis]
        )

    def _remainder(self, sources: Sequence[Dimension], targets: Sequence[Dimension]) -> Dimension:
        """Return the possible lengths at -1 if an axis may be empty: at most the number of elements, and at least 0."""
        if not self.special_zero and any(d.max == 0 for d in (*sources, *targets)):
            return Dimension(1) if any(d.max == 0 for d in targets) else Dimension(0, 1)
        most, least = product(map(_at_least_one, sources)).max, product(map(_at_least_one, targets)).min
        return Dimension.between(0, None if most is None else max(most // least, 1))

    def _divide(self, length: Dimension, sources: list[Dimension], targets: list[Dimension]) -> Dimension:
        """Return ``length`` refined by the quotient of the products of ``sources`` and ``targets``."""
        many, few = map(product, _cancel(sources, targets))
        if few == 0 and not many.contains(0):
            raise self._impossible()
        if few.min == 0:
            return self._remainder(sources, targets) if -1 in self.pattern else length
        # If the rank of the data is unknown, OpenVINO infers a length of at least 1 for -1. At run time, it may be 0,
        # as for x[mask] with a mask that selects no rows, in OpenVINO too.
        high = None if many.max is None else many.max // few.min
        low = min(many.min, 1) if few.max is None else -(-many.min // few.max)
        if high is not None and low > high:
            raise self._impossible()
        left = length.merge(many if few == 1 else Dimension.between(low, high))
        if left is None:
            raise self._impossible()
        return left

    def _impossible(self) -> InferenceError:
        return _impossible(self.source, self.pattern, self.special_zero)


def _at_least_one(length: Dimension) -> Interval:
    return length.map(lambda n: max(n, 1))


def _cancel(
    sources: Sequence[Dimension], targets: Sequence[Dimension]
) -> tuple[list[Dimension], list[Dimension]]:
    """Cancel what is known to occur in both shapes: dynamic lengths with the same symbol, and the common divisor of the others."""
    left = [d for d in sources if d.is_dynamic]
    rest = [d for d in targets if d.is_dynamic]
    for length in list(left):
        same = [other for other in rest if length.symbol is not None and other.symbol is length.symbol]
        if same:
            left.remove(length)
            rest.remove(same[0])
    many = prod(d.get_length() for d in sources if d.is_static)
    few = prod(d.get_length() for d in targets if d.is_static)
    shared = gcd(many, few) if many and few else 1
    return [Dimension(many // shared), *left], [Dimension(few // shared), *rest]


# Squeeze and Unsqueeze.

_LengthT = TypeVar("_LengthT")


class SqueezeBase(Op):
    """Base of the versions of Squeeze. Axes of a length other than 1 are kept; a scalar accepts axes 0 and -1."""

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to squeeze")
    axes = Input(T_INDEX, "axes to remove; all axes of length 1 if absent or empty", optional=True)
    squeezed = Output(T_ANY, "the data without these axes")

    def infer(self, data: Value, axes: Value | None = None) -> PartialShape:
        if axes is not None:
            check_list(axes, "axes")
        shape = data.shape
        if shape.rank is None or (axes is not None and axes.count == 0 and axes.ints() is None):
            return self._squeeze_all(shape)
        chosen = () if axes is None else axes.ints()
        if chosen is None:
            assert axes is not None
            return self._squeeze_unknown(shape, count_of(axes, "axes"))
        if not chosen:
            return self._squeeze_all(shape)
        squeezed = {normalize_axis(axis, shape.rank, least=1) for axis in chosen}
        if not shape.rank:
            return shape
        if any(self.skips and shape[i].is_dynamic and shape[i].contains(1) for i in squeezed):
            return PartialShape.dynamic()
        # By the specification, an unknown length counts as 1 here.
        return PartialShape([d for i, d in enumerate(shape) if i not in squeezed or not d.contains(1)])

    def evaluate(self, data: Array, axes: Array | None = None) -> Array:
        chosen: Sequence[int] = () if axes is None else axes_of(axes)
        squeezed = {normalize_axis(axis, data.ndim, least=1) for axis in chosen} or range(data.ndim)
        return data.reshape([n for i, n in enumerate(data.shape) if n != 1 or i not in squeezed])

    @property
    def skips(self) -> bool:
        """Whether an axis of unknown length may be kept, so that the rank of the output is unknown."""
        return False

    def _squeeze_all(self, shape: PartialShape) -> PartialShape:
        if shape.rank is None or any(d.is_dynamic and d.contains(1) for d in shape):
            return PartialShape.dynamic()
        return PartialShape([d for d in shape if d != 1])

    def _squeeze_unknown(self, shape: PartialShape, count: int | None) -> PartialShape:
        if not any(d.contains(1) for d in shape):
            return shape
        if count != 1 or self.skips or not len(shape):
            return PartialShape.dynamic()
        return PartialShape.dynamic(len(shape) - 1)


@op("Squeeze-15")
class Squeeze(SqueezeBase):
    """Remove ``axes`` of length 1 from ``data``."""

    allow_axis_skip: bool = attr(
        False, doc="whether an axis of unknown length may be kept, which makes the rank of the output unknown"
    )

    @property
    def skips(self) -> bool:
        return self.allow_axis_skip


@op("Squeeze-1")
class Squeeze1(SqueezeBase):
    """Remove ``axes`` of length 1 from ``data``; axes of unknown length are assumed to be removed."""


@op("Unsqueeze-1")
class Unsqueeze(Op):
    """Insert axes of length 1 into ``data``, at positions ``axes`` of the result."""

    decisions = ("an axis that is named twice is added once, as in OpenVINO; the page does not say",)

    bounded = True

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to unsqueeze")
    axes = Input(T_INDEX, "axes of the result to insert, a scalar or 1-D; negative ones count from its end")
    unsqueezed = Output(T_ANY, "the data with these axes")

    def infer(self, data: Value, axes: Value) -> PartialShape:
        check_list(axes, "axes")
        places, shape = axes.ints(), data.shape
        if places is not None:
            if not places:
                raise InferenceError(
                    "axes is empty; at least one number is expected", clause="axes is not empty"
                )
            return PartialShape.dynamic() if shape.rank is None else PartialShape(_insert_axes(shape, places))
        if shape.rank is None or axes.count != 1:
            return PartialShape.dynamic()
        return PartialShape.dynamic(shape.rank + 1)

    def evaluate(self, data: Array, axes: Array) -> Array:
        return data.reshape(_insert_axes(data.shape, axes_of(axes)))


def _insert_axes(lengths: Sequence[_LengthT], places: Sequence[int]) -> list[_LengthT | int]:
    # OpenVINO drops duplicates. Duplicates of different sign are refused, as they have no sound meaning.
    distinct = sorted(set(places))
    rank = len(lengths) + len(distinct)
    added = normalize_axes(distinct, rank, of="a result")
    rest = iter(lengths)
    return [1 if i in added else next(rest) for i in range(rank)]
