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

# The base of all convolutions, and plain and grouped convolutions.

_GROUPS = "filters with a dimension of groups in front are for the operation whose name begins with Group"


class ConvolutionBase(DilatedWindow):
    """Base of convolutions, which slide filters over the spatial axes of ``data[N, C, spatial...]``."""

    flops_per_element = 0

    axis_defaults = {**DilatedWindow.axis_defaults, "strides": "1", "dilations": "1"}

    def filter_dims(self, shape: PartialShape, leading: int, layout: str) -> PartialShape:
        """Return the shape of the filters, after checking that they have ``leading`` axes before the kernel."""
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
        """Require that ``data`` has the number of channels that the filters expect."""
        if not x[1].compatible(expected):
            raise InferenceError(
                f"data {x} has {x[1]} channels, but filters {w} are made for {expected}",
                hint=hint,
                clause="filters are made for the channels of data",
            )

    def groups_of(self, x: PartialShape, w: PartialShape, each: Dimension) -> Dimension:
        """Return the number of groups, inferred from the filters and the channels of the data.

        Args:
            x: the shape of the data.
            w: the shape of the filters.
            each: the number of input channels of a group.
        """
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

    def infer_ungrouped(self, data: Value, filters: Value) -> PartialShape:
        """Return the output shape for filters that read all channels."""
        x = data_dims(data.shape, len(self.strides))
        w = self.filter_dims(filters.shape, 2, "[C_out, C_in, kernel...]")
        self.check_channels(x, w, w[1], _channels_hint(x[1], w[0], w[1]))
        return PartialShape([x[0], w[0], *self.slide(x[2:], w[2:])])

    def macs(self, operands: Operands) -> Count:
        """Return one MAC for each pair of an output element and a filter element, including those over padding."""
        return operands.result * size(self._filter(operands.inputs[1]))

    def _filter(self, filters: Lengths) -> Lengths:
        """Return the shape of a single filter: its input channels and its kernel."""
        return filters[-len(self.strides) - 1 :]


class Conv2D(ConvolutionBase):
    """Base of convolutions with two spatial axes."""

    def verify(self) -> None:
        """Require two spatial axes in the attributes."""
        super().verify()
        if len(self.strides) != 2:
            raise ValidationError(
                f"attribute 'strides' must have a number for Y and one for X, not {list(self.strides)}",
                clause="attribute 'strides' has two numbers, for Y and X",
            )


def _channels_hint(channels: Dimension, out: Dimension, each: Dimension) -> str:
    """Return a hint for data whose channels do not match filters ``[C_out, C_in, kernel...]``; empty if the cause is not clear.

    Args:
        channels: the number of channels of the data.
        out: C_out of the filters.
        each: C_in of the filters.
    """
    if channels == out:
        return "filters are [C_out, C_in, kernel...]; C_out and C_in may have changed places"
    if channels.is_static and each.is_static and each.min and channels.min % each.min == 0:
        return "filters for groups of channels are for GroupConvolution, as [G, C_out, C_in, kernel...]"
    return ""


class ForwardConvolution(ConvolutionBase):
    """Base of plain and grouped convolutions; plain convolutions have one group."""

    decisions = (
        "sums of integers wrap around; OpenVINO has no callable reference for them, and its plugin saturates",
    )

    def convolve(self, data: Array, filters: Array) -> Array:
        """Compute the output for filters ``[G, C_out, C_in, kernel...]``."""
        lengths, kernel = data.shape[2:], filters.shape[3:]
        self.windows(lengths, kernel)  # raises if no window fits
        return convolve(data, filters, self.strides, self.dilations, self.pads(lengths, kernel))


@op("Convolution-1")
class Convolution(ForwardConvolution):
    """Cross-correlation of ``data`` with ``filters`` over the spatial axes."""

    data = Input(T, "[N, C_in, spatial...]")
    filters = Input(T, "[C_out, C_in, kernel...]")
    output = Output(T, "[N, C_out, spatial...]")

    def infer(self, data: Value, filters: Value) -> PartialShape:
        return self.infer_ungrouped(data, filters)

    def evaluate(self, data: Array, filters: Array) -> Array:
        return self.convolve(data, filters[None])


@op("GroupConvolution-1")
class GroupConvolution(ForwardConvolution):
    """Cross-correlation of each group of channels of ``data`` with the ``filters`` of that group."""

    data = Input(T, "[N, G * C_in, spatial...]")
    filters = Input(T, "[G, C_out, C_in, kernel...], where G is the number of groups")
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
    """Base of plain and grouped transposed convolutions; plain ones have one group.

    Padding is cropped from the output. If ``output_shape`` is given, it determines the crop; with auto_pad explicit or
    valid, however, pads_begin or nothing is cropped at the start, and ``output_shape`` determines only the end. Without
    ``output_shape``, an auto_pad other than explicit crops nothing.
    """

    output_padding: tuple[int, ...] = attr((), ge=0, doc="elements to add at the end of each spatial axis")

    def verify(self) -> None:
        """Require one element of ``output_padding`` per spatial axis."""
        super().verify()
        if self.output_padding:
            self._per_axis("output_padding", self.output_padding)

    def spreads(
        self, lengths: Sequence[Dimension], kernel: Sequence[Dimension], wanted: Value | None
    ) -> list[Dimension]:
        """Return the spatial lengths of the output; ``wanted`` is the input ``output_shape``, if present."""
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
        """Compute the output, with the filters also given as ``grouped[G, C_in, C_out, kernel...]``."""
        values = [Value.constant(a) for a in (data, filters, output_shape) if a is not None]
        lengths = self.infer(*values).static[2:]
        begins = self.begins(data.shape[2:], grouped.shape[3:], lengths, output_shape is not None)
        return deconvolve(data, grouped, self.strides, self.dilations, begins, lengths)

    def begins(
        self, lengths: Sequence[int], kernel: Sequence[int], wanted: Sequence[int], sized: bool
    ) -> list[int]:
        """Return the number of elements to crop at the start of each spatial axis.

        Args:
            lengths: the spatial lengths of the data.
            kernel: the spatial lengths of the kernel.
            wanted: the spatial lengths of the output.
            sized: whether the layer has an input ``output_shape``.
        """
        return [
            self._begin(axis, n, k, out, sized)
            for axis, (n, k, out) in enumerate(zip(lengths, kernel, wanted, strict=True))
        ]

    def _begin(self, axis: int, length: int, kernel: int, wanted: int, sized: bool) -> int:
        """Return the number of elements to crop at the start of a spatial axis."""
        if not (sized and self.auto_pad.startswith("same")):
            return self._crop(axis)[0]
        total = self._surplus(axis, length, kernel, wanted)
        return total - total // 2 if self.auto_pad == "same_upper" else total // 2

    def _surplus(self, axis: int, length: int, kernel: int, wanted: int) -> int:
        """Return the number of elements to crop from a spatial axis at both ends together."""
        reach = max(length - 1, 0) * self.strides[axis] + self.extent(axis, kernel) + self._extra(axis)
        return max(reach - wanted, 0)

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the output padding, and the paddings unless they are explicit."""
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
        """Return one MAC for each pair of a data element and a filter element, including cropped ones."""
        return operands.data * size(self._filter(operands.inputs[1]))


@op("ConvolutionBackpropData-1")
class ConvolutionBackpropData(TransposedConvolution):
    """Transposed convolution of ``data`` with ``filters``: the gradient of Convolution with respect to its data."""

    data = Input(T, "[N, C_in, spatial...]")
    filters = Input(T, "[C_in, C_out, kernel...]")
    output_shape = Input(T_INDEX, "spatial lengths of the output", optional=True)
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
    """Transposed convolution of each group of channels of ``data`` with the ``filters`` of that group."""

    data = Input(T, "[N, G * C_in, spatial...]")
    filters = Input(T, "[G, C_in, C_out, kernel...], where G is the number of groups")
    output_shape = Input(T_INDEX, "spatial lengths of the output", optional=True)
    output = Output(T, "[N, G * C_out, spatial...]")

    def infer(self, data: Value, filters: Value, output_shape: Value | None = None) -> PartialShape:
        x = data_dims(data.shape, len(self.strides))
        w = self.filter_dims(filters.shape, 3, "[G, C_in, C_out, kernel...]")
        groups = self.groups_of(x, w, w[1])
        return PartialShape([x[0], groups * w[2], *self.spreads(x[2:], w[3:], output_shape)])

    def evaluate(self, data: Array, filters: Array, output_shape: Array | None = None) -> Array:
        return self.spread_out(data, filters, output_shape, filters)


# Transposed convolution: one GEMM for each kernel element, whose results are scattered and added.


def deconvolve(
    x: Array,
    w: Array,
    strides: Sequence[int],
    dilations: Sequence[int],
    begins: Sequence[int],
    lengths: Sequence[int],
) -> Array:
    """Compute the transposed convolution of ``x[N, G*C, ...]`` with ``w[G, C, O, ...]`` as ``y[N, G*O, *lengths]``.

    Kernel element ``k`` adds data element ``i`` to position ``i * stride + k * dilation - begin``; positions outside
    the output are dropped.
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
        sources = wide[_index_last(source for source, _ in reached)]
        if not sources.size:
            continue
        weights = np.swapaxes(w[_index_last(element)], 1, 2).astype(work, copy=False)
        sums = weights @ sources.reshape(*sources.shape[:3], -1)
        y[_index_last(target for _, target in reached)] += sums.reshape(*sums.shape[:3], *sources.shape[3:])
    return from_accumulator(y.reshape(len(x), groups * outputs, *lengths), x.dtype)


def _index_last(indices: Iterable[int | slice]) -> tuple[EllipsisType | int | slice, ...]:
    """Return an index expression for the last axes."""
    return ..., *indices


def _clip_positions(offset: int, stride: int, count: int, length: int) -> tuple[slice, slice]:
    """Return slices of source indices ``i < count`` and of targets ``offset + i * stride`` within [0, length)."""
    first = max(-(offset // stride), 0)
    last = min((length - 1 - offset) // stride + 1, count)
    if last <= first:
        return slice(0, 0), slice(0, 0)
    start = offset + first * stride
    return slice(first, last), slice(start, start + (last - first - 1) * stride + 1, stride)


# Deformable convolutions, whose sampling points are shifted by offsets.


class DeformableConvolutionBase(Conv2D):
    """Base of both versions of DeformableConvolution. Samples in the padding are zero."""

    data = Input(T, "[N, C_in, Y, X]")
    offsets = Input(
        T,
        "[N, deformable_group * elements * 2, Y_out, X_out]; the offset of each kernel element along Y and X",
    )
    filters = Input(T, "[C_out, C_in / group, kernel...]")
    output = Output(T, "[N, C_out, Y_out, X_out]")

    group: int = attr(1, ge=1, doc="number of groups of channels that are convolved separately")
    deformable_group: int = attr(
        1, ge=1, doc="number of groups of input channels that have their own offsets"
    )

    def kernel_of(self, inputs: Sequence[PartialShape]) -> Sequence[Dimension]:
        """Return the spatial lengths of the kernel; filters are the third input here."""
        return super().kernel_of(inputs[1:])

    def shape(self, data: Value, offsets: Value, filters: Value, mask: Value | None) -> PartialShape:
        """Check the inputs, and return the shape of the output."""
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
        result = self._refine_shape(result, offsets, "offsets", Dimension.of(elements * 2))
        return result if mask is None else self._refine_shape(result, mask, "mask", Dimension.of(elements))

    def _hint(self, each: Dimension) -> str:
        times = f"the second dimension of filters, {each}, is multiplied by attribute 'group', {self.group}"
        return times if self.group > 1 else ""

    def _refine_shape(
        self, result: PartialShape, value: Value, name: str, channels: Dimension
    ) -> PartialShape:
        """Return the output shape refined by that of ``offsets`` or ``mask``, after checking its channels."""
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
        """Compute the output; ``zeros`` is described at `deformable_convolution`."""
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
        """Return one MAC for each pair of an output element and a filter element."""
        return operands.result * size(self._filter(operands.inputs[2]))

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of the convolution and of the bilinear interpolation of every sample."""
        points = size([*operands.outputs[0][:1], *operands.outputs[0][2:], *operands.inputs[2][2:]])
        return 2 * self.macs(operands) + BILINEAR * operands.inputs[0][1] * points


@op("DeformableConvolution-1")
class DeformableConvolution1(DeformableConvolutionBase):
    """Cross-correlation of ``data`` with ``filters``, at sampling points that are shifted by ``offsets``."""

    def infer(self, data: Value, offsets: Value, filters: Value) -> PartialShape:
        return self.shape(data, offsets, filters, None)

    def evaluate(self, data: Array, offsets: Array, filters: Array) -> Array:
        return self.deformed(data, offsets, filters, None, zeros=False)


@op("DeformableConvolution-8")
class DeformableConvolution8(DeformableConvolutionBase):
    """The same as version 1, with samples weighted by ``mask``."""

    mask = Input(
        T,
        "[N, deformable_group * elements, Y_out, X_out]; weights of the samples, 1 if absent",
        optional=True,
        mixed=True,
    )

    bilinear_interpolation_pad: bool = attr(
        False,
        doc="whether to interpolate with zeros around the data; otherwise, samples before the first pixel are 0, "
        "and those after the last pixel read it",
    )

    def infer(self, data: Value, offsets: Value, filters: Value, mask: Value | None = None) -> PartialShape:
        return self.shape(data, offsets, filters, mask)

    def evaluate(self, data: Array, offsets: Array, filters: Array, mask: Array | None = None) -> Array:
        return self.deformed(data, offsets, filters, mask, self.bilinear_interpolation_pad)


# Deformable convolution: bilinear sampling and one GEMM for each kernel element.


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
    """Correlate samples of ``x[N, G*C, Y, X]`` with ``w[G, O, C, kernel...]``; return ``y[N, G*O, rows, columns]``.

    Args:
        x: the images.
        offsets: ``[N, parts * elements * 2, rows, columns]``, added to the positions of kernel elements.
        w: the filters.
        mask: ``[N, parts * elements, rows, columns]``, the weights of the samples.
        starts: the start of the window of each output row, and of each output column.
        dilations: the distance between kernel elements along Y and X.
        parts: the number of groups of input channels that have their own offsets.
        zeros: whether to interpolate with zeros around the images; otherwise, samples before the first pixel are 0, and
            those after the last pixel read it.
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
            samples = _sample(planes, down.reshape(parts, -1), right.reshape(parts, -1), zeros)
            if mask is not None:
                factors = mask[n].reshape(parts, -1, 1, rows * columns)[:, number]
                samples = samples * factors.astype(work, copy=False)
            y[n] += weights[..., i, j] @ samples.reshape(groups, channels, rows * columns)
    return from_accumulator(y.reshape(len(x), groups * outputs, rows, columns), x.dtype)


def _sample(planes: Array, y: Array, x: Array, zeros: bool) -> Array:
    """Sample ``planes[P, C, Y, X]`` bilinearly at points ``y, x[P, points]``; return ``[P, C, points]``."""
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
            is_inside = inside & (r == row) & (c == column) if zeros else inside
            pixels = np.take_along_axis(flat, (r * width + c).astype(np.int64)[:, None], 2)
            samples += (across * along)[:, None] * np.where(is_inside[:, None], pixels, 0)
    return samples


# Binary convolutions.

T_BITS = Element("T2", (ElementType.u1,), "u1")


@op("BinaryConvolution-1")
class BinaryConvolution(Conv2D):
    """Cross-correlation of bits of ``data`` with ``filters``, in which 0 stands for -1.

    An element of the data or the padding that is neither 0 nor 1 differs from both, as in OpenVINO's reference. Its
    plugin ignores a padding of 0.
    """

    data = Input(T, "[N, C_in, Y, X], of zeros and ones")
    filters = Input(T_BITS, "[C_out, C_in, kernel...]", unchecked=True)
    output = Output(T, "[N, C_out, Y, X]; the number of equal bits minus the number of different bits")

    mode: Literal["xnor-popcount"] = attr(
        default_with_warning="xnor-popcount", doc="operation on pairs of bits"
    )
    pad_value: float = attr(default_with_warning="0", doc="value of the padding")

    def infer(self, data: Value, filters: Value) -> PartialShape:
        return self.infer_ungrouped(data, filters)

    def evaluate(self, data: Array, filters: Array) -> Array:
        lengths, kernel = data.shape[2:], filters.shape[2:]
        self.windows(lengths, kernel)  # raises if no window fits
        padded = pad_spatial(data, self.pads(lengths, kernel), self.pad_value)
        # Count ones that match ones, and zeros that match zeros.
        equal = np.concatenate([padded == 1, padded == 0], 1).astype(np.float32)
        bits = np.concatenate([filters, 1 - filters], 1).astype(np.float32)
        count = convolve(equal, bits[None], self.strides, self.dilations, ((0, 0), (0, 0)))
        return (2 * count - math.prod(filters.shape[1:])).astype(data.dtype)
