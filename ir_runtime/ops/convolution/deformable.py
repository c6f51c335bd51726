"""Deformable convolutions, whose sampling points are shifted by input offsets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.formula import Count
from ...ir.operands import Operands, size
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import Input, Output, T, attr, op
from .._lengths import product
from .._resampling import BILINEAR
from ..kernels.deformable import deformable_convolution
from ..window import data_dims
from .forward import Conv2D


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
        for name, channels, attribute, count in (
            (f"data {x}", x[1], "group", self.group),
            (f"filters {w}", w[0], "group", self.group),
            (f"data {x}", x[1], "deformable_group", self.deformable_group),
        ):
            if channels.is_static and channels.min % count:
                raise InferenceError(
                    f"{name} has {channels} channels, which attribute {attribute!r}, {count}, does not divide",
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
