"""Transposed convolutions (deconvolutions): the gradient of a convolution with respect to its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.formula import Count
from ...ir.operands import Operands, size
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_INDEX, Input, Output, T, attr, op
from .._lengths import lengths_of
from ..kernels.deconvolution import deconvolve
from ..window import data_dims
from .forward import ConvolutionBase


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
