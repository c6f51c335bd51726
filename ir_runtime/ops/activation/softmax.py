"""Softmax and related activations, which normalize along an axis.

A scalar passes for a vector of one element, as in OpenVINO.
"""

from __future__ import annotations

import numpy as np

from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import attr, op
from .._lengths import normalize_axis
from .._pointwise import Pointwise
from ..kernels.special import log_softmax, softmax


class SoftmaxBase(Pointwise):
    """Base of functions along an axis."""

    flops_per_element = 5  # the maximum, the difference, exp, the sum, the quotient

    axis: int = attr(1, doc="the axis of the sums; a negative one counts from the end")

    def infer(self, data: Value) -> PartialShape:
        if data.shape.rank is not None:
            normalize_axis(self.axis, max(data.shape.rank, 1))
        return data.shape


@op("SoftMax-8", spec="activation/softmax-8")
class SoftMax(SoftmaxBase):
    """Exponentials of ``data``, scaled so that they sum to 1 along ``axis``."""

    def apply(self, x: Array) -> Array:
        return softmax(np.atleast_1d(x), self.axis).reshape(x.shape)


@op("SoftMax-1", spec="activation/softmax-1")
class SoftMax1(SoftMax):
    """As version 8, with axes from the front only."""

    decisions = ("an axis that is left out is 1, as the page says; OpenVINO takes 0",)

    axis: int = attr(1, ge=0, doc="the axis of the sums")


@op("LogSoftmax-5", spec="activation/log-soft-max-5")
class LogSoftmax(SoftmaxBase):
    """The logarithm of the SoftMax of ``data`` along ``axis``."""

    def apply(self, x: Array) -> Array:
        return log_softmax(np.atleast_1d(x), self.axis).reshape(x.shape)
