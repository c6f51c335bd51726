"""Convolutions from data to feature maps: plain and grouped."""

from __future__ import annotations

from ...ir.dimension import Dimension
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from ...kernels.convolution import convolve
from .._define import InferenceError, Input, Output, op
from .._types import T
from .._window import Dilated, data_dims


class Forward(Dilated):
    """What plain and grouped convolutions share; plain ones are of one group.

    OpenVINO has no reference that can be called for integers, and its plugin saturates them; they
    wrap around here, as its reference's arithmetic does.
    """

    def filter_dims(self, shape: PartialShape, leading: int, layout: str) -> PartialShape:
        """The shape of the filters, whose kernel follows ``leading`` other axes."""
        rank = len(self.strides) + leading
        if shape.rank is None:
            return PartialShape.dynamic(rank)
        if shape.rank != rank:
            raise InferenceError(f"filters must have rank {rank}, {layout}, found {shape}")
        return shape

    def check_channels(self, found: Dimension, expected: Dimension) -> None:
        """Require as many channels as the filters are made for."""
        if not found.compatible(expected):
            raise InferenceError(f"data has {found} channels, filters expect {expected}")

    def convolve(self, data: Array, filters: Array) -> Array:
        """Correlate with filters ``[G, C_out, C_in, kernel...]``."""
        lengths, kernel = data.shape[2:], filters.shape[3:]
        self.windows(lengths, kernel)  # says so if none fits
        return convolve(data, filters, self.strides, self.dilations, self.pads(lengths, kernel))


@op("Convolution-1")
class Convolution(Forward):
    """Correlate ``data`` with each of ``filters`` over the spatial axes."""

    data = Input(T, "[N, C_in, spatial...]")
    filters = Input(T, "[C_out, C_in, kernel...]")
    output = Output(T, "[N, C_out, spatial...]")

    def infer(self, data: Value, filters: Value) -> PartialShape:
        x = data_dims(data.shape, len(self.strides))
        w = self.filter_dims(filters.shape, 2, "[C_out, C_in, kernel...]")
        self.check_channels(x[1], w[1])
        return PartialShape([x[0], w[0], *self.slide(x[2:], w[2:])])

    def evaluate(self, data: Array, filters: Array) -> Array:
        return self.convolve(data, filters[None])


@op("GroupConvolution-1")
class GroupConvolution(Forward):
    """Correlate each group of channels of ``data`` with the ``filters`` of that group."""

    data = Input(T, "[N, G * C_in, spatial...]")
    filters = Input(T, "[G, C_out, C_in, kernel...]; the number of groups G is read from here")
    output = Output(T, "[N, G * C_out, spatial...]")

    def infer(self, data: Value, filters: Value) -> PartialShape:
        x = data_dims(data.shape, len(self.strides))
        w = self.filter_dims(filters.shape, 3, "[G, C_out, C_in, kernel...]")
        groups, channels = w[0], x[1]
        self.check_channels(channels, Dimension.of(groups * w[2]))
        if groups.is_dynamic and channels.is_static and w[2].is_static and w[2].min:
            if channels.min % w[2].min:
                raise InferenceError(f"data has {channels} channels, filters expect a multiple of {w[2]}")
            groups = Dimension(channels.min // w[2].min)
        return PartialShape([x[0], groups * w[1], *self.slide(x[2:], w[3:])])

    def evaluate(self, data: Array, filters: Array) -> Array:
        return self.convolve(data, filters)
