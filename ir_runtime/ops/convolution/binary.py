"""Binary convolutions."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import Element, Input, Output, T, attr, op
from ..kernels.convolution import convolve, pad_spatial
from .forward import Conv2D

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
