"""Activations made of straight pieces."""

from __future__ import annotations

import math

import numpy as np

from ...ir.tensor import Array
from .._define import Input, Output, attr, op
from .._pointwise import Pointwise
from .._types import T


@op("ReLU-1")
class ReLU(Pointwise):
    """The elements of ``data``, but 0 for those below zero."""

    data = Input(T, "tensor of any shape")
    output = Output(T, "no element below zero")

    def apply(self, x: Array) -> Array:
        return np.asarray(np.maximum(x, x.dtype.type(0)))


@op("Clamp-1")
class Clamp(Pointwise):
    """The elements of ``data``, but ``min`` for smaller and ``max`` for larger ones.

    On integers, the bounds are the integers next to them from inside.
    """

    data = Input(T, "tensor of any shape")
    output = Output(T, "no element outside the bounds")

    min: float = attr(doc="lower bound")
    max: float = attr(doc="upper bound")

    def verify(self) -> None:
        if not self.min <= self.max:
            raise ValueError(f"min {self.min:g} is above max {self.max:g}; it must not be")

    def apply(self, x: Array) -> Array:
        low, high = self.min, self.max
        if x.dtype.kind in "iu":
            least, most = np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
            low, high = (min(max(bound, least), most) for bound in (low, high))
            low, high = math.ceil(low), math.floor(high)
        return np.asarray(np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high)))


@op("HSigmoid-5", spec="activation/hsigmoid-5")
class HSigmoid(Pointwise):
    """A straight line from 0 at -3 to 1 at 3, for each element of ``data``; flat outside."""

    def apply(self, x: Array) -> Array:
        return _hard_sigmoid(x)


@op("HSwish-4", spec="activation/hswish-4")
class HSwish(Pointwise):
    """Each element of ``data`` times its HSigmoid."""

    def apply(self, x: Array) -> Array:
        return np.asarray(x * _hard_sigmoid(x))


def _hard_sigmoid(x: Array) -> Array:
    return np.asarray(np.clip(x + 3, 0, 6) / 6)
