"""Operations that enlarge tensors: Concat, Pad, Broadcast and Tile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal, TypeVar

import numpy as np

from ...codes import Code
from ...errors import InferenceError
from ...ir.dimension import Dimension, Interval
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value, objects
from ...limits import check_array_size
from .._define.operation import (
    INTEGERS,
    MAX_PROPAGATED,
    NUMBERS,
    T_ANY,
    T_AXIS,
    T_SHAPE,
    Element,
    Input,
    Op,
    Output,
    Propagated,
    attr,
    op,
)
from .._lengths import broadcast_shapes, check_scalar, check_vector, count_of, lengths_of, normalize_axis

# Concatenation along an axis.


@op("Concat-1")
class Concat(Op):
    """Concatenate ``parts`` along an axis."""

    bounded = True

    symbolic = True
    flops_per_element = 0

    parts = Input(T_ANY, "tensors of equal shape, except along the axis", variadic=True)
    whole = Output(T_ANY, "the parts in order, concatenated")

    axis: int = attr(
        default_with_warning="0", doc="axis to concatenate along; a negative one counts from the end"
    )

    def infer(self, *parts: Value) -> PartialShape:
        if not parts:
            raise InferenceError(
                "no inputs, expected at least one", code=Code.PORT_COUNT, clause="there is at least one input"
            )
        first = next((i for i, v in enumerate(parts) if v.shape.rank is not None), None)
        if first is None:
            return PartialShape.dynamic()
        rank = len(parts[first].shape)
        axis = normalize_axis(self.axis, rank)
        whole, total = PartialShape.dynamic(rank), Dimension(0)
        for index, part in enumerate(parts):
            shape = PartialShape.dynamic(rank) if part.shape.rank is None else part.shape
            if len(shape) != rank:
                raise InferenceError(
                    f"input {index} has shape {shape}, but input {first} {parts[first].shape}; all must have as "
                    f"many axes",
                    clause="all inputs have the same rank",
                )
            merged = whole.merge(shape.replace({axis: whole[axis]}))
            if merged is None:
                raise _length_error(index, shape, whole, axis)
            whole, total = merged, Dimension.of(total + shape[axis])
        return whole.replace({axis: total})

    def refuses_lengths(self) -> bool:
        return True

    def evaluate(self, *parts: Array) -> Array:
        return np.concatenate(parts, axis=self.axis)

    def propagate(self, *inputs: Value) -> Propagated:
        if any(v.bounds is not None for v in inputs):
            return super().propagate(*inputs)
        if all(v.data is None for v in inputs):
            return None
        contents = [_contents(v) for v in inputs]
        available = [c for c in contents if c is not None]
        return self.evaluate(*available) if len(available) == len(contents) else None


def _contents(value: Value) -> Array | None:
    """Return the contents of an input; an unknown integer tensor of static shape becomes unbounded intervals."""
    if value.data is not None:
        return value.data
    if not value.element.integral or not value.shape.is_static or value.count.min > MAX_PROPAGATED:
        return None
    unsigned = value.element.label.startswith("u")
    anything = Dimension() if unsigned else Interval()
    return objects([anything] * value.count.min, value.shape.static)


def _length_error(index: int, shape: PartialShape, before: PartialShape, axis: int) -> InferenceError:
    """Return the error for an input with a length that differs from those of the inputs before it."""
    wrong = next(i for i, d in enumerate(shape) if i != axis and not d.compatible(before[i]))
    return InferenceError(
        f"input {index} has shape {shape}, but along axis {wrong} the inputs before it have length "
        f"{before[wrong]}; only along axis {axis}, where they are joined, may lengths differ",
        clause="inputs have equal lengths, except along the axis",
    )


# Padding, and cropping by negative pads, at both ends of each axis.

T_DATA = Element("T", (*NUMBERS, ElementType.boolean, ElementType.string), "any number, boolean or string")
# Two type variables, as OpenVINO lets the inputs differ in type.
T_BEGIN = Element("T_BEGIN", INTEGERS, "any integer type")
T_END = Element("T_END", INTEGERS, "any integer type")


class PadBase(Op):
    """Base of the versions of Pad. Negative pads crop, in both versions."""

    flops_per_element = 0

    data = Input(T_DATA, "tensor to pad")
    pads_begin = Input(T_BEGIN, "number of elements to add before each axis; negative to crop")
    pads_end = Input(T_END, "number of elements to add after each axis; negative to crop")
    pad_value = Input(
        T_DATA, "value of the padding in pad_mode constant, a scalar; 0 if absent", optional=True
    )
    padded = Output(T_DATA, "the data, with each axis longer by its two pads")

    pad_mode: Literal["constant", "edge", "reflect", "symmetric"] = attr(
        default_with_warning="constant",
        doc="value of the padding: pad_value, the outermost element, or a mirror image without (reflect) or with "
        "(symmetric) the outermost element",
    )

    symbolic = True

    def infer(
        self, data: Value, pads_begin: Value, pads_end: Value, pad_value: Value | None = None
    ) -> PartialShape:
        constant = self.pad_mode == "constant"
        if constant and pad_value is not None:
            check_scalar(pad_value, "pad_value")
        pads = []
        for value, name in ((pads_begin, "pads_begin"), (pads_end, "pads_end")):
            check_vector(value, name)
            if None not in (value.shape.rank, data.shape.rank) and not value.count.contains(len(data.shape)):
                raise InferenceError(
                    f"{name} has length {value.count}, but data {data.shape} has rank {data.shape.rank}",
                    clause=f"{name} has a number for each axis of data",
                )
            pads.append(value.numbers())
        begins, ends = pads
        if data.shape.rank is None or begins is None or ends is None:
            return PartialShape.dynamic(data.shape.rank)
        return PartialShape(map(self._length, range(len(data.shape)), data.shape, begins, ends))

    def _length(self, axis: int, dim: Dimension, begin: int | Interval, end: int | Interval) -> Dimension:
        if self.pad_mode != "constant":
            for name, pad in (("pads_begin", begin), ("pads_end", end)):
                least = pad.min if isinstance(pad, Interval) else pad
                if least is not None and least > 0:
                    dim = self._check_copies(axis, dim, name, least)
        padded = dim + (begin + end)
        return Dimension.of(padded.map(lambda n: max(n, 0)) if padded is not dim else dim)

    def _check_copies(self, axis: int, dim: Dimension, name: str, pad: int) -> Dimension:
        """Return the length of an axis, after checking that it has enough elements to pad with."""
        needed = {"reflect": pad + 1, "symmetric": pad}.get(self.pad_mode, 1)
        if dim.max == 0:
            raise InferenceError(
                f"axis {axis} of data has length 0, and pad_mode {self.pad_mode} pads with its elements",
                clause="data is not empty along an axis that is padded with its elements",
            )
        if dim.max is not None and dim.max < needed:
            raise InferenceError(
                f"element {axis} of {name} is {pad}, but axis {axis} of data has length {dim}, and pad_mode "
                f"{self.pad_mode} finds at most {dim.max - needed + pad} elements to mirror there",
                clause=f"{name} is at most what pad_mode finds in data",
            )
        return dim if dim.min >= needed else Dimension.between(needed, dim.max, dim.symbol)

    def evaluate(
        self, data: Array, pads_begin: Array, pads_end: Array, pad_value: Array | None = None
    ) -> Array:
        inputs = (data, pads_begin, pads_end) + (() if pad_value is None else (pad_value,))
        # Inference raises if there are too few elements to mirror.
        shape = self.infer(*map(Value.constant, inputs)).static
        begins = [int(n) for n in pads_begin]
        if self.pad_mode == "constant":
            return _pad_constant(data, shape, begins, _zero(data) if pad_value is None else pad_value)
        for axis, (length, new, begin) in enumerate(zip(data.shape, shape, begins, strict=True)):
            index = np.arange(new) - begin
            if self.pad_mode == "edge":
                index = index.clip(0, max(length - 1, 0))
            else:
                # The data is mirrored before it is cropped.
                gap = int(self.pad_mode == "symmetric")
                index = np.where(index < 0, -index - gap, index)
                index = np.where(index >= length, 2 * (length - 1) - index + gap, index)
            data = data.take(index, axis)
        return data


def _pad_constant(data: Array, shape: tuple[int, ...], begins: list[int], fill: object) -> Array:
    padded = np.full(shape, fill, data.dtype)
    source, target = [], []
    for old, new, begin in zip(data.shape, shape, begins, strict=True):
        first = max(-begin, 0)
        last = max(min(old, new - begin), first)
        source.append(slice(first, last))
        target.append(slice(first + begin, last + begin))
    padded[tuple(target)] = data[tuple(source)]
    return padded


def _zero(data: Array) -> object:
    return "" if data.dtype == object and all(isinstance(x, str) for x in data.flat) else 0


@op("Pad-1")
class Pad1(PadBase):
    """Extend ``data`` by ``pads_begin`` and ``pads_end`` elements along each axis.

    The specification requires nonnegative pads; OpenVINO treats this version as version 12.
    """

    decisions = ("a negative pad crops, as in version 12 and in OpenVINO; the page asks for at least 0",)


@op("Pad-12")
class Pad12(PadBase):
    """Extend or crop ``data`` by ``pads_begin`` and ``pads_end`` elements along each axis."""


# Broadcast and Tile: repetition of tensors along axes.

_InputT = TypeVar("_InputT", Array, Value)

_NAMES = ("data", "target_shape")


class BroadcastBase(Op):
    """Base of the versions of Broadcast. OpenVINO also accepts mode ``none``, for explicit."""

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to broadcast")
    target_shape = Input(T_SHAPE, "the shape to broadcast to, 1-D")
    axes_mapping = Input(
        T_AXIS,
        "the target axis of each axis of data, 1-D and ascending; for mode explicit",
        optional=True,
    )
    expanded = Output(T_ANY, "the data, repeated along new axes and axes of length 1")

    mode: str = attr("numpy", doc="how to align the axes of data with those of the target")

    def infer(self, data: Value, target_shape: Value, axes_mapping: Value | None = None) -> PartialShape:
        target, mapping, shape = (
            lengths_of(target_shape, "target_shape"),
            self._mapping(axes_mapping),
            data.shape,
        )
        if mapping is not None:
            check_vector(mapping, "axes_mapping")
            if shape.rank == 0 and count_of(mapping, "axes_mapping") == 1:
                shape = PartialShape([1])  # a scalar counts as a vector of one element, as in OpenVINO
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
        target, mapping = tuple(target_shape.tolist()), self._mapping(axes_mapping)
        if mapping is not None:
            lengths = dict(zip(map(int, mapping), data.shape or (1,) * mapping.size, strict=True))
            data = data.reshape([lengths.get(i, 1) for i in range(len(target))])
        elif self.mode == "pdpd":
            data = data.reshape(data.shape + (1,) * (len(target) - data.ndim))
        if self.mode in ("bidirectional", "pdpd"):
            target = np.broadcast_shapes(data.shape, target)
        return np.broadcast_to(data, target)

    def _mapping(self, axes_mapping: _InputT | None) -> _InputT | None:
        """Return ``axes_mapping``, or ``None`` if the mode ignores it."""
        return axes_mapping if self.mode in ("explicit", "none") else None


def _fit(shape: PartialShape, goal: PartialShape, places: Sequence[int]) -> PartialShape:
    """Return ``goal``, refined by the lengths of the data that cannot be 1; raise if they do not fit.

    Args:
        shape: the shape of the data.
        goal: the target shape.
        places: the target axis of each axis of the data.
    """
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
    """Broadcast ``data`` to ``target_shape``."""

    decisions = (
        "mode pdpd, which the page does not list and OpenVINO reads, aligns first axes, and keeps lengths of data where the target has 1",
    )

    mode: Literal["numpy", "explicit", "bidirectional", "pdpd", "none"] = attr(
        "numpy",
        doc="axes to align: the last ones (numpy, and bidirectional, which also stretches the target), the first ones "
        "(pdpd), or those of axes_mapping (explicit)",
    )

    def infer(self, data: Value, target_shape: Value, axes_mapping: Value | None = None) -> PartialShape:
        is_explicit = self.mode in ("explicit", "none")
        if is_explicit != (axes_mapping is not None):
            raise InferenceError(
                f"mode {self.mode} {'needs' if is_explicit else 'takes no'} input 'axes_mapping'",
                code=Code.PORT_COUNT,
                clause="axes_mapping is given in mode explicit, and in no other mode",
            )
        return super().infer(data, target_shape, axes_mapping)


@op("Broadcast-1")
class Broadcast1(BroadcastBase):
    """Broadcast ``data`` to ``target_shape``.

    Mode explicit without ``axes_mapping`` is the same as numpy, as in OpenVINO.
    """

    decisions = (
        "mode explicit without axes_mapping aligns last axes, as in OpenVINO; the page asks for axes_mapping",
    )

    mode: Literal["numpy", "explicit", "none"] = attr(
        "numpy", doc="axes to align: the last ones, or those of axes_mapping"
    )


@op("Tile-1")
class Tile(Op):
    """Repeat ``data`` along each axis by the number of times in ``repeats``."""

    symbolic = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to repeat")
    repeats = Input(
        T_SHAPE,
        "number of repetitions along the last axes, 1-D; further elements add axes, and negative ones count as 0",
    )
    tiled = Output(T_ANY, "the repeated data")

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
        # Lengths of 0 count as 1, since NumPy may still loop over the other lengths.
        check_array_size(math.prod(max(n, 1) for n in lengths), data.itemsize)
        return np.tile(data, times)
