"""Pooling: reductions over windows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ..errors import InferenceError
from ..ir.dimension import Dimension
from ..ir.element import ElementType
from ..ir.formula import Count
from ..ir.operation import Operands
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._define.operation import T_INDEX_64, Input, Op, Output, T, attr, check_index_types, op
from ._lengths import count_of, lengths_of, normalize_axis
from .kernels.pooling import Windows, pool, pool_indices, sum_dtype
from .kernels.statistics import lowest
from .window import SlidingWindow, data_dims

# Max and average pooling over sliding windows.


class Pooling(SlidingWindow):
    """Base of poolings: windows of a fixed kernel over the spatial axes.

    With auto_pad same_upper or same_lower and rounding ceil, OpenVINO rounds after padding, and may count one
    window more than the page says; so does this implementation.
    """

    data = Input(T, "[N, C, spatial...]")
    output = Output(T, "[N, C, windows...]")

    kernel: tuple[int, ...] = attr(gt=0, doc="length of the window along each spatial axis")
    rounding_type: Literal["floor", "ceil", "ceil_torch"] = attr(
        "floor",
        doc="how the number of windows is rounded; with ceil, the last one may be cut off; ceil_torch leaves "
        "it out if it would start in the padding",
    )

    def verify(self) -> None:
        """Require one number per spatial axis."""
        super().verify()
        self._per_axis("kernel", self.kernel)

    def rounding(self) -> str:
        """Return the rounding mode of the number of windows."""
        return self.rounding_type

    def pooled(self, data: Value) -> PartialShape:
        """Return the shape of the output."""
        x = data_dims(data.shape, len(self.kernel))
        return PartialShape([*x[:2], *self.slide(x[2:], [Dimension(k) for k in self.kernel])])

    def placed(self, lengths: tuple[int, ...]) -> Windows:
        """Return the positions of the windows on data of these lengths."""
        begins = [before for before, _ in self.pads(lengths, self.kernel)]
        count = self.windows(lengths, self.kernel)
        return Windows(count, self.kernel, self.strides, self.spread(), begins)

    def kernel_of(self, inputs: Sequence[PartialShape]) -> Sequence[Dimension]:
        """Return the lengths of the kernel, which is an attribute."""
        return [Dimension(length) for length in self.kernel]

    def flops(self, operands: Operands) -> Count:
        """Return one FLOP for each element in a window."""
        return operands.result * math.prod(self.kernel)


class FloorOrCeil(Pooling):
    """Versions before opset14."""

    rounding_type: Literal["floor", "ceil"] = attr(
        "floor", doc="how the number of windows is rounded; with ceil, the last one may be cut off"
    )


class DilatedPooling(Pooling):
    """Versions whose windows may have gaps."""

    dilations: tuple[int, ...] = attr(
        (), gt=0, doc="distance between elements of the window along each spatial axis; 1 when absent"
    )

    def spread(self) -> tuple[int, ...]:
        """Return the distance between kernel elements along each axis."""
        return self.dilations or super().spread()


@op("MaxPool-1")
class MaxPool1(FloorOrCeil):
    """Maximum of ``data`` over each window."""

    decisions = (
        "NaN is never the largest, as in OpenVINO's reference",
        "a window without anything above it gives the lowest finite number, as in OpenVINO's reference and plugin, and not the negative infinity of the page",
    )

    def infer(self, data: Value) -> PartialShape:
        return self.pooled(data)

    def evaluate(self, data: Array) -> Array:
        return pool(data, np.fmax, lowest(data.dtype), self.placed(data.shape[2:]))


class MaxPoolWithIndices(DilatedPooling):
    """Versions of MaxPool that also say where the largest elements are."""

    decisions = (
        "NaN is never the largest, unless it is the first of a window, as in OpenVINO's reference",
        "of equal elements the first is taken, as in OpenVINO's reference; the pages do not say",
    )

    indices = Output("index_element_type", "where in data, flattened from ``axis`` on, each was found")

    index_element_type: ElementType = attr(ElementType.i64, doc="type of the indices, i64 or i32")
    axis: int = attr(0, doc="first axis that the indices count over; negative ones count from the end")

    def verify(self) -> None:
        """Require an index type that the page allows."""
        super().verify()
        check_index_types(index_element_type=self.index_element_type)

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the padding, and the axis counted from the front."""
        rank = inputs[0].rank
        return {**super().shown(inputs, output), "axis": self.axis % rank if rank else self.axis}

    def infer(self, data: Value) -> tuple[PartialShape, PartialShape]:
        normalize_axis(self.axis, len(self.kernel) + 2, "attribute 'axis'")
        shape = self.pooled(data)
        return shape, shape

    def evaluate(self, data: Array) -> tuple[Array, Array]:
        largest, within = pool_indices(data, self.placed(data.shape[2:]))
        # The axes before the spatial ones are included from `axis` on. Then the index is
        # taken modulo the size of these axes, as OpenVINO also does for spatial axes.
        channel = math.prod(data.shape[2:])
        flat = within + np.arange(math.prod(data.shape[:2])).reshape(*data.shape[:2], *self._ones()) * channel
        limit = math.prod(data.shape[self.axis % data.ndim :])
        return largest, (flat % max(limit, 1)).astype(self.index_element_type.dtype)

    def _ones(self) -> tuple[int, ...]:
        return (1,) * len(self.kernel)


@op("MaxPool-8")
class MaxPool8(MaxPoolWithIndices, FloorOrCeil):
    """Maximum of ``data`` over each window, as version 1, and the index of its first occurrence."""


@op("MaxPool-14")
class MaxPool14(MaxPoolWithIndices):
    """As version 8, with one more rounding mode."""


class AvgPoolBase(Pooling):
    """Base of the versions of AvgPool.

    Without exclude-pad, a window's sum is divided by the size of the whole kernel if there is any
    padding, even where the kernel reaches beyond it; without padding, by the number of elements
    inside. The divisor of a window of padding alone is 1.
    Integers are rounded to the nearest, halves to even: so does the plugin for all of them, and the
    reference for 8 bits only.
    """

    decisions = (
        "integers are rounded to the nearest, halves to even, as in OpenVINO's plugin; the pages have real numbers only",
        "the mean of a window without elements is 0, as in OpenVINO's reference; the pages do not say, and its plugin gives NaN",
    )

    exclude_pad: bool = attr(
        default_with_warning="true",
        xml="exclude-pad",
        doc="whether the mean is over data only, without padding",
    )

    def infer(self, data: Value) -> PartialShape:
        if self.exclude_pad and self.auto_pad == "explicit":
            self._no_window_of_padding_alone()
        return self.pooled(data)

    def _no_window_of_padding_alone(self) -> None:
        for axis, (kernel, before, after) in enumerate(
            zip(self.kernel, self.pads_begin, self.pads_end, strict=True)
        ):
            extent = self.extent(axis, kernel)
            if max(before, after) >= extent:
                raise InferenceError(
                    f"attributes 'pads_begin' and 'pads_end' are {before} and {after} along spatial axis {axis}, "
                    f"so that windows of extent {extent} cover only padding and have no mean",
                    hint=f"with 'exclude-pad', padding must be less than {extent}",
                    clause="no window has only padding, if padding is left out of the mean",
                )

    def evaluate(self, data: Array) -> Array:
        lengths = data.shape[2:]
        windows = self.placed(lengths)
        sums = pool(data.astype(sum_dtype(data.dtype), copy=False), np.add, 0, windows)
        padded = any(map(any, self.pads(lengths, self.kernel)))
        divisor: Any = math.prod(self.kernel)
        if self.exclude_pad or not padded:
            divisor = np.ones((), np.int64)
            for axis, n in enumerate(lengths):
                divisor = divisor[..., None] * windows.inside(axis, n)
            divisor = np.maximum(divisor, 1)
        if data.dtype.kind in "iu":
            return np.asarray(np.rint(sums / divisor)).astype(data.dtype)
        return np.asarray(sums / np.asarray(divisor, sums.dtype)).astype(data.dtype, copy=False)


@op("AvgPool-1")
class AvgPool1(AvgPoolBase, FloorOrCeil):
    """Mean of ``data`` over each window."""


@op("AvgPool-14")
class AvgPool14(AvgPoolBase):
    """As version 1, with one more rounding mode."""


@op("AvgPool-16")
class AvgPool16(AvgPoolBase, DilatedPooling):
    """As version 14, with dilations."""


# Adaptive pooling into a given number of windows.


class AdaptivePooling(Op):
    """Base of both operations: windows as equal as possible, which overlap where lengths do not divide.

    The pages require floats; OpenVINO also accepts integers.
    """

    flops_per_element = 0
    flops_per_input = {"data": 1}

    data = Input(T, "[N, C, spatial...]")
    output_size = Input(T_INDEX_64, "1-D; the number of windows along each spatial axis")
    output = Output(T, "[N, C, windows...]")

    def pooled(self, data: Value, output_size: Value) -> PartialShape:
        """Return the shape of the output."""
        counts, spatial = lengths_of(output_size, "output_size"), count_of(output_size)
        shape = data.shape
        if shape.rank is None:
            if spatial is None or counts is None:
                return PartialShape.dynamic()
            shape = PartialShape.dynamic(spatial + 2)
        if not 3 <= len(shape) <= 5:
            raise InferenceError(
                f"data must have rank 3, 4 or 5, [N, C, spatial...], found {shape}",
                clause="data has rank 3, 4 or 5, [N, C, spatial...]",
            )
        if spatial not in (None, len(shape) - 2):
            raise InferenceError(
                f"output_size must hold a number for each spatial axis of data {shape}, {len(shape) - 2} in all, found {spatial}",
                hint="output_size has no numbers for N and C" if spatial == len(shape) else "",
                clause="output_size has a number for each spatial axis",
            )
        counts = counts or (Dimension(),) * (len(shape) - 2)
        for axis, (length, count) in enumerate(zip(shape[2:], counts, strict=True)):
            if length == 0 and count.min:
                raise InferenceError(
                    f"dim {axis + 2} of data {shape} is 0, so there is nothing to pool into the {count} that "
                    f"output_size asks for",
                    clause="data is not empty along spatial axes, unless the output is",
                )
        return PartialShape([*shape[:2], *counts])


@op("AdaptiveAvgPool-8")
class AdaptiveAvgPool(AdaptivePooling):
    """Mean of ``data`` over each of ``output_size`` windows.

    Integers are rounded, halves to even: so does the plugin for all of them, and the reference for
    8 bits only.
    """

    decisions = (
        "integers are rounded to the nearest, halves to even, as in OpenVINO's plugin; the page has real numbers only",
    )

    def infer(self, data: Value, output_size: Value) -> PartialShape:
        return self.pooled(data, output_size)

    def evaluate(self, data: Array, output_size: Array) -> Array:
        shape = self.infer(Value.constant(data), Value.constant(output_size)).static
        if 0 in shape:
            return np.zeros(shape, data.dtype)
        sums = totals(data.astype(sum_dtype(data.dtype), copy=False), shape[2:])
        sizes = np.ones((), np.int64)
        for length, count in zip(data.shape[2:], shape[2:], strict=True):
            start, end = windows(length, count)
            sizes = sizes[..., None] * (end - start)
        if data.dtype.kind in "iu":
            return np.asarray(np.rint(sums / sizes)).astype(data.dtype)
        return np.asarray(sums / sizes.astype(sums.dtype)).astype(data.dtype, copy=False)


@op("AdaptiveMaxPool-8")
class AdaptiveMaxPool(AdaptivePooling):
    """Maximum of ``data`` over each of ``output_size`` windows, and its index."""

    decisions = ("of equal elements the first is taken, as in OpenVINO; the page does not say",)

    indices = Output(
        "index_element_type", "where in its channel, flattened, each was found: the first, if many"
    )

    index_element_type: ElementType = attr(ElementType.i64, doc="type of the indices, i64 or i32")

    def verify(self) -> None:
        """Require an index type that the page allows."""
        check_index_types(index_element_type=self.index_element_type)

    def infer(self, data: Value, output_size: Value) -> tuple[PartialShape, PartialShape]:
        shape = self.pooled(data, output_size)
        return shape, shape

    def evaluate(self, data: Array, output_size: Array) -> tuple[Array, Array]:
        shape = self.pooled(Value.constant(data), Value.constant(output_size)).static
        dtype = self.index_element_type.dtype
        if not math.prod(shape):
            return np.zeros(shape, data.dtype), np.zeros(shape, dtype)
        maxima, places = largest(data, shape[2:])
        return maxima, places.astype(dtype)


def windows(length: int, count: int) -> tuple[Array, Array]:
    """Return the start and the end of each of ``count`` windows over an axis."""
    numbers = np.arange(count, dtype=np.int64)
    return numbers * length // max(count, 1), -(-(numbers + 1) * length // max(count, 1))


def totals(x: Array, counts: Sequence[int]) -> Array:
    """Sum ``x[N, C, ...]`` under the windows over the trailing axes, one axis after another."""
    for axis, count in enumerate(counts, 2):
        bounds = np.stack(windows(x.shape[axis], count), -1).ravel()
        # Select the sums from the start to the end of each window. A last element is appended
        # after the last bound.
        beyond = np.concatenate([x, np.zeros_like(x.take([0], axis))], axis)
        x = np.add.reduceat(beyond, bounds, axis, x.dtype)[(slice(None),) * axis + (slice(None, None, 2),)]
    return x


def largest(x: Array, counts: Sequence[int]) -> tuple[Array, Array]:
    """Return the maxima of ``x[N, C, ...]`` under the windows, and their indices in the channel.

    Ties go to the first. A NaN that is first along an axis is kept, any other is skipped.
    """
    places = np.broadcast_to(np.arange(x[0, 0].size).reshape(x.shape[2:]), x.shape)
    for axis, count in reversed([*enumerate(counts, 2)]):
        start, end = windows(x.shape[axis], count)
        # One step through all windows at a time, so that accesses are contiguous.
        values, origins = (np.ascontiguousarray(np.moveaxis(a, axis, 0)) for a in (x, places))
        best, origin = values.take(start, 0), origins.take(start, 0)
        for step in range(1, int((end - start).max(initial=0))):
            index = np.minimum(start + step, end - 1)
            candidates = values.take(index, 0)
            better = candidates > best
            np.copyto(best, candidates, where=better)
            np.copyto(origin, origins.take(index, 0), where=better)
        x, places = np.moveaxis(best, 0, axis), np.moveaxis(origin, 0, axis)
    return np.ascontiguousarray(x), np.ascontiguousarray(places)
