"""Activations that weigh the elements along an axis against each other."""

from __future__ import annotations

import numpy as np

from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from ...kernels.special import softmax
from .._axes import normalize_axis
from .._define import attr, op
from .._pointwise import Pointwise


class AlongAxis(Pointwise):
    """What functions along an axis share."""

    axis: int

    def infer(self, data: Value) -> PartialShape:
        if data.shape.rank is not None:
            normalize_axis(self.axis, data.shape.rank)
        return data.shape


@op("SoftMax-8", spec="activation/softmax-8")
class SoftMax(AlongAxis):
    """Exponentials of ``data``, scaled so that they sum to 1 along ``axis``."""

    axis: int = attr(1, doc="the axis of the sums; a negative one counts from the end")

    def apply(self, x: Array) -> Array:
        return np.asarray(softmax(x, self.axis))
