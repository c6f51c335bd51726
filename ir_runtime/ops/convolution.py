"""Convolutions: plain, grouped, transposed, deformable and binary."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from types import EllipsisType
from typing import Literal

import numpy as np

from ..errors import InferenceError, ValidationError
from ..ir.dimension import Dimension
from ..ir.element import ElementType
from ..ir.formula import Count
from ..ir.operation import Lengths, Operands, size
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._define.operation import T_INDEX, Element, Input, Output, T, attr, op
from ._lengths import lengths_of, product
from ._resampling import BILINEAR
from .kernels.convolution import convolve, pad_spatial
from .kernels.matmul import accumulator_dtype, from_accumulator
from .window import DilatedWindow, data_dims

# Convolutions, plain and grouped, and the base of all: filters and their channels.

_GROUPS = "filters with a dimension of groups in front are for the operation whose name begins with Group"


class ConvolutionBase(DilatedWindow):
    """A window of filters, one for each pair of channels."""

    flops_per_element = 0

    axis_defaults = {**DilatedWindow.axis_defaults, "strides": "1", "dilations": "1"}

    def filter_dims(self, shape: PartialShape, leading: int, layout: str) -> PartialShape:
        """Return the shape of the filters, with ``leading`` axes before the kernel."""
        rank = len(self.strides) + leading
        if shape.rank is None:
            return PartialShape.dynamic(rank)
        if shape.rank != rank:
            raise InferenceError(
                f"filters must have rank {rank}, {layout}, found {shape}",
                hint=_GROUPS if shape.rank == rank + 1 and leading == 2 else "",
                clause=f"filters has as many spatial axes as data, {layout}",
            )
        return shape

    def check_channels(self, x: PartialShape, w: PartialShape, expected: Dimension, hint: str = "") -> None:
        """Require that the channels of the data match those of the filters."""
        if not x[1].compatible(expected):
            raise InferenceError(
                f"data {x} has {x[1]} channels, but filters {w} are made for {expected}",
                hint=hint,
                clause="filters are made for the channels of data",
            )

    def groups_of(self, x: PartialShape, w: PartialShape, each: Dimension) -> Dimension:
        """Return the number of groups, from the filters and the channels of the data."""
        channels, groups = x[1], w[0]
        alone = "the first dimension of filters is the number of groups" if channels == each else ""
        self.check_channels(x, w, Dimension.of(groups * each), alone)
        if groups.is_static or not each.min:
            return groups
        least = 0 if each.max is None else -(-channels.min // each.max)
        most = None if channels.max is None else channels.max // each.min
        fitting = None if most is not None and least > most else groups.merge(Dimension.between(least, most))
        if fitting is None:
            raise InferenceError(
                f"data {x} has {channels} channels, but filters {w} are made for a multiple of {each}",
                clause="the channels of data are a multiple of those that a filter reads",
            )
        return fitting

    def correlated(self, data: Value, filters: Value) -> PartialShape:
        """Return the output shape if every filter uses all channels."""
        x = data_dims(data.shape, len(self.strides))
        w = self.filter_dims(filters.shape, 2, "[C_out, C_in, kernel...]")
        self.check_channels(x, w, w[1], _channels_hint(x[1], w[0], w[1]))
        return PartialShape([x[0], w[0], *self.slide(x[2:], w[2:])])

    def macs(self, operands: Operands) -> Count:
        """Return one MAC for each element of the output and of a filter, including those over padding."""
        return operands.result * size(self._filter(operands.inputs[1]))

    def _filter(self, filters: Lengths) -> Lengths:
        """Return the axes of one filter: its channels and kernel."""
        return filters[-len(self.strides) - 1 :]


class Conv2D(ConvolutionBase):
    """Filters of images."""

    def verify(self) -> None:
        """Require two spatial axes."""
        super().verify()
        if len(self.strides) != 2:
            raise ValidationError(
                f"attribute 'strides' must have a number for Y and one for X, not {list(self.strides)}",
                clause="attribute 'strides' has two numbers, for Y and X",
            )


def _channels_hint(channels: Dimension, out: Dimension, each: Dimension) -> str:
    """Return a hint about the channels of data and filters [C_out, C_in, kernel...]."""
    if channels == out:
        return "filters are [C_out, C_in, kernel...]; C_out and C_in may have changed places"
    if channels.is_static and each.is_static and each.min and channels.min % each.min == 0:
        return "filters for groups of channels are for GroupConvolution, as [G, C_out, C_in, kernel...]"
    return ""


class ForwardConvolution(ConvolutionBase):
    """Base of plain and grouped convolutions; plain ones are of one group."""

    decisions = (
        "sums of integers wrap around; OpenVINO has no callable reference for them, and its plugin saturates",
    )

    def convolve(self, data: Array, filters: Array) -> Array:
        """Correlate with filters ``[G, C_out, C_in, kernel...]``."""
        lengths, kernel = data.shape[2:], filters.shape[3:]
        self.windows(lengths, kernel)  # raises if none fits
        return convolve(data, filters, self.strides, self.dilations, self.pads(lengths, kernel))


@op("Convolution-1")
class Convolution(ForwardConvolution):
    """Correlate ``data`` with each of ``filters`` over the spatial axes."""

    data = Input(T, "[N, C_in, spatial...]")
    filters = Input(T, "[C_out, C_in, kernel...]")
    output = Output(T, "[N, C_out, spatial...]")

    def infer(self, data: Value, filters: Value) -> PartialShape:
        return self.correlated(data, filters)

    def evaluate(self, data: Array, filters: Array) -> Array:
        return self.convolve(data, filters[None])


@op("GroupConvolution-1")
class GroupConvolution(ForwardConvolution):
    """Correlate each group of channels of ``data`` with the ``filters`` of that group."""

    data = Input(T, "[N, G * C_in, spatial...]")
    filters = Input(T, "[G, C_out, C_in, kernel...]; the number of groups G is read from here")
    output = Output(T, "[N, G * C_out, spatial...]")

    def infer(self, data: Value, filters: Value) -> PartialShape:
        x = data_dims(data.shape, len(self.strides))
        w = self.filter_dims(filters.shape, 3, "[G, C_out, C_in, kernel...]")
        groups = self.groups_of(x, w, w[2])
        return PartialShape([x[0], groups * w[1], *self.slide(x[2:], w[3:])])

    def evaluate(self, data: Array, filters: Array) -> Array:
        return self.convolve(data, filters)


# Transposed convolutions (deconvolutions): the gradient of a convolution with respect to its data.


class TransposedConvolution(ConvolutionBase):
    """Base of plain and grouped transposed convolutions; plain ones are of one group.

    Padding is cropped from the output. With an ``output_shape``, the crop follows from it, unless auto_pad is
    explicit or valid: then pads_begin, or nothing, is cropped at the start, and the end follows. Without it,
    an auto_pad other than explicit crops nothing.
    """

    output_padding: tuple[int, ...] = attr((), ge=0, doc="elements to add at the end of each spatial axis")

    def verify(self) -> None:
        """Require one number per spatial axis."""
        super().verify()
        if self.output_padding:
            self._per_axis("output_padding", self.output_padding)

    def spreads(
        self, lengths: Sequence[Dimension], kernel: Sequence[Dimension], wanted: Value | None
    ) -> list[Dimension]:
        """Return the length of each spatial axis of the output."""
        if 0 in kernel:
            axis = next(axis for axis, length in enumerate(kernel) if length == 0)
            raise InferenceError(
                f"filters have a kernel of length 0 along spatial axis {axis}; at least 1 is expected",
                clause="filters have a kernel of length at least 1 along each spatial axis",
            )
        if wanted is not None:
            return self._requested_lengths(wanted)
        return [
            self._spread(axis, n, k, self._crop(axis))
            for axis, (n, k) in enumerate(zip(lengths, kernel, strict=True))
        ]

    def _requested_lengths(self, output_shape: Value) -> list[Dimension]:
        axes = len(self.strides)
        lengths = lengths_of(output_shape, "output_shape")
        if lengths is None:
            return [Dimension()] * axes
        if len(lengths) != axes:
            raise InferenceError(
                f"output_shape must hold one length for each spatial axis, {axes} in all, found {len(lengths)}",
                hint="output_shape has no lengths for N and C" if len(lengths) == axes + 2 else "",
                clause="output_shape has one length for each spatial axis",
            )
        return list(lengths)

    def _crop(self, axis: int) -> tuple[int, int]:
        return (self.pads_begin[axis], self.pads_end[axis]) if self.auto_pad == "explicit" else (0, 0)

    def _extra(self, axis: int) -> int:
        return self.output_padding[axis] if self.output_padding else 0

    def _spread(self, axis: int, length: Dimension, kernel: Dimension, cut: tuple[int, int]) -> Dimension:
        gaps, taps = (d.map(lambda n: max(n - 1, 0)) for d in (length, kernel))
        reach = gaps * self.strides[axis] + (taps * self.dilations[axis] + 1)
        left = reach + (self._extra(axis) - sum(cut))
        if left.max is not None and left.max < 0:
            raise InferenceError(
                f"attributes 'pads_begin' and 'pads_end' cut {cut[0]} and {cut[1]} elements off spatial axis "
                f"{axis} of the output, which has {reach}",
                clause="pads_begin and pads_end leave an output that is not of negative length",
            )
        return Dimension.of(left)

    def spread_out(self, data: Array, filters: Array, output_shape: Array | None, grouped: Array) -> Array:
        """Compute with filters ``[G, C_in, C_out, kernel...]``."""
        values = [Value.constant(a) for a in (data, filters, output_shape) if a is not None]
        lengths = self.infer(*values).static[2:]
        begins = self.begins(data.shape[2:], grouped.shape[3:], lengths, output_shape is not None)
        return deconvolve(data, grouped, self.strides, self.dilations, begins, lengths)

    def begins(
        self, lengths: Sequence[int], kernel: Sequence[int], wanted: Sequence[int], sized: bool
    ) -> list[int]:
        """Return the elements to crop at the start of each axis; ``sized`` if there is an output_shape."""
        return [
            self._begin(axis, n, k, out, sized)
            for axis, (n, k, out) in enumerate(zip(lengths, kernel, wanted, strict=True))
        ]

    def _begin(self, axis: int, length: int, kernel: int, wanted: int, sized: bool) -> int:
        """Return the elements to crop at the start of an axis."""
        if not (sized and self.auto_pad.startswith("same")):
            return self._crop(axis)[0]
        total = self._surplus(axis, length, kernel, wanted)
        return total - total // 2 if self.auto_pad == "same_upper" else total // 2

    def _surplus(self, axis: int, length: int, kernel: int, wanted: int) -> int:
        """Return the elements to crop from an axis in total."""
        reach = max(length - 1, 0) * self.strides[axis] + self.extent(axis, kernel) + self._extra(axis)
        return max(reach - wanted, 0)

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the padding of each axis, and the output padding."""
        axes = len(self.strides)
        added: dict[str, object] = {"output_padding": self.output_padding or (0,) * axes}
        if self.auto_pad == "explicit":
            return added
        pads = [(0, 0)] * axes
        if len(inputs) > 2 and inputs[0].rank == output.rank == axes + 2:
            spatial = zip(inputs[0][2:], self.kernel_of(inputs), output[2:], strict=True)
            pads = [self._shown_padding(axis, *lengths) for axis, lengths in enumerate(spatial)]
        return {**added, "pads_begin": [begin for begin, _ in pads], "pads_end": [end for _, end in pads]}

    def _shown_padding(
        self, axis: int, length: Dimension, kernel: Dimension, wanted: Dimension
    ) -> tuple[int, int]:
        if self.auto_pad == "valid" or not (length.is_static and kernel.is_static and wanted.is_static):
            return 0, 0
        begin = self._begin(axis, length.min, kernel.min, wanted.min, sized=True)
        return begin, self._surplus(axis, length.min, kernel.min, wanted.min) - begin

    def macs(self, operands: Operands) -> Count:
        """Return one MAC for each element of the data and of a filter, including cropped ones."""
        return operands.data * size(self._filter(operands.inputs[1]))


@op("ConvolutionBackpropData-1")
class ConvolutionBackpropData(TransposedConvolution):
    """Spread each element of ``data`` over the spatial axes with ``filters``, and add up."""

    data = Input(T, "[N, C_in, spatial...]")
    filters = Input(T, "[C_in, C_out, kernel...]")
    output_shape = Input(T_INDEX, "lengths of the spatial axes of the output", optional=True)
    output = Output(T, "[N, C_out, spatial...]")

    def infer(self, data: Value, filters: Value, output_shape: Value | None = None) -> PartialShape:
        x = data_dims(data.shape, len(self.strides))
        w = self.filter_dims(filters.shape, 2, "[C_in, C_out, kernel...]")
        swapped = "filters are [C_in, C_out, kernel...] here, C_in first" if x[1] == w[1] else ""
        self.check_channels(x, w, w[0], swapped)
        return PartialShape([x[0], w[1], *self.spreads(x[2:], w[2:], output_shape)])

    def evaluate(self, data: Array, filters: Array, output_shape: Array | None = None) -> Array:
        return self.spread_out(data, filters, output_shape, filters[None])


@op("GroupConvolutionBackpropData-1")
class GroupConvolutionBackpropData(TransposedConvolution):
    """Spread each element of ``data`` over the spatial axes with the ``filters`` of its group, and add up."""

    data = Input(T, "[N, G * C_in, spatial...]")
    filters = Input(T, "[G, C_in, C_out, kernel...]; the number of groups G is read from here")
    output_shape = Input(T_INDEX, "lengths of the spatial axes of the output", optional=True)
    output = Output(T, "[N, G * C_out, spatial...]")

    def infer(self, data: Value, filters: Value, output_shape: Value | None = None) -> PartialShape:
        x = data_dims(data.shape, len(self.strides))
        w = self.filter_dims(filters.shape, 3, "[G, C_in, C_out, kernel...]")
        groups = self.groups_of(x, w, w[1])
        return PartialShape([x[0], groups * w[2], *self.spreads(x[2:], w[3:], output_shape)])

    def evaluate(self, data: Array, filters: Array, output_shape: Array | None = None) -> Array:
        return self.spread_out(data, filters, output_shape, filters)


# Transposed convolution (deconvolution): one GEMM for each kernel element, scattered and added.


def deconvolve(
    x: Array,
    w: Array,
    strides: Sequence[int],
    dilations: Sequence[int],
    begins: Sequence[int],
    lengths: Sequence[int],
) -> Array:
    """Spread ``x[N, G*C, ...]`` with ``w[G, C, O, ...]`` over trailing axes of given ``lengths``.

    Element ``i`` reaches position ``i * stride + k * dilation - begin`` through element ``k`` of the kernel;
    positions outside are dropped.
    """
    groups, channels, outputs, *kernel = w.shape
    work = accumulator_dtype(x.dtype)
    wide = x.astype(work, copy=False).reshape(len(x), groups, channels, *x.shape[2:])
    y = np.zeros((len(x), groups, outputs, *lengths), work)
    for element in itertools.product(*map(range, kernel)):
        reached = [
            _clip_positions(k * d - b, s, n, length)
            for k, d, b, s, n, length in zip(
                element, dilations, begins, strides, x.shape[2:], lengths, strict=True
            )
        ]
        sources = wide[_last(source for source, _ in reached)]
        if not sources.size:
            continue
        weights = np.swapaxes(w[_last(element)], 1, 2).astype(work, copy=False)
        sums = weights @ sources.reshape(*sources.shape[:3], -1)
        y[_last(target for _, target in reached)] += sums.reshape(*sums.shape[:3], *sources.shape[3:])
    return from_accumulator(y.reshape(len(x), groups * outputs, *lengths), x.dtype)


def _last(places: Iterable[int | slice]) -> tuple[EllipsisType | int | slice, ...]:
    """Return an index into the last axes."""
    return ..., *places


def _clip_positions(offset: int, stride: int, count: int, length: int) -> tuple[slice, slice]:
    """Return the positions ``offset + i * stride`` that are inside, as slices of source and target."""
    first = max(-(offset // stride), 0)
    last = min((length - 1 - offset) // stride + 1, count)
    if last <= first:
        return slice(0, 0), slice(0, 0)
    start = offset + first * stride
    return slice(first, last), slice(start, start + (last - first - 1) * stride + 1, stride)


# Deformable convolutions, whose sampling points are shifted by input offsets.


class DeformableConvolutionBase(Conv2D):
    """Base of both versions. Points in the padding read zero."""

    data = Input(T, "[N, C_in, Y, X]")
    offsets = Input(
        T,
        "[N, deformable_group * elements * 2, Y_out, X_out]; for each kernel element, how far down and right it looks",
    )
    filters = Input(T, "[C_out, C_in / group, kernel...]")
    output = Output(T, "[N, C_out, Y_out, X_out]")

    group: int = attr(1, ge=1, doc="number of groups of channels that are convolved apart")
    deformable_group: int = attr(
        1, ge=1, doc="number of groups of input channels that have offsets of their own"
    )

    def kernel_of(self, inputs: Sequence[PartialShape]) -> Sequence[Dimension]:
        """Return the lengths of the kernel from the input shapes; filters are the third input."""
        return super().kernel_of(inputs[1:])

    def shape(self, data: Value, offsets: Value, filters: Value, mask: Value | None) -> PartialShape:
        """Return the shape of the output."""
        x, w = (
            data_dims(data.shape, 2),
            self.filter_dims(filters.shape, 2, "[C_out, C_in / group, kernel...]"),
        )
        self.check_channels(x, w, Dimension.of(w[1] * self.group), self._hint(w[1]))
        for name, shape, channels, attribute, count in (
            ("data", x, x[1], "group", self.group),
            ("filters", w, w[0], "group", self.group),
            ("data", x, x[1], "deformable_group", self.deformable_group),
        ):
            if channels.is_static and channels.min % count:
                raise InferenceError(
                    f"{name} {shape} has {channels} channels, which attribute {attribute!r}, {count}, does not divide",
                    clause=f"attribute {attribute!r} divides the channels of {name}",
                )
        elements = product(w[2:]) * self.deformable_group
        result = PartialShape([x[0], w[0], *self.slide(x[2:], w[2:])])
        result = self._fitting(result, offsets, "offsets", Dimension.of(elements * 2))
        return result if mask is None else self._fitting(result, mask, "mask", Dimension.of(elements))

    def _hint(self, each: Dimension) -> str:
        times = f"the second dimension of filters, {each}, is multiplied by attribute 'group', {self.group}"
        return times if self.group > 1 else ""

    def _fitting(self, result: PartialShape, value: Value, name: str, channels: Dimension) -> PartialShape:
        """Merge the output shape with that of a tensor with numbers for each output position."""
        shape = value.shape
        if shape.rank is None:
            return result
        if shape.rank != 4:
            raise InferenceError(f"{name} must have rank 4, found {shape}", clause=f"{name} has rank 4")
        if not shape[1].compatible(channels):
            raise InferenceError(
                f"{name} {shape} has {shape[1]} channels, {channels} are expected",
                hint=f"{'two numbers' if name == 'offsets' else 'one number'} for each element of the kernel, "
                f"times attribute 'deformable_group', {self.deformable_group}",
                clause=f"{name} has as many channels as deformable_group and the kernel ask for",
            )
        merged = result.merge(PartialShape([shape[0], result[1], *shape[2:]]))
        if merged is None:
            raise InferenceError(
                f"{name} {shape} must have the batch size, height and width of the output, which is {result}",
                clause=f"{name} has the batch size, height and width of the output",
            )
        return merged

    def deformed(self, data: Array, offsets: Array, filters: Array, mask: Array | None, zeros: bool) -> Array:
        """Return the output; ``zeros`` tells whether interpolation at the border uses zeros outside."""
        x, shifts, w = (Value.constant(a) for a in (data, offsets, filters))
        shape = self.shape(x, shifts, w, None if mask is None else Value.constant(mask)).static
        begins = [before for before, _ in self.pads(data.shape[2:], filters.shape[2:])]
        starts = [
            np.arange(count) * stride - begin
            for count, stride, begin in zip(shape[2:], self.strides, begins, strict=True)
        ]
        grouped = filters.reshape(self.group, -1, *filters.shape[1:])
        return deformable_convolution(
            data, offsets, grouped, mask, starts, self.dilations, self.deformable_group, zeros
        )

    def macs(self, operands: Operands) -> Count:
        """Return one MAC for each element of the output and of a filter."""
        return operands.result * size(self._filter(operands.inputs[2]))

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of the convolution, and of bilinear interpolation at every tap."""
        places = size([*operands.outputs[0][:1], *operands.outputs[0][2:], *operands.inputs[2][2:]])
        return 2 * self.macs(operands) + BILINEAR * operands.inputs[0][1] * places


@op("DeformableConvolution-1")
class DeformableConvolution1(DeformableConvolutionBase):
    """Correlate ``data`` with each of ``filters``, whose sampling positions are shifted by ``offsets``."""

    def infer(self, data: Value, offsets: Value, filters: Value) -> PartialShape:
        return self.shape(data, offsets, filters, None)

    def evaluate(self, data: Array, offsets: Array, filters: Array) -> Array:
        return self.deformed(data, offsets, filters, None, zeros=False)


@op("DeformableConvolution-8")
class DeformableConvolution8(DeformableConvolutionBase):
    """As version 1, with samples weighted by ``mask``."""

    mask = Input(
        T, "[N, deformable_group * elements, Y_out, X_out]; 1 when absent", optional=True, mixed=True
    )

    bilinear_interpolation_pad: bool = attr(
        False,
        doc="whether there are zeros right outside of the data; else what looks there sees nothing at all",
    )

    def infer(self, data: Value, offsets: Value, filters: Value, mask: Value | None = None) -> PartialShape:
        return self.shape(data, offsets, filters, mask)

    def evaluate(self, data: Array, offsets: Array, filters: Array, mask: Array | None = None) -> Array:
        return self.deformed(data, offsets, filters, mask, self.bilinear_interpolation_pad)


# Deformable convolution by bilinear sampling, one kernel element after another.


def deformable_convolution(
    x: Array,
    offsets: Array,
    w: Array,
    mask: Array | None,
    starts: Sequence[Array],
    dilations: Sequence[int],
    parts: int,
    zeros: bool,
) -> Array:
    """Correlate ``x[N, G*C, Y, X]`` with ``w[G, O, C, kernel...]``, sampling it at offsets.

    Args:
        x: the images.
        offsets: ``[N, parts * elements * 2, rows, columns]``, added to the positions of kernel elements.
        w: the filters.
        mask: ``[N, parts * elements, rows, columns]``, weights of the samples.
        starts: where the windows of each row and column start.
        dilations: distance between kernel elements.
        parts: groups of input channels, each of which has its own offsets.
        zeros: whether samples interpolate with zeros around the images; otherwise, positions before the first pixel are outside, those after the last are clamped to it.
    """
    groups, outputs, channels, *kernel = w.shape
    rows, columns = map(len, starts)
    work = np.float64 if x.dtype.kind in "iu" or x.dtype == np.float64 else np.float32
    y = np.zeros((len(x), groups, outputs, rows * columns), work)
    weights = w.astype(work)
    for n, (image, shifts) in enumerate(
        zip(x.astype(work, copy=False), offsets.astype(work, copy=False), strict=True)
    ):
        planes = image.reshape(parts, -1, *image.shape[1:])
        shifts = shifts.reshape(parts, -1, 2, rows, columns)
        for number, (i, j) in enumerate(itertools.product(*map(range, kernel))):
            down = starts[0][:, None] + i * dilations[0] + shifts[:, number, 0]
            right = starts[1] + j * dilations[1] + shifts[:, number, 1]
            seen = _sample(planes, down.reshape(parts, -1), right.reshape(parts, -1), zeros)
            if mask is not None:
                each = mask[n].reshape(parts, -1, 1, rows * columns)[:, number]
                seen = seen * each.astype(work, copy=False)
            y[n] += weights[..., i, j] @ seen.reshape(groups, channels, rows * columns)
    return from_accumulator(y.reshape(len(x), groups * outputs, rows, columns), x.dtype)


def _sample(planes: Array, y: Array, x: Array, zeros: bool) -> Array:
    """Sample ``planes[P, C, Y, X]`` at points ``[P, positions]``: ``[P, C, positions]``."""
    height, width = planes.shape[2:]
    flat = planes.reshape(*planes.shape[:2], height * width)
    least: np.ufunc = np.greater if zeros else np.greater_equal
    edge = -1 if zeros else 0
    inside = least(y, edge) & least(x, edge) & (y < height) & (x < width)
    y, x = np.where(inside, y, 0), np.where(inside, x, 0)
    top, left = np.floor(y), np.floor(x)
    samples = np.zeros((*planes.shape[:2], y.shape[-1]), planes.dtype)
    for row, across in ((top, 1 - (y - top)), (np.ceil(y), y - top)):
        for column, along in ((left, 1 - (x - left)), (np.ceil(x), x - left)):
            r, c = row.clip(0, height - 1), column.clip(0, width - 1)
            seen = inside & (r == row) & (c == column) if zeros else inside
            pixels = np.take_along_axis(flat, (r * width + c).astype(np.int64)[:, None], 2)
            samples += (across * along)[:, None] * np.where(seen[:, None], pixels, 0)
    return samples


# Binary convolutions.

T_BITS = Element("T2", (ElementType.u1,), "u1")


@op("BinaryConvolution-1")
class BinaryConvolution(Conv2D):
    """Correlate bits of ``data`` with each of ``filters``, where 0 stands for -1.

    A number of the data or of the padding that is neither 0 nor 1 counts as different from both, as in
    OpenVINO's reference. Its plugin leaves out a padding of 0.
    """

    data = Input(T, "[N, C_in, Y, X], of zeros and ones")
    filters = Input(T_BITS, "[C_out, C_in, kernel...]", unchecked=True)
    output = Output(T, "[N, C_out, Y, X]; how many bits are equal, less how many are not")

    mode: Literal["xnor-popcount"] = attr(
        default_with_warning="xnor-popcount", doc="how bits are multiplied and added"
    )
    pad_value: float = attr(default_with_warning="0", doc="what the padding holds")

    def infer(self, data: Value, filters: Value) -> PartialShape:
        return self.correlated(data, filters)

    def evaluate(self, data: Array, filters: Array) -> Array:
        lengths, kernel = data.shape[2:], filters.shape[2:]
        self.windows(lengths, kernel)  # raises if none fits
        padded = pad_spatial(data, self.pads(lengths, kernel), self.pad_value)
        # Ones that match ones, and zeros that match zeros.
        equal = np.concatenate([padded == 1, padded == 0], 1).astype(np.float32)
        bits = np.concatenate([filters, 1 - filters], 1).astype(np.float32)
        count = convolve(equal, bits[None], self.strides, self.dilations, ((0, 0), (0, 0)))
        return (2 * count - math.prod(filters.shape[1:])).astype(data.dtype)
