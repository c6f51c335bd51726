"""Convolutions, plain and grouped."""

from __future__ import annotations

from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import Input, Output, op
from .._define.types import T
from ..kernels.convolution import convolve
from ..window import data_dims
from ._filters import ConvolutionBase


class ForwardConvolution(ConvolutionBase):
    """Base of plain and grouped convolutions; plain ones are of one group.

    OpenVINO has no callable reference for integers, and its plugin saturates them; here they wrap around, as
    in the arithmetic of its reference.
    """

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
