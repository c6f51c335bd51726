"""Convolutions, plain and grouped, and the base of all: filters and their channels."""

from __future__ import annotations

from ...errors import InferenceError, ValidationError
from ...ir.dimension import Dimension
from ...ir.formula import Count
from ...ir.operands import Lengths, Operands, size
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import Input, Output, T, op
from ..kernels.convolution import convolve
from ..window import DilatedWindow, data_dims

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
