"""Max and average pooling, over sliding windows and adaptive."""

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
    """Base of pooling over sliding windows with a fixed kernel.

    With auto_pad same_upper or same_lower and rounding ceil, the number of windows is rounded after padding, as in
    OpenVINO, and may be one more than in the specification.
    """

    data = Input(T, "[N, C, spatial...]")
    output = Output(T, "[N, C, windows...]")

    kernel: tuple[int, ...] = attr(gt=0, doc="length of the window along each spatial axis")
    rounding_type: Literal["floor", "ceil", "ceil_torch"] = attr(
        "floor",
        doc="rounding of the number of windows; with ceil, the last window may extend beyond the data; ceil_torch drops "
        "it if it starts in the padding",
    )

    def verify(self) -> None:
        """Require one kernel length per spatial axis."""
        super().verify()
        self._per_axis("kernel", self.kernel)

    def rounding(self) -> str:
        """Return the rounding mode of the number of windows."""
        return self.rounding_type

    def infer_pooled(self, data: Value) -> PartialShape:
        """Check ``data``, and return the shape of the output."""
        x = data_dims(data.shape, len(self.kernel))
        return PartialShape([*x[:2], *self.slide(x[2:], [Dimension(k) for k in self.kernel])])

    def place_windows(self, lengths: tuple[int, ...]) -> Windows:
        """Return the geometry of the windows over data of the given spatial lengths."""
        begins = [before for before, _ in self.pads(lengths, self.kernel)]
        count = self.windows(lengths, self.kernel)
        return Windows(count, self.kernel, self.strides, self.spread(), begins)

    def kernel_of(self, inputs: Sequence[PartialShape]) -> Sequence[Dimension]:
        """Return the lengths of the kernel, which is an attribute."""
        return [Dimension(length) for length in self.kernel]

    def flops(self, operands: Operands) -> Count:
        """Return one FLOP for each pair of an output element and a window element."""
        return operands.result * math.prod(self.kernel)


class FloorOrCeil(Pooling):
    """Base of the versions before opset14, which lack the rounding mode ceil_torch."""

    rounding_type: Literal["floor", "ceil"] = attr(
        "floor",
        doc="rounding of the number of windows; with ceil, the last window may extend beyond the data",
    )


class DilatedPooling(Pooling):
    """Base of the versions with dilations."""

    dilations: tuple[int, ...] = attr(
        (), gt=0, doc="distance between elements of the window along each spatial axis; 1 if absent"
    )

    def spread(self) -> tuple[int, ...]:
        """Return the distance between window elements along each spatial axis."""
        return self.dilations or super().spread()


@op("MaxPool-1")
class MaxPool1(FloorOrCeil):
    """Maximum of ``data`` over each window."""

    decisions = (
        "NaN is never the largest, as in OpenVINO's reference",
        "a window without anything above it gives the lowest finite number, as in OpenVINO's reference and plugin, and not the negative infinity of the page",
    )

    def infer(self, data: Value) -> PartialShape:
        return self.infer_pooled(data)

    def evaluate(self, data: Array) -> Array:
        return pool(data, np.fmax, lowest(data.dtype), self.place_windows(data.shape[2:]))


class MaxPoolWithIndices(DilatedPooling):
    """Base of the versions of MaxPool that also return the indices of the maxima."""

    decisions = (
        "NaN is never the largest, unless it is the first of a window, as in OpenVINO's reference",
        "of equal elements the first is taken, as in OpenVINO's reference; the pages do not say",
    )

    indices = Output("index_element_type", "index of each maximum in data, flattened from ``axis`` on")

    index_element_type: ElementType = attr(ElementType.i64, doc="type of the indices, i64 or i32")
    axis: int = attr(0, doc="first axis that the indices span; a negative one counts from the end")

    def verify(self) -> None:
        """Require that indices are i64 or i32."""
        super().verify()
        check_index_types(index_element_type=self.index_element_type)

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the padding, and the nonnegative axis."""
        rank = inputs[0].rank
        return {**super().shown(inputs, output), "axis": self.axis % rank if rank else self.axis}

    def infer(self, data: Value) -> tuple[PartialShape, PartialShape]:
        normalize_axis(self.axis, len(self.kernel) + 2, "attribute 'axis'")
        shape = self.infer_pooled(data)
        return shape, shape

    def evaluate(self, data: Array) -> tuple[Array, Array]:
        largest, within = pool_indices(data, self.place_windows(data.shape[2:]))
        # Compute the index in the whole tensor, then take it modulo the size of the axes from `axis` on, as OpenVINO
        # does, even if `axis` is a spatial axis.
        channel = math.prod(data.shape[2:])
        flat = within + np.arange(math.prod(data.shape[:2])).reshape(*data.shape[:2], *self._ones()) * channel
        limit = math.prod(data.shape[self.axis % data.ndim :])
        return largest, (flat % max(limit, 1)).astype(self.index_element_type.dtype)

    def _ones(self) -> tuple[int, ...]:
        return (1,) * len(self.kernel)


@op("MaxPool-8")
class MaxPool8(MaxPoolWithIndices, FloorOrCeil):
    """Maximum of ``data`` over each window, and the index of its first occurrence."""


@op("MaxPool-14")
class MaxPool14(MaxPoolWithIndices):
    """The same as version 8, with the additional rounding mode ceil_torch."""


class AvgPoolBase(Pooling):
    """Base of the versions of AvgPool.

    Without exclude-pad, the sum of a window is divided by the size of the whole kernel if there is any padding, even
    if the window extends beyond the padding; without padding, by the number of elements inside the data. The divisor of
    a window that covers only padding is 1. Integers are rounded to the nearest, halves to even, as in OpenVINO's plugin;
    the reference does so for 8-bit types only.
    """

    decisions = (
        "integers are rounded to the nearest, halves to even, as in OpenVINO's plugin; the pages have real numbers only",
        "the mean of a window without elements is 0, as in OpenVINO's reference; the pages do not say, and its plugin gives NaN",
    )

    exclude_pad: bool = attr(
        default_with_warning="true",
        xml="exclude-pad",
        doc="whether to exclude padding from the mean",
    )

    def infer(self, data: Value) -> PartialShape:
        if self.exclude_pad and self.auto_pad == "explicit":
            self._check_padding()
        return self.infer_pooled(data)

    def _check_padding(self) -> None:
        """Require that every window covers some data."""
        for axis, (kernel, before, after) in enumerate(
            zip(self.kernel, self.pads_begin, self.pads_end, strict=True)
        ):
            extent = self.extent(axis, kernel)
            if max(before, after) >= extent:
                raise InferenceError(
                    f"attributes 'pads_begin' and 'pads_end' are {before} and {after} along spatial axis {axis}, "
                    f"so that windows of extent {extent} cover only padding and have no mean",
                    hint=f"with 'exclude-pad', padding must be less than {extent}",
                    clause="no window covers only padding, if padding is excluded from the mean",
                )

    def evaluate(self, data: Array) -> Array:
        lengths = data.shape[2:]
        windows = self.place_windows(lengths)
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
    """The same as version 1, with the additional rounding mode ceil_torch."""


@op("AvgPool-16")
class AvgPool16(AvgPoolBase, DilatedPooling):
    """The same as version 14, with dilations."""


# Adaptive pooling, with a given number of windows.


class AdaptivePooling(Op):
    """Base of adaptive pooling. Windows are as equal as possible, and overlap if their number does not divide the length.

    The specification requires floats; integers are accepted as in OpenVINO.
    """

    flops_per_element = 0
    flops_per_input = {"data": 1}

    data = Input(T, "[N, C, spatial...]")
    output_size = Input(T_INDEX_64, "number of windows along each spatial axis, 1-D")
    output = Output(T, "[N, C, windows...]")

    def infer_pooled(self, data: Value, output_size: Value) -> PartialShape:
        """Check the inputs, and return the shape of the output."""
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

    Integers are rounded to the nearest, halves to even, as in OpenVINO's plugin; the reference does so for 8-bit types
    only.
    """

    decisions = (
        "integers are rounded to the nearest, halves to even, as in OpenVINO's plugin; the page has real numbers only",
    )

    def infer(self, data: Value, output_size: Value) -> PartialShape:
        return self.infer_pooled(data, output_size)

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
        "index_element_type", "index of the first occurrence of each maximum in its flattened channel"
    )

    index_element_type: ElementType = attr(ElementType.i64, doc="type of the indices, i64 or i32")

    def verify(self) -> None:
        """Require that indices are i64 or i32."""
        check_index_types(index_element_type=self.index_element_type)

    def infer(self, data: Value, output_size: Value) -> tuple[PartialShape, PartialShape]:
        shape = self.infer_pooled(data, output_size)
        return shape, shape

    def evaluate(self, data: Array, output_size: Array) -> tuple[Array, Array]:
        shape = self.infer_pooled(Value.constant(data), Value.constant(output_size)).static
        dtype = self.index_element_type.dtype
        if not math.prod(shape):
            return np.zeros(shape, data.dtype), np.zeros(shape, dtype)
        maxima, indices = largest(data, shape[2:])
        return maxima, indices.astype(dtype)


def windows(length: int, count: int) -> tuple[Array, Array]:
    """Return the starts and the exclusive ends of ``count`` windows over an axis of the given length."""
    numbers = np.arange(count, dtype=np.int64)
    return numbers * length // max(count, 1), -(-(numbers + 1) * length // max(count, 1))


def totals(x: Array, counts: Sequence[int]) -> Array:
    """Sum each window of ``x[N, C, ...]``, with ``counts`` windows along each trailing axis."""
    for axis, count in enumerate(counts, 2):
        bounds = np.stack(windows(x.shape[axis], count), -1).ravel()
        # `reduceat` sums between consecutive bounds; every other sum is that of a window. The last bound is the length,
        # so an element is appended.
        beyond = np.concatenate([x, np.zeros_like(x.take([0], axis))], axis)
        x = np.add.reduceat(beyond, bounds, axis, x.dtype)[(slice(None),) * axis + (slice(None, None, 2),)]
    return x


def largest(x: Array, counts: Sequence[int]) -> tuple[Array, Array]:
    """Return the maximum of each window of ``x[N, C, ...]``, and its flat index in the channel.

    Of equal maxima, the first counts. NaN is skipped, unless it is the first element of a window along an axis.
    """
    indices = np.broadcast_to(np.arange(x[0, 0].size).reshape(x.shape[2:]), x.shape)
    for axis, count in reversed([*enumerate(counts, 2)]):
        start, end = windows(x.shape[axis], count)
        # Advance through all windows in step, so that accesses are contiguous.
        values, origins = (np.ascontiguousarray(np.moveaxis(a, axis, 0)) for a in (x, indices))
        best, origin = values.take(start, 0), origins.take(start, 0)
        for step in range(1, int((end - start).max(initial=0))):
            index = np.minimum(start + step, end - 1)
            candidates = values.take(index, 0)
            better = candidates > best
            np.copyto(best, candidates, where=better)
            np.copyto(origin, origins.take(index, 0), where=better)
        x, indices = np.moveaxis(best, 0, axis), np.moveaxis(origin, 0, axis)
    return np.ascontiguousarray(x), np.ascontiguousarray(indices)
